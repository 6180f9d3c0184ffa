//! Pooling: planned, dealt to tiles, lowered.
//!
//! As popnn does it (poplibs lib/popnn/Pooling.cpp): every channel is independent, so samples
//! count as channels; a plan splits channels, rows and columns over tiles; one vertex a tile goes
//! through the positions of the windows.

mod plan;
mod vertex;
mod window;

pub use plan::Plan;
pub(crate) use window::Axis;

use super::context::Lowering;
use super::exchange;
use super::layout::{Layout, Order};
use super::rearrange::{WORD_BYTES, copy_cycles, copy_vertex, on_tile_copies};
use super::reduce::gcd;
use super::runs::{self, per_tile};
use super::work::{Phase, PhaseKind, Place, Temporary, VertexUse, Work};
use crate::graph::DType;
use crate::lower::elementwise::vector_width;
use plan::View;
use std::collections::BTreeMap;
use std::ops::Range;
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// What is made of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Max,
    Average,
    Sum,
}

/// What is pooled, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pass {
    /// What is made of a window.
    pub kind: Kind,
    /// Whether this is the gradient.
    pub backward: bool,
}

/// A pooling of `[batch, channels, planes, rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pooling {
    /// What is pooled, and which way.
    pub pass: Pass,
    pub dtype: DType,
    pub batch: u64,
    pub channels: u64,
    /// Planes, rows and columns.
    pub axes: [Axis; 3],
    /// Channels of what is pooled that lie together in memory: the operand, or going back the
    /// gradient.
    pub grouping: u64,
    /// Going back: the same of the forward operand.
    pub forward_grouping: u64,
}

/// The phases of a pooling and how its result lies.
#[derive(Clone, Debug)]
pub(crate) struct Pooled {
    pub work: Work,
    pub layout: Layout,
}

/// Channels of a group that other operations like, and the share of more cycles it may cost.
const PREFERRED_GROUP_BYTES: u64 = 32;

impl Pooling {
    fn view(&self) -> View {
        let Self { pass, dtype, batch, channels, axes, grouping, .. } = *self;
        View { pass, dtype, batch, channels, axes, grouping }
    }

    /// The view and plan to carry out; a preferred grouping may cost a third more.
    fn planned(&self, tiles: u64, bytes_per_cycle: u64) -> Option<(View, Plan)> {
        let view = self.view();
        let narrow = vector_width(self.dtype);
        let preferred = PREFERRED_GROUP_BYTES / self.dtype.bytes();
        let seen = |channels: u64| {
            let view = if self.pass.backward { view } else { view.gathered(channels) };
            view.widened()
        };
        let free = seen(narrow);
        let plan = free.plan(tiles, bytes_per_cycle, 1)?;
        let wide = seen(preferred);
        if plan.group < preferred && wide.channels >= preferred {
            let kept = wide.plan(tiles, bytes_per_cycle, preferred);
            if let Some(kept) = kept.filter(|kept| kept.cycles < plan.cycles * 4 / 3) {
                return Some((wide, kept));
            }
        }
        Some((free, plan))
    }

