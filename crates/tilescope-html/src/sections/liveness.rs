//! What lives when, step by step of the compiled program.

use super::{PageFacts, SectionEntry};
use crate::block::{Block, LegendEntry};
use crate::svg::axis::{self, AxisUnit, Scale};
use crate::svg::{Anchor, Px, Svg, width_of};
use std::fmt::Write;
use tilescope_analysis::liveness::{LivenessCurve, LivenessScope, curve};
use tilescope_analysis::program_tree;
use tilescope_report::ReportError;
use tilescope_report::units::{binary_bytes, exact_bytes, grouped};

pub(super) const SECTION: SectionEntry = SectionEntry { id: "liveness", title: "Liveness", build };

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 256.0;
/// Columns of the graph, at most.
const COLUMNS: usize = 504;

const NOT_RECORDED: &str = "The report does not say when variables are live.";

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let curve = curve(facts.report, LivenessScope::Whole)?.filter(|curve| !curve.others.is_empty());
    let Some(curve) = curve else { return Ok(vec![Block::note(NOT_RECORDED)]) };
    let peak = curve.peak().unwrap_or(0);
    let programs = facts.report.programs()?;
    let program = curve.programs.get(peak).and_then(|id| programs.get(*id));
    let name = program.map_or_else(String::new, |program| {
        format!(", {}", crate::names::shown(&program_tree::label(program)))
    });
    let each = curve.others.len().div_ceil(COLUMNS);
    let columns = match each {
        1 => String::new(),
        each => format!(" Each column is the highest of {each} steps that follow each other."),
    };
    let caption = format!(
        "Bytes live at each of {} steps, on all tiles of a replica: {} are always live, and most is \
         live at step {}{name}: {}.{columns}",
        grouped(curve.others.len() as u64),
        exact_bytes(curve.always.0),
        grouped(peak as u64),
        exact_bytes(curve.total(peak).0),
    );
    let legend = vec![
        LegendEntry::new("not-always-live", "Not always live"),
        LegendEntry::new("always-live", "Always live"),
    ];
    let mut blocks = vec![Block::figure(draw(&curve, peak, each), caption, legend)];
    for name in ["peak", "always-live"] {
        let table = facts.table("liveness", name)?;
        if table.count > 0 {
            blocks.push(Block::Table { table: table.folded() });
        }
    }
    Ok(blocks)
}

fn draw(curve: &LivenessCurve, peak: usize, each: usize) -> String {
    let mut svg = Svg::new(WIDTH, BOTTOM + 28.0);
    // What a replica has is often far above what is live: it is a line only where it helps.
    let most = curve.total(peak).as_f64().max(1.0);
    let capacity = curve.capacity.as_f64();
    let with_capacity = capacity > 0.0 && capacity <= 1.6 * most;
    let top = 1.06 * if with_capacity { most.max(capacity) } else { most };
    let y = Scale::linear((0.0, top), (BOTTOM, TOP));
    let columns: Vec<u64> = curve
        .others
        .chunks(each)
        .map(|steps| steps.iter().map(|bytes| bytes.0).max().unwrap_or(0))
        .collect();
    let x = Scale::linear((0.0, (columns.len() * each) as f64), (LEFT, WIDTH));
    axis::left(&mut svg, &y, (LEFT, WIDTH), (AxisUnit::Bytes, "bytes live"));
    let width = (x.to - x.from) / columns.len() as f64;
    let always = curve.always.as_f64();
    let mut path = format!("M{} {}", Px(LEFT), Px(y.at(always)));
    for (at, bytes) in columns.iter().enumerate() {
        let height = Px(y.at(always + *bytes as f64));
        // Writing into a text cannot fail.
        let _ = write!(path, "V{height}H{}", Px(LEFT + (at + 1) as f64 * width));
    }
    let _ = write!(path, "V{}z", Px(y.at(always)));
    svg.path(&path, "f-not-always-live");
    let foot = y.at(always);
    let rect = crate::svg::PxRect { x: LEFT, y: foot, width: WIDTH - LEFT, height: BOTTOM - foot };
    svg.rect(rect, "always-live");
    if with_capacity {
        let height = y.at(capacity);
        svg.line((LEFT, height), (WIDTH, height), "capacity");
        let words = format!("memory of a replica: {}", binary_bytes(curve.capacity.0));
        svg.text((WIDTH - 4.0, height - 5.0), Anchor::End, "label", &words);
    }
    peak_mark(&mut svg, (x.at(peak as f64 + 0.5), y.at(most)), curve, peak);
    axis::bottom(&mut svg, &x, (BOTTOM, BOTTOM + 4.0), (AxisUnit::Count, "step of the program"));
    let label = format!(
        "Bytes live at {} steps, at most {}",
        grouped(curve.others.len() as u64),
        exact_bytes(curve.total(peak).0)
    );
    svg.finish(&label)
}

/// Says where most is live.
fn peak_mark(svg: &mut Svg, (x, y): (f64, f64), curve: &LivenessCurve, peak: usize) {
    let words = format!("step {}: {}", grouped(peak as u64), binary_bytes(curve.total(peak).0));
    svg.dot((x, y), 4.0, "selection", &words);
    let (anchor, at) = match x + width_of(&words) + 12.0 > WIDTH {
        true => (Anchor::End, x - 8.0),
        false => (Anchor::Start, x + 8.0),
    };
    svg.text((at, y - 3.0), anchor, "strong", &words);
}
