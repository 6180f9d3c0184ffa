//! `mcp`: serves reports to agents, over the Model Context Protocol: messages on standard input and
//! output, one per line. It reads reports and simulates specs, and leaves no file behind.
//!
//! Threads answer several calls of tools at a time, and write answers in the order in which they
//! finish. The protocol is implemented here instead of with `rmcp`, its Rust SDK: four methods over
//! pipes need no asynchronous runtime, which would add 43 crates to the 72 of this program.

mod answer;
mod answer_fields;
mod arguments;
mod messages;
mod session;
mod tools;

use super::command::{CliCommand, CliError};
use crate::cli::error::JobError;
use clap::{Arg, ArgMatches, value_parser};
use serde_json::Value;
use session::McpSession;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// `tilescope mcp`
pub(super) const COMMAND: CliCommand = CliCommand { name: "mcp", arguments, run };

/// The maximum length of a message.
const MAX_MESSAGE: u64 = 1 << 20;

/// The maximum number of parallel calls of tools; others wait. Simulations use all cores anyway.
const MAX_RUNNING: usize = 4;

/// Stack of a thread that answers: that of the main thread elsewhere.
const STACK: usize = 8 << 20;

const AFTER_HELP: &str = "\
Agents that use the Model Context Protocol start this command; docs/agents.md describes it. It reads
the requested reports and specs, simulates on request, writes only to temporary directories that it
removes, and ends when its input ends.

Examples:
  claude mcp add tilescope -- tilescope mcp --root reports
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | tilescope mcp";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Serve reports and specs to agents over the Model Context Protocol, on standard \
                input and output")
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
    serve(McpSession::below(root)?, io::BufReader::new(io::stdin()), output)
}

/// An event while messages are answered.
enum McpEvent {
    Line(Vec<u8>),
    /// A line that exceeds the maximum length of a message.
    LongLine,
    /// The reply to a call of a tool; notifications have none.
    Reply(Option<Value>),
    /// There are no more lines.
    End(Result<(), JobError>),
}

/// Answers messages until there are no more, and all calls are answered.
fn serve(
    session: McpSession,
    input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let (sender, events) = channel();
    let reader = sender.clone();
    start("mcp-input", move || read_lines(input, &reader))?;
    let mut calls =
        ToolCalls { session: Arc::new(session), sender, waiting: VecDeque::new(), running: 0 };
    let result = calls.serve(&events, output);
    // Running calls end before the session, so that no simulated report stays.
    calls.waiting.clear();
    while calls.running > 0 {
        match events.recv() {
            Ok(McpEvent::Reply(_)) => calls.running -= 1,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    result
}

/// Sends each line of an input.
fn read_lines(mut input: impl BufRead, events: &Sender<McpEvent>) {
    loop {
        let event = next_line(&mut input);
        let is_last = matches!(event, McpEvent::End(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

fn next_line(input: &mut impl BufRead) -> McpEvent {
    let failed = |error| McpEvent::End(Err(JobError::Read { what: "cannot read messages", error }));
    let mut line = Vec::new();
    match input.take(MAX_MESSAGE).read_until(b'\n', &mut line) {
        Ok(0) => McpEvent::End(Ok(())),
        Ok(length) if length as u64 == MAX_MESSAGE && line.last() != Some(&b'\n') => {
            match input.skip_until(b'\n') {
                Ok(_) => McpEvent::LongLine,
                Err(error) => failed(error),
            }
        }
        Ok(_) => McpEvent::Line(line),
        Err(error) => failed(error),
    }
}

/// Calls of tools that are not answered yet.
struct ToolCalls {
    session: Arc<McpSession>,
    sender: Sender<McpEvent>,
    waiting: VecDeque<Value>,
    running: usize,
}

impl ToolCalls {
    fn serve(
        &mut self,
        events: &Receiver<McpEvent>,
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        let mut is_over = false;
        while !is_over || self.running > 0 {
            // This holds a sender itself, so `recv` waits until an event arrives.
            let Ok(event) = events.recv() else { break };
            let reply = match event {
                McpEvent::Line(line) if line.trim_ascii().is_empty() => None,
                McpEvent::Line(line) => self.direct_reply(&line),
                McpEvent::LongLine => Some(messages::too_long(MAX_MESSAGE)),
                McpEvent::Reply(reply) => {
                    self.running -= 1;
                    reply
                }
                McpEvent::End(end) => {
                    end?;
                    is_over = true;
                    None
                }
            };
            if let Some(reply) = reply {
                writeln!(output, "{reply}")?;
                output.flush()?;
            }
            while self.running < MAX_RUNNING
                && let Some(message) = self.waiting.pop_front()
            {
                self.start(message)?;
            }
        }
        Ok(())
    }

    /// The reply to a message that takes no time; others wait for their turn.
    fn direct_reply(&mut self, line: &[u8]) -> Option<Value> {
        match messages::read(line) {
            Ok(message) if messages::takes_time(&message) => {
                self.waiting.push_back(message);
                None
            }
            Ok(message) => messages::reply(&message, &self.session),
            Err(refused) => Some(refused),
        }
    }

    fn start(&mut self, message: Value) -> Result<(), CliError> {
        let session = Arc::clone(&self.session);
        let sender = self.sender.clone();
        start("mcp-call", move || {
            let answered = catch_unwind(AssertUnwindSafe(|| messages::reply(&message, &session)));
            let reply = answered.unwrap_or_else(|_| Some(messages::broken(&message)));
            // The session ends when the last call has been answered.
            drop(session);
            // The receiver is gone only when the program ends.
            let _ = sender.send(McpEvent::Reply(reply));
        })?;
        self.running += 1;
        Ok(())
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), JobError> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK);
    let failed = |error| JobError::Read { what: "cannot start a thread", error };
    thread.spawn(work).map(|_| ()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_long_is_refused_and_the_next_is_answered() {
        let mut input = vec![b'x'; 3 << 20];
        input.extend(b"\n\n{\"id\":2,\"method\":\"ping\"}\n{\"id\":3,\"method\":\"ping\"}");
        let mut output = Vec::new();
        serve(McpSession::default(), io::Cursor::new(input), &mut output).expect("serves");
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