    /// Lowers the pooling; `sources` are the bytes on each tile of all it reads. `None` where no
    /// window fits.
    pub(crate) fn lower(
        &self,
        tiles: u32,
        bytes_per_cycle: u64,
        sources: &TileRuns<u64>,
    ) -> Option<Pooled> {
        let (view, plan) = self.planned(u64::from(tiles), bytes_per_cycle)?;
        let boxes = boxes(&view, &plan);
        let name = self.name();
        let reads: Vec<[Read; 2]> =
            boxes.iter().map(|piece| self.reads(&view, plan.group, piece)).collect();
        let on_tiles = |value: fn(&Read) -> u64| {
            per_tile((0u32..).zip(reads.iter().map(|reads| reads.iter().map(value).sum())))
        };
        let received = on_tiles(|read| read.bytes);
        let mut work = Work::default();
        work.push_some(exchange::phase(name, &received, sources, (4, 4), tiles, bytes_per_cycle));
        if reads.iter().flatten().any(|read| read.piece.is_some()) {
            let vertex = copy_vertex(self.dtype, gcd(plan.group, view.grouping));
            work.push(on_tile_copies(name, vertex, &on_tiles(Read::copy_cycles)));
        }
        work.push(compute(&view, name, self.vertex_type(), &boxes));
        let phases = work.phases().len();
        let mut keep = |what: &str, category, bytes, live| {
            let name = format!("{name}/{what}");
            work.temporaries.push(Temporary { name, category, bytes, place: Place::Any, live });
        };
        keep("message", Category::Message, received, 0..phases);
        keep("rearranged", Category::Rearrangement, on_tiles(Read::copied_bytes), 1..phases);
        let layout = self.layout(&plan, &boxes);
        Some(Pooled { work, layout })
    }

    /// Results on each tile, in groups of channels.
    fn layout(&self, plan: &Plan, boxes: &[vertex::Box]) -> Layout {
        let results =
            boxes.iter().map(|piece| piece.batch * piece.groups * piece.results() * plan.group);
        let elements = per_tile((0u32..).zip(results));
        let real = self.axes.map(|axis| axis.results(self.pass.backward)).iter().product::<u64>()
            * self.batch
            * self.channels;
        Layout {
            elements: runs::trimmed(&elements, real),
            order: Order::Grouped { axis: 1, group: plan.group },
        }
    }

    fn name(&self) -> &'static str {
        match (self.pass.kind, self.pass.backward) {
            (Kind::Max, false) => "maxPool/Fwd/Pool",
            (Kind::Max, true) => "maxPool/Bwd/Pool",
            (Kind::Average, false) => "avgPool/Fwd/Pool",
            (Kind::Average, true) => "avgPool/Bwd/Pool",
            (Kind::Sum, false) => "sumPool/Fwd/Pool",
            (Kind::Sum, true) => "sumPool/Bwd/Pool",
        }
    }

    fn vertex_type(&self) -> String {
        let ty = self.dtype.poplar_name();
        match (self.pass.kind, self.pass.backward) {
            (Kind::Max, false) => format!("popnn::MaxPooling<{ty}>"),
            (Kind::Max, true) => format!("popnn::MaxPoolingGrad<{ty}>"),
            _ => format!("popnn::SumPooling<{ty}>"),
        }
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// What each tile makes, tiles in the order of channels, samples, planes, rows, columns.
fn boxes(view: &View, plan: &Plan) -> Vec<vertex::Box> {
    let part = |size: u64, parts: u64, index: u64| index * size / parts..(index + 1) * size / parts;
    let groups = view.channels.div_ceil(plan.group);
    let vectors = plan.group / vector_width(view.dtype);
    let (sizes, parts) = (view.results(), plan.field);
    let field_parts: u64 = parts.iter().product();
    let mut boxes = Vec::new();
    for channel in 0..plan.groups {
        for sample in 0..plan.batch {
            for place in 0..field_parts {
                let at =
                    [place / parts[2] / parts[1], place / parts[2] % parts[1], place % parts[2]];
                boxes.push(vertex::Box {
                    batch: length(&part(view.batch, plan.batch, sample)),
                    groups: length(&part(groups, plan.groups, channel)),
                    vectors,
                    field: [0, 1, 2].map(|axis| part(sizes[axis], parts[axis], at[axis])),
                });
            }
        }
    }
    boxes
}

/// What a tile reads of one kind of operand.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    bytes: u64,
    /// Bytes that lie together, where channels come in other groups than the vertex reads.
    piece: Option<u64>,
}

impl Read {
    fn copy_cycles(&self) -> u64 {
        self.piece.map_or(0, |piece| copy_cycles(self.bytes, piece))
    }

