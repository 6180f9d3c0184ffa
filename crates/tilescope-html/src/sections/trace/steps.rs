//! Single steps where the critical path spends most: its lane split by the parts of names, with the
//! other lanes beside it.

use super::{
    AXIS, MAX_LANES, NAMES, PLOT, PageFacts, WIDTH, cycle_axis, lane_name, more_lanes, name_row,
    place, scale_of,
};
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::names::shown;
use crate::svg::{PxRect, Svg};
use crate::table::HtmlTable;
use std::collections::BTreeSet;
use tilescope_analysis::critical_path::{PathKind, PathRow, path_totals};
use tilescope_analysis::tables::critical_path::path_table;
use tilescope_analysis::trace::{
    LaneItem, ProgramLabels, TraceLaneStyle, TraceStepGrouping, lane_items, stage_at,
};
use tilescope_report::ReportError;
use tilescope_report::trace::{CriticalPath, LaneInfo, Trace, TraceLane};
use tilescope_report::units::{CycleRange, percent};

/// Number of steps of the lane before and after the longest one.
const STEPS_AROUND: u64 = 30;
/// The most time shown before and after the longest step, in multiples of it.
const REACH: u64 = 4;
const BAR: f64 = 19.0;
const FLAT: f64 = 15.0;
const GAP: f64 = 2.0;

/// A lane of the run, and a window around one of its steps.
struct StepWindow {
    lane: LaneInfo,
    window: CycleRange,
    /// The row of the path with the most cycles there.
    row: PathRow,
}

pub(super) fn blocks(facts: &PageFacts<'_>, trace: &Trace) -> Result<Vec<Block>, ReportError> {
    let heading = Block::heading("Steps where the critical path spends most");
    let Some(found) = step_window(facts)? else {
        let text = "The run has no critical path.";
        return Ok(vec![heading, Block::note(text)]);
    };
    let labels = ProgramLabels::new(&*facts.report.programs()?);
    let picture = StepPicture { facts, trace, labels: &labels, found: &found };
    let (svg, legend, lanes) = picture.draw()?;
    let row = &found.row;
    let what = if row.name.is_empty() { row.kind.title() } else { row.name.as_str() };
    let caption = format!(
        "{} takes the most of the critical path: {} on {}. The picture shows steps {} of it, {} \
         cycles from cycle {}, with a row for each part of a name on {} and one row for each other lane.",
        shown(what),
        percent(row.share),
        row.lane,
        "around the longest one",
        found.window.length(),
        found.window.start,
        lane_name(facts, &found.lane),
    );
    let mut blocks = vec![heading, Block::figure(svg, caption, legend)];
    blocks.extend(more_lanes(lanes));
    if let Some(totals) = path_totals(facts.report, Some(found.window))? {
        let caption = "Steps of the critical path in these cycles";
        let table = HtmlTable::new("execution-trace/window", caption, &path_table(&totals));
        blocks.push(Block::Table { table });
    }
    Ok(blocks)
}

/// The lane and the window to show.
fn step_window(facts: &PageFacts<'_>) -> Result<Option<StepWindow>, ReportError> {
    let Some(path) = facts.report.critical_path()? else { return Ok(None) };
    let Some(totals) = path_totals(facts.report, None)? else { return Ok(None) };
    let own = totals.rows.into_iter().find(|row| row.kind != PathKind::Idle);
    let Some(row) = own else { return Ok(None) };
    let (at, position) = row.longest;
    let Some(lane) = path.lane_at(at) else { return Ok(None) };
    let Some(info) = path.lane_infos().get(at).copied() else { return Ok(None) };
    let window = window_around(facts, &path, &lane, (info, position))?;
    Ok(window.map(|window| StepWindow { lane: info, window, row }))
}

/// The window of some steps before and after one, within its stage.
fn window_around(
    facts: &PageFacts<'_>,
    path: &CriticalPath,
    lane: &TraceLane<'_>,
    (info, position): (LaneInfo, u64),
) -> Result<Option<CycleRange>, ReportError> {
    let Some(step) = lane.step(position)? else { return Ok(None) };
    let first = lane.step(position.saturating_sub(STEPS_AROUND))?;
    let last = lane.step((position + STEPS_AROUND).min(info.steps.saturating_sub(1)))?;
    let start = first.map_or(step.range.start, |first| first.range.start);
    let end = last.map_or(step.range.end, |last| last.range.end);
    // A much longer step, such as a wait, would hide the others.
    let reach = step.range.length() * REACH;
    let near = CycleRange::new(step.range.start.saturating_sub(reach), step.range.end + reach);
    let window = CycleRange::new(start, end).intersection(near);
    let stage = stage_at(facts.report, place(&info), step.range)?;
    let window = stage.map_or(window, |stage| window.intersection(stage.cycles));
    let window = window.intersection(path.range());
    Ok(if window.is_empty() { None } else { Some(window) })
}

struct StepPicture<'a> {
    facts: &'a PageFacts<'a>,
    trace: &'a Trace,
    labels: &'a ProgramLabels,
    found: &'a StepWindow,
}

