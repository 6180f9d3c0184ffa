//! `mcp`: serves reports to agents, over the Model Context Protocol: messages on standard input and
//! output, one per line. It reads reports and simulates specs, and leaves no file behind.
//!
//! The protocol is implemented here rather than with `rmcp`, its Rust SDK: four methods over pipes,
//! with one message after another, need no asynchronous runtime, which would add 43 crates to the
//! 72 of this program.

mod answer;
mod arguments;
mod messages;
mod session;
mod tools;

use super::command::{CliCommand, CliError};
use crate::cli::error::JobError;
use clap::{Arg, ArgMatches, value_parser};
use session::McpSession;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

/// `tilescope mcp`
pub(super) const COMMAND: CliCommand = CliCommand { name: "mcp", arguments, run };

/// The longest message that is read.
const MAX_MESSAGE: u64 = 1 << 20;

const AFTER_HELP: &str = "\
For agents that speak the Model Context Protocol and start this command themselves; docs/agents.md
describes it. It reads the requested reports and specs, simulates on request, writes only to temporary
directories that it removes, and ends when its input ends.

Examples:
  claude mcp add tilescope -- tilescope mcp --root reports
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | tilescope mcp";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Answer questions of agents about reports and specs, over standard input and output")
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Read only reports, specs and models in this directory; bundled specs are always there"),
        )
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let root = matches.get_one::<PathBuf>("root").map(PathBuf::as_path);
    serve(McpSession::below(root)?, &mut io::stdin().lock(), output)
}

/// Answers messages until the input ends.
fn serve(
    mut session: McpSession,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let to_error = |error| JobError::Read { what: "cannot read messages", error };
    loop {
        let mut line = Vec::new();
        let length = input.take(MAX_MESSAGE).read_until(b'\n', &mut line).map_err(to_error)?;
        if length == 0 {
            return Ok(());
        }
        let is_cut = length as u64 == MAX_MESSAGE && line.last() != Some(&b'\n');
        let reply = if is_cut {
            input.skip_until(b'\n').map_err(to_error)?;
            Some(messages::too_long(MAX_MESSAGE))
        } else if line.trim_ascii().is_empty() {
            None
        } else {
            messages::reply(&line, &mut session)
        };
        if let Some(reply) = reply {
            writeln!(output, "{reply}")?;
            output.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_message_that_is_too_long_is_refused_and_the_next_is_answered() {
        let mut input = vec![b'x'; 3 << 20];
        input.extend(b"\n\n{\"id\":2,\"method\":\"ping\"}\n{\"id\":3,\"method\":\"ping\"}");
        let mut output = Vec::new();
        serve(McpSession::default(), &mut io::BufReader::new(&input[..]), &mut output)
            .expect("serves");
        let text = String::from_utf8(output).expect("UTF-8");
        let replies: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
        assert_eq!(ids, [&Value::Null, &2.into(), &3.into()]);
        assert!(
            replies[0]["error"]["message"].as_str().is_some_and(|text| text.contains("longer"))
        );
    }
}