    /// Bytes that must be copied aside: an exchange puts words in their places itself.
    fn copied_bytes(&self) -> u64 {
        self.piece.filter(|piece| !piece.is_multiple_of(WORD_BYTES)).map_or(0, |_| self.bytes)
    }
}

impl Pooling {
    /// What a tile reads for its box: what is pooled, and going back to a maximum the forward
    /// operand.
    fn reads(&self, view: &View, group: u64, piece: &vertex::Box) -> [Read; 2] {
        let Pass { kind, backward } = view.pass;
        let bytes = view.dtype.bytes();
        let channels = piece.batch * piece.groups * group * bytes;
        let along = view.axes.iter().zip(&piece.field);
        let operands: u64 =
            along.map(|(axis, range)| length(&axis.operands(backward, range.clone()))).product();
        let results = piece.results();
        let read = |elements: u64, grouping: u64| Read {
            bytes: elements * channels,
            piece: (grouping != group).then(|| gcd(grouping, group) * bytes),
        };
        if kind == Kind::Max && backward {
            // The forward result lies as its gradient does.
            [read(2 * operands, view.grouping), read(results, self.forward_grouping)]
        } else {
            [read(operands, view.grouping), Read::default()]
        }
    }
}

/// Bytes of a run in a worklist: two offsets and a count of 16 bits each.
const RUN_BYTES: u64 = 6;

/// Bytes a vertex has for each row of its worklists: where it is and how long, packed.
const ROW_BYTES: u64 = 4;

/// Bytes of the positions at which workers start.
const START_BYTES: u64 = 12;

/// The compute set of all tiles.
fn compute(view: &View, name: &str, vertex_type: String, boxes: &[vertex::Box]) -> Phase {
    let mut known: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    let mut cycles = Vec::with_capacity(boxes.len());
    let mut uses: BTreeMap<(u64, u64), Vec<(u32, u64)>> = BTreeMap::new();
    for (tile, piece) in (0u32..).zip(boxes) {
        let (busy, fields, constants) =
            *known.entry(format!("{piece:?}")).or_insert_with(|| vertex_of(view, piece));
        cycles.push((tile, busy));
        uses.entry((fields, constants)).or_default().push((tile, 1));
    }
    let edges = if view.pass.kind == Kind::Max && view.pass.backward { 4 } else { 2 };
    let vertices = uses
        .into_iter()
        .map(|((field_bytes, constant_bytes), tiles)| VertexUse {
            vertex_type: vertex_type.clone(),
            count: per_tile(tiles),
            edges,
            field_bytes,
            constant_bytes,
        })
        .collect();
    let kind = PhaseKind::Compute { cycles: per_tile(cycles), vertices };
    Phase { name: name.to_string(), kind }
}

/// Cycles, bytes of fields and bytes of constants of the vertex that makes a box.
fn vertex_of(view: &View, piece: &vertex::Box) -> (u64, u64, u64) {
    let lists = vertex::lists(view.pass, view.axes, piece);
    let total = |count: fn(&vertex::WorkList) -> u64| lists.iter().map(count).sum::<u64>();
    let (rows, runs) = (total(|list| list.rows), total(|list| list.runs));
    let results = piece.batch * piece.results();
    let busy =
        vertex::cycles(view.pass, piece.groups, piece.vectors, results, lists.iter().copied());
    (busy, rows * ROW_BYTES, START_BYTES + runs * RUN_BYTES)
}

/// Lowers a pooling of a graph; `operands` are how its operands lie.
pub(crate) fn lower(
    lowering: &Lowering,
    pooling: &Pooling,
    operands: &[Layout],
) -> Option<(Work, Layout)> {
    let bytes = pooling.dtype.bytes();
    let sources = operands
        .iter()
        .fold(TileRuns::empty(), |sum, operand| runs::add(&sum, &operand.bytes(bytes)));
    let pooled = pooling.lower(lowering.tiles, lowering.exchange_speed(), &sources)?;
    Some((pooled.work, pooled.layout))
}
