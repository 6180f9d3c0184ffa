//! All known facts about a mark, or about a block of marks, as rows of text.

use super::mark_rows::{MarkRows, kind_of, singular};
use super::micro_batch::stage_name;
use super::run_share::Share;
use super::step_details::StepDetailRow;
use super::window_totals::WindowTotals;
use super::{MarkBlock, MarkRowId};
use crate::replica_classes::class_words;
use tilescope_report::trace::Trace;
use tilescope_report::units::{
    CycleRange, Cycles, IpuId, ReplicaClassId, ReplicaIpu, grouped, percent,
};
use tilescope_report::{
    MarkFilter, MarkKind, Report, ReportError, StepActivity, TraceMark, TrainingPass,
};

const WAITED: &str = "from the end of the previous stage to the start of this one, on the same IPU";
const WAITED_FOR: &str = "the stage of another IPU that ended last in that time";
const SYNC: &str = "cycles of sync steps of the compute tiles between first and last cycle";
const TYPICAL: &str = "cycles / cycles of the median of its kind - 1";
const BETWEEN: &str = "cycles between the first and the last in which none of them runs, as a \
                       share";

/// The number of earlier marks that are searched for the stage that was waited for.
const MOST_BEFORE: usize = 10_000;

/// A mark or a block of marks.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkDetailReport {
    /// `B1 forward`, `16 iterations`
    pub title: String,
    pub range: CycleRange,
    /// Rows of figures, without unknown ones.
    pub rows: Vec<StepDetailRow>,
}

/// Describes `count` marks of a row from the one at `first` on; `None` after the last mark.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn mark_details(
    report: &Report,
    trace: &Trace,
    rows: &MarkRows,
    (row, first, count): (MarkRowId, u64, u64),
) -> Result<Option<MarkDetailReport>, ReportError> {
    let Some(block) = rows.block(report, (row, first, count))? else { return Ok(None) };
    let mut about = MarkRowsOfWords { rows: Vec::new() };
    let mark = match block.count {
        1 => MarkRows::marks(report, row, &block)?.into_iter().next(),
        _ => None,
    };
    match &mark {
        Some(mark) => single(mark, &mut about),
        None => several(row, &block, &mut about),
    }
    about.cycles(block.range, trace.range());
    if let Some(mark) = &mark {
        typical(rows, mark, &mut about);
    }
    match row {
        MarkRowId::Ipu(at) => {
            about.replicas(report, at.class)?;
            on_ipu(trace, at, block.range, &mut about)?;
            if first > 0
                && let Some(before) = rows.block(report, (row, first - 1, 1))?
            {
                let gap = CycleRange::new(before.range.end, block.range.start);
                waited(report, trace, at, gap, &mut about)?;
            }
        }
        MarkRowId::Common(_) => over_ipus(trace, block.range, &mut about)?,
    }
    let title = rows.words(row, &block);
    Ok(Some(MarkDetailReport { title, range: block.range, rows: about.rows }))
}

struct MarkRowsOfWords {
    rows: Vec<StepDetailRow>,
}

impl MarkRowsOfWords {
    fn push(&mut self, name: &'static str, value: impl Into<String>) {
        self.derived(name, value, "");
    }

    fn derived(&mut self, name: &'static str, value: impl Into<String>, formula: &'static str) {
        self.rows.push(StepDetailRow { name, value: value.into(), formula });
    }

    /// Adds the replicas in question, if they differ.
    fn replicas(&mut self, report: &Report, class: ReplicaClassId) -> Result<(), ReportError> {
        let words = class_words(&report.replica_classes()?, class);
        words.into_iter().for_each(|words| self.push("Replicas", words));
        Ok(())
    }

    fn cycles(&mut self, range: CycleRange, run: CycleRange) {
        let share = percent(range.length().as_f64() / run.length().max(Cycles(1)).as_f64());
        self.push("Cycles", format!("{} : {} - {}", range.length(), range.start, range.end));
        if share != percent(0.0) {
            self.derived("Share of the run", share, "its cycles / cycles of the run");
        }
    }
}

fn single(mark: &TraceMark, about: &mut MarkRowsOfWords) {
    about.push("Kind", capitalised(singular(mark.kind)));
    if let Some(pass) = mark.pass {
        about.push("Stage", stage_name(&mark.label, Some(pass)));
        about.push("Pass", capitalised(pass.name()));
    }
    match mark.kind {
        MarkKind::Stage => about.push("Micro-batch", grouped(mark.index)),
        MarkKind::Phase => {}
        _ => about.push("Number", grouped(mark.index)),
    }
    if let Some(ipu) = mark.ipu {
        about.push("IPU", ipu.to_string());
    }
    let steps = mark.steps.end.0.saturating_sub(mark.steps.start.0);
    if steps > 0 {
        let last = mark.steps.end.0 - 1;
        let first = grouped(mark.steps.start.0);
        let last = grouped(last);
        about.push("Steps", format!("{} : {first} - {last}", grouped(steps)));
    }
}

