//! `find`: finds items of a report by name, and with a small typed filter.

use super::command::{CliCommand, CliError, json_argument, open_report, report_argument};
use crate::cli::error::UsageError;
use clap::{Arg, ArgMatches, value_parser};
use serde_json::{Value, json};
use std::io::Write;
use tilescope_analysis::find::{CatalogueItem, SearchCatalogue, SearchQuery, SearchResults, find};
use tilescope_report::units::{binary_bytes, grouped};

/// `tilescope find`
pub(super) const COMMAND: CliCommand = CliCommand { name: "find", arguments, run };

const QUERIES: &str = "\
Every word must occur in the name, in any case; /conv[0-9]+/ is a regular expression, \"two words\"
is a phrase, and a leading minus excludes names. Filters:
  type:StreamCopyMid  in:steps  name~attn  name=relu  ipu:0..3  tile:17
  cycles>10k  bytes>=64KiB  count<3
Lists: steps, operations, programs, variables, tensors, vertices.

Examples:
  tilescope find out Convolve
  tilescope find out 'in:steps type:DoExchange ipu:0..1 cycles>2k' --limit 20
  tilescope find out 'in:variables tile:17 bytes>4KiB' --json";

fn arguments(command: clap::Command) -> clap::Command {
    let limit = Arg::new("limit")
        .long("limit")
        .value_name("N")
        .value_parser(value_parser!(usize))
        .default_value("50")
        .help("Maximum number of results to list; totals include all of them");
    command
        .about("Find steps, operations, programs, variables, tensors and vertices in a report")
        .arg(report_argument())
        .arg(Arg::new("query").value_name("QUERY").required(true).help("Query, see below"))
        .arg(json_argument())
        .arg(limit)
        .after_help(QUERIES)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let text = matches.get_one::<String>("query").map_or("", String::as_str);
    let query = read_query(text)?;
    let limit = matches.get_one::<usize>("limit").copied().unwrap_or(50);
    let report = open_report(matches)?;
    let all = SearchCatalogue::read(&report)?;
    let found = find(&report, &all, &query)?;
    if matches.get_flag("json") {
        return super::command::print_json(&json(&query, &found, limit), output);
    }
    print(&found, limit, output)
}

/// Reads a query.
///
/// # Errors
/// The problem and its position.
pub(super) fn read_query(text: &str) -> Result<SearchQuery, CliError> {
    let read = text.parse();
    Ok(read.map_err(|error| UsageError::Search { error, text: text.to_owned() })?)
}

/// An item that was found.
pub(super) fn hit_json(hit: &CatalogueItem) -> Value {
    json!({
        "list": hit.thing.source(),
        "id": hit.thing.id(),
        "name": hit.name,
        "type": hit.kind,
        "ipu": hit.ipu,
        "count": hit.count,
        "cycles": hit.cycles,
        "bytes": hit.bytes,
    })
}

fn json(query: &SearchQuery, found: &SearchResults, limit: usize) -> Value {
    let hits = found.hits.iter().take(limit).map(hit_json);
    json!({
        "query": query.to_string(),
        "totals": found.totals,
        "more_variables": found.more_variables,
        "hits": hits.collect::<Vec<Value>>(),
    })
}

fn print(found: &SearchResults, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
    if found.more_variables {
        writeln!(output, "{}", found.words_of_more_variables())?;
    }
    if found.hits.is_empty() {
        writeln!(output, "No matches.")?;
    }
    for (source, totals) in &found.totals {
        let sums = format!(
            "{} {}, count {}, cycles {}, {}",
            grouped(totals.things),
            source.name(),
            grouped(totals.count),
            grouped(totals.cycles.0),
            binary_bytes(totals.bytes.0),
        );
        writeln!(output, "{sums}")?;
    }
    if !found.hits.is_empty() {
        let head = ["list", "count", "cycles", "bytes", "type", "name"];
        let [list, count, cycles, size, kind, name] = head;
        writeln!(output, "\n{list:10} {count:>12} {cycles:>16} {size:>10}  {kind:20} {name}")?;
    }
    for hit in found.hits.iter().take(limit) {
        let list = hit.thing.source().name();
        let count = grouped(hit.count);
        let cycles = hit.cycles.map_or_else(|| "-".to_owned(), |cycles| grouped(cycles.0));
        let size = hit.bytes.map_or_else(|| "-".to_owned(), |bytes| binary_bytes(bytes.0));
        let kind = &hit.kind;
        let name = &hit.name;
        writeln!(output, "{list:10} {count:>12} {cycles:>16} {size:>10}  {kind:20} {name}")?;
    }
    let rest = found.hits.len().saturating_sub(limit);
    if rest > 0 {
        writeln!(output, "… and {} more (raise --limit to list them)", grouped(rest as u64))?;
    }
    Ok(())
}