impl StepPicture<'_> {
    /// The picture, its legend, and the number of other lanes.
    fn draw(&self) -> Result<(String, Vec<LegendEntry>, usize), ReportError> {
        let own = self.items(&self.found.lane, TraceLaneStyle::Flame)?;
        let classes: Vec<Trace> = self.trace.classes().collect();
        let is_same = |lane: &LaneInfo| {
            (place(lane), lane.sub_lane) == (place(&self.found.lane), self.found.lane.sub_lane)
        };
        let others: Vec<LaneInfo> = classes
            .iter()
            .flat_map(|trace| trace.lanes())
            .filter(|lane| !is_same(lane))
            .copied()
            .collect();
        let lanes = others.len();
        let others = &others[..lanes.min(MAX_LANES)];
        let rows = own.iter().map(|item| item.row + 1).max().unwrap_or(1);
        let top = BAR * f64::from(rows) + 8.0;
        let bottom = top + (FLAT + GAP) * others.len() as f64;
        let mut svg = Svg::new(WIDTH, bottom + AXIS);
        let mut colours_seen = BTreeSet::new();
        let ground = PxRect { x: NAMES, y: 0.0, width: PLOT, height: BAR * f64::from(rows) };
        svg.rect(ground, "lane");
        for item in &own {
            let y = BAR * f64::from(item.row);
            let rows = if item.full_height { rows } else { 1 };
            colours_seen.insert(self.bar(&mut svg, item, (y, BAR * f64::from(rows)), true));
        }
        name_row(&mut svg, &lane_name(self.facts, &self.found.lane), 0.0, BAR);
        for (at, lane) in others.iter().enumerate() {
            let y = top + (FLAT + GAP) * at as f64;
            svg.rect(PxRect { x: NAMES, y, width: PLOT, height: FLAT }, "lane");
            for item in self.items(lane, TraceLaneStyle::Flat)? {
                colours_seen.insert(self.bar(&mut svg, &item, (y, FLAT), others.len() <= 16));
            }
            name_row(&mut svg, &lane_name(self.facts, lane), y, FLAT);
        }
        cycle_axis(&mut svg, self.found.window, (bottom, bottom + 4.0));
        let label = format!(
            "Steps of {} cycles on {} lanes, where the critical path spends most",
            self.found.window.length(),
            others.len() + 1
        );
        let legend = LEGEND.into_iter().filter(|(colour, _)| colours_seen.contains(colour));
        let legend = legend.map(|(colour, name)| LegendEntry::new(colour, name)).collect();
        Ok((svg.finish(&label), legend, lanes))
    }

    fn items(&self, lane: &LaneInfo, style: TraceLaneStyle) -> Result<Vec<LaneItem>, ReportError> {
        let grouping = match style {
            TraceLaneStyle::Flame => TraceStepGrouping { executions: false, syncs: true },
            TraceLaneStyle::Flat => TraceStepGrouping { executions: true, syncs: true },
        };
        // A bar narrower than two pixels has no text, and its colour is hardly visible.
        let pixels = PLOT as u32 / 2;
        let at = (place(lane), lane.sub_lane);
        let window = self.found.window;
        Ok(lane_items(self.trace, self.labels, at, window, pixels, (style, grouping))?.items)
    }

    /// Draws a bar. Returns its colour.
    fn bar(
        &self,
        svg: &mut Svg,
        item: &LaneItem,
        (y, height): (f64, f64),
        with_words: bool,
    ) -> &'static str {
        let colour = colours::bar(item, self.labels);
        let range = item.range.intersection(self.found.window);
        let scale = scale_of(self.found.window);
        let x = scale.at(range.start.as_f64());
        let end = scale.at(range.end.as_f64());
        let rect = PxRect { x, y, width: (end - x - 0.4).max(0.4), height: height - 1.0 };
        let words = item.text(self.labels);
        let balance = item.tile_balance().filter(|_| item.steps() == 1);
        let balance =
            balance.map_or_else(String::new, |of| format!(", tile balance {}", percent(of)));
        let title = format!("{}, {} cycles{balance}", shown(&words), item.range.length());
        svg.rect_with(rect, colour, &title);
        if with_words {
            svg.bar_text(PxRect { height: rect.height.min(BAR), ..rect }, colour, &words);
        }
        colour
    }
}

/// The meanings of the colours of bars.
const LEGEND: [(&str, &str); 12] = [
    ("compute", "Compute"),
    ("group", "Part of a name"),
    ("internal-exchange", "Internal exchange"),
    ("global-exchange", "Global exchange"),
    ("internal-sync", "Sync inside an IPU"),
    ("external-sync", "Sync with other IPUs"),
    ("stream-copy", "Stream copy"),
    ("stream-begin", "Host wait"),
    ("stream-mid", "Transfer to or from the host"),
    ("remote-mid", "Transfer to or from a remote buffer"),
    ("stream-end", "End of a stream copy"),
    ("other", "Other"),
];
