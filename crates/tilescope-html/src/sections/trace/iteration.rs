//! A typical iteration: stages and micro-batches over time.

use super::{
    AXIS, MAX_LANES, NAMES, PLOT, PageFacts, WIDTH, cycle_axis, lane_name, more_lanes, name_row,
    place, scale_of,
};
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::names::shown;
use crate::svg::{PxRect, Svg, width_of};
use tilescope_analysis::trace::{
    COMMON_MARKS, FirstPeriods, MarkBlock, MarkRowId, MarkRows, short_turn, singular,
};
use tilescope_report::trace::{LaneInfo, Trace};
use tilescope_report::units::{CycleRange, IpuId, grouped};
use tilescope_report::{MarkKind, ReportError, ReportPart, TrainingPass};

/// The maximum number of marks that are read; of a longer run, those of the first iterations.
const MAX_MARKS: u64 = 1 << 16;
const HEADING: &str = "Stages and micro-batches";
const ROW: f64 = 20.0;
const LANE: f64 = 24.0;
const GAP: f64 = 3.0;

pub(super) fn blocks(facts: &PageFacts<'_>, trace: &Trace) -> Result<Vec<Block>, ReportError> {
    let absent = |text: &str| Ok(vec![Block::heading(HEADING), Block::note(text)]);
    if !facts.report.has(ReportPart::Marks) {
        return absent("The report has no marks of iterations, stages and micro-batches.");
    }
    let ipus: Vec<IpuId> = trace.lanes().iter().map(|lane| lane.ipu).collect();
    let (rows, part) = match MarkRows::read(facts.report, &ipus, MAX_MARKS)? {
        Some(rows) => (rows, None),
        None => {
            let Some(part) = FirstPeriods::of_run(facts.report, MAX_MARKS)? else {
                let text =
                    "An iteration has more marks than a page can show. The desktop app shows them.";
                return absent(text);
            };
            let rows = MarkRows::read_part(facts.report, &ipus, part.cycles)?;
            (rows, Some(part))
        }
    };
    let Some((window, what)) = window(&rows) else {
        return absent("The report has no marks of iterations, slots or stages.");
    };
    let classes: Vec<Trace> = trace.classes().collect();
    let lanes: Vec<LaneInfo> = classes
        .iter()
        .flat_map(|trace| trace.lanes())
        .filter(|lane| lane.sub_lane == 0)
        .copied()
        .collect();
    let picture = IterationPicture { facts, rows: &rows, window };
    let svg = picture.draw(&lanes[..lanes.len().min(MAX_LANES)])?;
    let of = part.map_or_else(String::new, |part| {
        let count = grouped(part.count);
        let all = grouped(part.all);
        format!(" Of the first {count} of {all} {}s of the run.", singular(part.kind))
    });
    let caption = format!(
        "{what}, {}.{of} Marks that are too narrow to distinguish are grouped and counted.",
        facts.cycles_and_time(window.length())
    );
    let mut blocks = vec![Block::heading(HEADING), Block::figure(svg, caption, picture.legend())];
    blocks.extend(more_lanes(lanes.len()));
    let repeated = rows.repeated.iter().map(|of| {
        let name = singular(of.kind);
        let cycles = |range: CycleRange| facts.cycles_and_time(range.length());
        if of.all_equal() {
            format!("All {} {name}s take {}.", of.count, cycles(of.typical.range))
        } else {
            format!(
                "Of {} {name}s, a typical one takes {}, the fastest {}, the slowest {}.",
                of.count,
                cycles(of.typical.range),
                cycles(of.fastest.range),
                cycles(of.slowest.range)
            )
        }
    });
    let repeated: Vec<String> = repeated.collect();
    if !repeated.is_empty() {
        blocks.push(Block::note(format!("{}{of}", repeated.join(" "))));
    }
    let schedule = facts.table("execution-trace", "schedule")?;
    if schedule.count > 0 {
        blocks.push(Block::Table { table: schedule.folded() });
    }
    Ok(blocks)
}

/// Number of slots shown of an iteration with many more.
const SLOTS: u64 = 16;

/// The cycles of a typical iteration, or of the whole if there is none. If these have too many
/// slots to be distinguishable, the cycles around a typical slot.
fn window(rows: &MarkRows) -> Option<(CycleRange, String)> {
    let repeated = |kind| rows.repeated.iter().find(|of| of.kind == kind);
    let whole = |kind| rows.row(MarkRowId::Common(kind))?.whole().map(|block| block.range);
    let kinds = [MarkKind::Iteration, MarkKind::Run, MarkKind::Slot];
    let (range, what) = match repeated(MarkKind::Iteration) {
        Some(of) => {
            let number = of.typical.number;
            (of.typical.range, format!("Iteration {number} of {}, a typical one", of.count))
        }
        None => {
            let range = kinds.into_iter().find_map(whole).filter(|range| !range.is_empty())?;
            (range, "The run".to_owned())
        }
    };
    let slot = repeated(MarkKind::Slot).map(|of| of.typical);
    let slot = slot.filter(|slot| range.length() > slot.range.length() * (3 * SLOTS));
    let Some(slot) = slot else { return Some((range, what)) };
    let around = slot.range.length() * (SLOTS / 2);
    let start = slot.range.start.saturating_sub(around);
    let window = CycleRange::new(start, slot.range.end + around);
    Some((window, format!("About {SLOTS} slots around slot {}, a typical one", slot.number)))
}

