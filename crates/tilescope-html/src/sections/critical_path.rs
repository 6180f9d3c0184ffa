//! The critical path by kind, by operation and by IPU, with explanations.

use super::{NOT_RUN, PageFacts, SectionEntry};
use crate::block::{Block, ChainLink, ChainText};
use crate::names::prose;
use crate::table::{HtmlTable, stacked};
use tilescope_analysis::critical_path::{ON_PATH, PathKind, WhyChain, path_totals, why_run};
use tilescope_analysis::table;
use tilescope_report::ReportError;

pub(super) const SECTION: SectionEntry =
    SectionEntry { id: "critical-path", title: "Critical path", build };

/// Number of items of the path that are explained.
const CHAINS: usize = 3;

const ABOUT: &str = "The critical path is the longest chain of steps that wait for one another, \
                     from the first cycle of the run to the last. Removing cycles from it shortens \
                     the run by at most that many; making other steps faster gains nothing.";

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let Some(totals) = path_totals(facts.report, None)? else {
        return Ok(vec![Block::note(NOT_RUN)]);
    };
    let kinds = totals.by_kind();
    let data = table! { &kinds, |of|
        text "Kind" => of.0.title();
        cycles "Cycles" => of.1.cycles(), ON_PATH;
        share "Share" => of.1.value(), "Cycles / cycles of the path";
    };
    let data = data.with_totals();
    let bar = |at: usize| stacked([(colour(kinds[at].0), kinds[at].1.value())]);
    let caption = "The critical path by activity";
    let mut blocks = vec![
        Block::note(ABOUT),
        Block::Table {
            table: HtmlTable::with_bars("critical-path/kinds", caption, &data, bar, "Of the run"),
        },
    ];
    let chains = why_run(facts.report, CHAINS, facts.numbers)?;
    if !chains.is_empty() {
        blocks.push(Block::heading("Why"));
        blocks.push(Block::Chains { chains: chains.iter().map(chain).collect() });
    }
    for name in ["critical-path", "slack"] {
        blocks.push(Block::Table { table: facts.table("execution-trace", name)? });
    }
    Ok(blocks)
}

fn colour(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Compute => "compute",
        PathKind::InternalExchange => "internal-exchange",
        PathKind::GlobalExchange => "global-exchange",
        PathKind::Host => "stream-mid",
        PathKind::RemoteBuffer => "remote-mid",
        PathKind::Sync => "external-sync",
        PathKind::HostWait => "stream-begin",
        PathKind::Other => "other",
        PathKind::Idle => "outline",
    }
}

fn chain(of: &WhyChain) -> ChainText {
    let link = |link: &tilescope_analysis::critical_path::WhyLink| ChainLink {
        text: prose(&link.text),
        detail: prose(&link.detail),
    };
    ChainText { links: of.links.iter().map(link).collect(), options: of.options.join(", ") }
}