fn several(row: MarkRowId, block: &MarkBlock, about: &mut MarkRowsOfWords) {
    let kind = kind_of(row, block);
    let (first, last) = block.numbers;
    match row {
        MarkRowId::Ipu(at) => about.push("IPU", at.ipu.to_string()),
        MarkRowId::Common(_) => {
            about.push("Numbers", format!("{} {first} - {last}", singular(kind)));
        }
    }
    let mean = block.passes.total() / block.count.max(1);
    let lengths = format!("{} to {}, mean {mean}", block.shortest, block.longest);
    about.push("Duration of each", lengths);
    let length = block.range.length();
    let share = |cycles: Cycles| percent(cycles.as_f64() / length.max(Cycles(1)).as_f64());
    let passes = block.passes.iter().filter(|(_, cycles)| !cycles.is_zero());
    for (pass, cycles) in passes {
        let name = match pass {
            TrainingPass::Forward => "Forward",
            TrainingPass::Backward => "Backward",
            TrainingPass::Update => "Update",
        };
        about.push(name, share(cycles));
    }
    let between = length.saturating_sub(block.passes.total());
    about.derived("Gaps", share(between), BETWEEN);
}

/// Compares a mark with the median of repeated marks.
fn typical(rows: &MarkRows, mark: &TraceMark, about: &mut MarkRowsOfWords) {
    let repeated = rows.repeated.iter().find(|repeated| repeated.kind == mark.kind);
    let Some(repeated) = repeated.filter(|repeated| !repeated.all_equal()) else { return };
    let usual = repeated.typical.range.length();
    let deviation = mark.cycles.length().as_f64() / usual.max(Cycles(1)).as_f64() - 1.0;
    about.derived("Compared with the median", signed_percent(deviation), TYPICAL);
}

/// `+1.2 %`, `-0.3 %`, `0.0 %`
pub fn signed_percent(share: f64) -> String {
    let text = percent(share.abs());
    match share {
        _ if text == percent(0.0) => text,
        share if share < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

fn on_ipu(
    trace: &Trace,
    at: ReplicaIpu,
    range: CycleRange,
    about: &mut MarkRowsOfWords,
) -> Result<(), ReportError> {
    let Some(lane) = trace.lane_at(at, 0) else { return Ok(()) };
    about.push("Spent on", shares(&WindowTotals::read(lane, range)?));
    Ok(())
}

/// Adds the time between two stages of an IPU, and the stage of another IPU that ended last in it.
fn waited(
    report: &Report,
    trace: &Trace,
    at: ReplicaIpu,
    gap: CycleRange,
    about: &mut MarkRowsOfWords,
) -> Result<(), ReportError> {
    if gap.is_empty() {
        return Ok(());
    }
    let on = match trace.lane_at(at, 0) {
        Some(lane) => format!(": {}", shares(&WindowTotals::read(lane, gap)?)),
        None => String::new(),
    };
    about.derived("Waited before it", format!("{} cycles{on}", gap.length()), WAITED);
    let filter = MarkFilter {
        kind: Some(MarkKind::Stage),
        ipu: None,
        window: Some(gap),
        limit: MOST_BEFORE,
    };
    let marks = report.marks_of_class(at.class, &filter)?;
    // If there are more marks than were read, the last one is not known.
    let others = marks.iter().filter(|mark| {
        marks.len() < MOST_BEFORE && mark.ipu != Some(at.ipu) && mark.cycles.end <= gap.end
    });
    if let Some(last) = others.max_by_key(|mark| (mark.cycles.end, mark.ipu)) {
        let on = last.ipu.map_or(String::new(), |ipu| format!(" on IPU {ipu}"));
        let words = format!(
            "{} of micro-batch {}{on}, until cycle {}",
            last.label, last.index, last.cycles.end
        );
        about.derived("Waited for", words, WAITED_FOR);
    }
    Ok(())
}

/// Adds the IPU that waits most in a range, and the one that waits least.
fn over_ipus(
    trace: &Trace,
    range: CycleRange,
    about: &mut MarkRowsOfWords,
) -> Result<(), ReportError> {
    let mut waits = Vec::new();
    let lanes = || trace.lanes().iter().filter(|info| info.sub_lane == 0);
    for info in lanes() {
        let Some(lane) = trace.lane_of(info.ipu, 0) else { continue };
        waits.push((WindowTotals::read(lane, range)?.share(StepActivity::Sync), info.ipu));
    }
    let words = |(share, ipu): &(Share<_>, IpuId)| format!("IPU {ipu}, {share} in syncs");
    let most = waits.iter().max_by_key(|(of, ipu)| (of.cycles(), std::cmp::Reverse(*ipu)));
    let least = waits.iter().min_by_key(|(of, ipu)| (of.cycles(), *ipu));
    if waits.len() > 1 {
        most.iter().for_each(|wait| about.derived("Waits most", words(wait), SYNC));
        least.iter().for_each(|wait| about.derived("Waits least", words(wait), SYNC));
    } else {
        most.iter().for_each(|wait| about.derived("Waits", words(wait), SYNC));
    }
    Ok(())
}

/// `compute 71.2 %, sync 20.0 %, idle 8.8 %`, the largest first.
fn shares(of: &WindowTotals) -> String {
    let named = |activity: StepActivity| (activity.name().replace('_', " "), of.share(activity));
    let mut parts: Vec<(String, Share<_>)> = StepActivity::ALL.into_iter().map(named).collect();
    parts.push(("idle".to_owned(), of.idle()));
    parts.retain(|(_, share)| share.value() > 0.0);
    parts.sort_by_key(|(_, share)| std::cmp::Reverse(share.cycles()));
    let words = parts.iter().map(|(name, share)| format!("{name} {share}"));
    words.collect::<Vec<_>>().join(", ")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