struct IterationPicture<'a> {
    facts: &'a PageFacts<'a>,
    rows: &'a MarkRows,
    window: CycleRange,
}

impl IterationPicture<'_> {
    fn draw(&self, lanes: &[LaneInfo]) -> Result<String, ReportError> {
        let shown = |id: MarkRowId| {
            let scale = self.window.length().as_f64() / PLOT;
            self.rows.shown(self.facts.report, id, self.window, scale)
        };
        // The run and the iteration fill the window.
        let narrow = COMMON_MARKS
            .into_iter()
            .filter(|kind| ![MarkKind::Run, MarkKind::Iteration].contains(kind));
        let mut common = Vec::new();
        for kind in narrow {
            let blocks = shown(MarkRowId::Common(kind))?;
            if !blocks.is_empty() {
                common.push((kind, blocks));
            }
        }
        let top = (ROW + GAP) * common.len() as f64 + 4.0;
        let bottom = top + (LANE + GAP) * lanes.len() as f64;
        let mut svg = Svg::new(WIDTH, bottom + AXIS);
        for (at, (kind, blocks)) in common.iter().enumerate() {
            let y = (ROW + GAP) * at as f64;
            let id = MarkRowId::Common(*kind);
            blocks.iter().for_each(|block| self.mark(&mut svg, id, block, (y, ROW)));
            let name = singular(*kind);
            let mut letters = name.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            name_row(&mut svg, &format!("{first}{}s", letters.as_str()), y, ROW);
        }
        for (at, lane) in lanes.iter().enumerate() {
            let y = top + (LANE + GAP) * at as f64;
            svg.rect(PxRect { x: NAMES, y, width: PLOT, height: LANE }, "lane");
            let id = MarkRowId::Ipu(place(lane));
            shown(id)?.iter().for_each(|block| self.mark(&mut svg, id, block, (y, LANE)));
            name_row(&mut svg, &lane_name(self.facts, lane), y, LANE);
        }
        cycle_axis(&mut svg, self.window, (bottom, bottom + 4.0));
        let label = format!(
            "Stages and micro-batches of {} cycles on {} IPUs",
            self.window.length(),
            lanes.len()
        );
        Ok(svg.finish(&label))
    }

    /// Draws a mark, or a block of counted ones: each pass has its share of the block.
    fn mark(&self, svg: &mut Svg, id: MarkRowId, block: &MarkBlock, (y, height): (f64, f64)) {
        let scale = scale_of(self.window);
        let range = block.range.intersection(self.window);
        let x = scale.at(range.start.as_f64());
        let end = scale.at(range.end.as_f64());
        let rect = PxRect { x, y, width: (end - x - 0.5).max(0.5), height };
        let words = self.rows.words(id, block);
        let title = format!("{}, {} cycles", shown(&words), block.range.length());
        let total = block.passes.total().as_f64().max(1.0);
        let parts = block.passes.iter().map(|(pass, cycles)| (Some(pass), cycles));
        let parts = parts.chain([(None, block.passes.of(None))]);
        let mut top = y;
        for (pass, cycles) in parts.filter(|(_, cycles)| !cycles.is_zero()) {
            let height = cycles.as_f64() / total * height;
            svg.rect_with(PxRect { y: top, height, ..rect }, colours::pass(pass), &title);
            top += height;
        }
        let colour = colours::pass(block.pass());
        let short = block.pass().filter(|_| block.count == 1 && matches!(id, MarkRowId::Ipu(_)));
        match short {
            Some(pass) if width_of(&words) > rect.width - 6.0 => {
                svg.bar_text(rect, colour, &short_turn(pass, block.numbers.0));
            }
            _ => svg.bar_text(rect, colour, &words),
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let has = |pass: TrainingPass| {
            let rows = self.facts.trace.iter().flat_map(|trace| trace.lanes());
            rows.map(|lane| MarkRowId::Ipu(place(lane))).any(|id| {
                let whole = self.rows.row(id).and_then(|row| row.whole());
                whole.is_some_and(|block| !block.passes.of(Some(pass)).is_zero())
            })
        };
        let titles = [
            (TrainingPass::Forward, "Forward pass"),
            (TrainingPass::Backward, "Backward pass"),
            (TrainingPass::Update, "Weight update"),
        ];
        let own = titles.into_iter().filter(|(pass, _)| has(*pass));
        let own = own.map(|(pass, title)| LegendEntry::new(colours::pass(Some(pass)), title));
        own.chain([LegendEntry::new("lane", "No stage runs")]).collect()
    }
}
