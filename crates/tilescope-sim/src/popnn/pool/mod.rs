//! Pooling: planning, distribution over tiles, lowering.
//!
//! The method is that of popnn (poplibs lib/popnn/Pooling.cpp). Every channel is independent, so
//! samples count as channels. A plan splits channels, rows and columns over tiles. One vertex per
//! tile processes the positions of the windows.

mod operand_routes;
mod plan;
mod pool_axis;
mod vertex;

pub(crate) use operand_routes::PoolOperand;
pub use plan::PoolPlan;
pub(crate) use pool_axis::PoolAxis;

use crate::poplar::exchange;
use crate::poplar::exchange::{TileMessages, WORD_BYTES};
use crate::poplar::routes::WorkRoute;
use crate::poplar::tile_runs;
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{
    OperationWork, TemporaryVariable, VertexInstances, WorkPhase, WorkPhaseKind,
};
use crate::popops::elementwise::vector_width;
use crate::popops::relayout::{copy_cycles, copy_vertex, on_tile_copies};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::DType;
use crate::shape::gcd;
use crate::targets::BytesPerCycle;
use plan::PoolingPlanShape;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity, TileId, TileRuns};

/// Function of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolingType {
    Max,
    Average,
    Sum,
}

/// Function and direction of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolingPass {
    /// Function of the elements of a window.
    pub kind: PoolingType,
    /// True for the gradient.
    pub backward: bool,
}

impl PoolingPass {
    /// Debug name of the pass.
    pub(crate) fn path(self) -> &'static str {
        match (self.kind, self.backward) {
            (PoolingType::Max, false) => "maxPool/Fwd",
            (PoolingType::Max, true) => "maxPool/Bwd",
            (PoolingType::Average, false) => "avgPool/Fwd",
            (PoolingType::Average, true) => "avgPool/Bwd",
            (PoolingType::Sum, false) => "sumPool/Fwd",
            (PoolingType::Sum, true) => "sumPool/Bwd",
        }
    }
}

/// Pooling of `[batch, channels, planes, rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolingParams {
    /// Function and direction of the pooling.
    pub pass: PoolingPass,
    pub dtype: DType,
    pub batch: u64,
    pub channels: u64,
    /// Planes, rows and columns.
    pub axes: [PoolAxis; 3],
    /// Contiguous channels in memory of the operand, or of the gradient in the backward pass.
    pub grouping: u64,
    /// Contiguous channels of the forward operand, in the backward pass.
    pub forward_grouping: u64,
}

/// Phases of a pooling and the layout of its result.
#[derive(Clone, Debug)]
pub(crate) struct LoweredPooling {
    pub work: OperationWork,
    pub layout: TensorLayout,
}

/// Size of the channel group that other operations prefer, in bytes.
const PREFERRED_GROUP_BYTES: Bytes = Bytes(32);

impl PoolingParams {
    fn view(&self) -> PoolingPlanShape {
        let Self { pass, dtype, batch, channels, axes, grouping, .. } = *self;
        PoolingPlanShape { pass, dtype, batch, channels, axes, grouping }
    }

    /// The view and plan to use. A plan with the preferred grouping may take up to a third more
    /// cycles.
    fn planned(&self, tiles: u64, speed: BytesPerCycle) -> Option<(PoolingPlanShape, PoolPlan)> {
        let view = self.view();
        let narrow = vector_width(self.dtype);
        let preferred = PREFERRED_GROUP_BYTES / self.dtype.bytes();
        let free = view.with_channels(narrow);
        let plan = free.plan(tiles, speed, 1)?;
        let wide = view.with_channels(preferred);
        // Convolutions read groups of 16 halves or 8 floats, so a result in such groups saves the
        // next operation a rearrangement.
        if plan.group < preferred && wide.channels >= preferred {
            let kept = wide.plan(tiles, speed, preferred);
            if let Some(kept) = kept.filter(|kept| kept.cycles < plan.cycles * 4 / 3) {
                return Some((wide, kept));
            }
        }
        Some((free, plan))
    }

    /// Lowers the pooling of these operands. Returns `None` if no window fits.
    pub(crate) fn lower(
        &self,
        tiles: u32,
        speed: BytesPerCycle,
        operands: &[PoolOperand],
    ) -> Option<LoweredPooling> {
        let bytes = self.dtype.bytes();
        let sources = operands.iter().fold(TileRuns::empty(), |sum, operand| {
            tile_runs::add_per_tile(&sum, &operand.layout.bytes(bytes))
        });
        let (view, plan) = self.planned(u64::from(tiles), speed)?;
        let boxes = boxes(&view, &plan);
        let name = &format!("{}/Pool", self.pass.path());
        let reads: Vec<[PoolingOperandRead; 2]> =
            boxes.iter().map(|piece| self.reads(&view, plan.group, piece)).collect();
        let received = on_tiles(&reads, |read| read.bytes);
        let mut work = OperationWork::default();
        let messages = TileMessages::each_way(4);
        let mut phase =
            exchange::phase(name, &received, &self.sent(&sources), messages, tiles, speed);
        if let Some(WorkPhaseKind::Exchange { traffic, routes, .. }) =
            phase.as_mut().map(|phase| &mut phase.kind)
        {
            *routes = operand_routes::with_rest(traffic, self.routes(&view, &plan, operands));
        }
        work.push_some(phase);
        if reads.iter().flatten().any(|read| read.piece.is_some()) {
            let vertex = copy_vertex(self.dtype, gcd(plan.group, view.grouping));
            work.push(on_tile_copies(
                name,
                vertex,
                &on_tiles(&reads, PoolingOperandRead::copy_cycles),
            ));
        }
        work.push(compute(&view, name, self.vertex_type(), &boxes));
        let phases = work.phases().len();
        let mut keep = |what: &str, category, bytes, live| {
            let name = format!("{name}/{what}");
            work.temporaries.push(TemporaryVariable::anywhere(name, category, bytes, live));
        };
        keep("message", MemoryCategory::Message, received, 0..phases);
        keep(
            "rearranged",
            MemoryCategory::Rearrangement,
            on_tiles(&reads, PoolingOperandRead::copied_bytes),
            1..phases,
        );
        let layout = self.layout(&plan, &boxes);
        Some(LoweredPooling { work, layout })
    }

    /// Routes of the operands, if the view of the plan keeps their axes.
    fn routes(
        &self,
        view: &PoolingPlanShape,
        plan: &PoolPlan,
        operands: &[PoolOperand],
    ) -> Vec<WorkRoute> {
        let is_kept =
            view.batch == self.batch && view.channels == self.channels && view.axes == self.axes;
        if !is_kept {
            return Vec::new();
        }
        let places = box_places(plan);
        let sizes = view.results();
        let groups = view.channels.div_ceil(plan.group);
        let mut routes = Vec::new();
        for operand in operands {
            let skipped = 5 - operand.ty.shape.len().min(5);
            let mut ranges = Vec::new();
            for [channel, sample, at @ ..] in &places {
                let channels = part(groups, plan.groups, *channel);
                let end = (channels.end * plan.group).min(view.channels);
                let mut of_box = vec![
                    part(view.batch, plan.batch, *sample),
                    (channels.start * plan.group).min(end)..end,
                ];
                for axis in skipped..3 {
                    let results = part(sizes[axis], plan.field[axis], at[axis]);
                    of_box.push(if operand.is_like_result {
                        results
                    } else {
                        view.axes[axis].operands(view.pass.backward, results)
                    });
                }
                ranges.push(of_box);
            }
            let [planes, rows, columns] = plan.field;
            let parts = vec![plan.groups, plan.batch, planes, rows, columns];
            let boxes = operand_routes::OperandBoxes { ranges, parts };
            routes.extend(operand_routes::route_to_boxes(operand.ty, operand.layout, &boxes));
        }
        routes
    }

    /// Bytes of the operands on each tile that windows read. The location of rows is unknown here,
    /// so rows that no window reads are assumed to be spread evenly over all tiles.
    fn sent(&self, sources: &TileRuns<Bytes>) -> TileRuns<Bytes> {
        let backward = self.pass.backward;
        let mut all = 1;
        let mut read = 1;
        for axis in self.axes {
            all *= u128::from(axis.operand_size(backward));
            read *= u128::from(axis.read_operands(backward));
        }
        let all = all.max(1);
        sources.map(|bytes| u64::try_from(u128::from(bytes.0) * read / all).map_or(*bytes, Bytes))
    }

    /// Results on each tile, in groups of channels.
    fn layout(&self, plan: &PoolPlan, boxes: &[vertex::PoolOutputBox]) -> TensorLayout {
        let results = boxes
            .iter()
            .map(|piece| Elements(piece.batch * piece.groups * piece.results() * plan.group));
        let elements = per_tile(TileId(0).onwards().zip(results));
        let real = self.axes.map(|axis| axis.results(self.pass.backward)).iter().product::<u64>()
            * self.batch
            * self.channels;
        let shape = [self.batch, self.channels, real / (self.batch * self.channels).max(1)];
        TensorLayout {
            elements: tile_runs::trimmed(&elements, Elements(real)),
            order: ElementOrder::grouped(&shape, 1, plan.group),
        }
    }

    fn vertex_type(&self) -> String {
        let ty = self.dtype.poplar_name();
        match (self.pass.kind, self.pass.backward) {
            (PoolingType::Max, false) => format!("popnn::MaxPooling<{ty}>"),
            (PoolingType::Max, true) => format!("popnn::MaxPoolingGrad<{ty}>"),
            _ => format!("popnn::SumPooling<{ty}>"),
        }
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Boxes of results that the tiles compute, in the order of channels, samples, planes, rows,
/// columns.
fn boxes(view: &PoolingPlanShape, plan: &PoolPlan) -> Vec<vertex::PoolOutputBox> {
    let groups = view.channels.div_ceil(plan.group);
    let vectors = plan.group / vector_width(view.dtype);
    let sizes = view.results();
    let mut boxes = Vec::new();
    for [channel, sample, at @ ..] in box_places(plan) {
        boxes.push(vertex::PoolOutputBox {
            batch: length(&part(view.batch, plan.batch, sample)),
            groups: length(&part(groups, plan.groups, channel)),
            vectors,
            field: [0, 1, 2].map(|axis| part(sizes[axis], plan.field[axis], at[axis])),
        });
    }
    boxes
}

/// Indices of the parts of each box: channels, samples, planes, rows and columns.
fn box_places(plan: &PoolPlan) -> Vec<[u64; 5]> {
    let parts = plan.field;
    let field_parts: u64 = parts.iter().product();
    let mut places = Vec::new();
    for channel in 0..plan.groups {
        for sample in 0..plan.batch {
            for place in 0..field_parts {
                let [plane, row] = [place / parts[2] / parts[1], place / parts[2] % parts[1]];
                places.push([channel, sample, plane, row, place % parts[2]]);
            }
        }
    }
    places
}

/// Part `index` of `parts` even parts of `size`.
fn part(size: u64, parts: u64, index: u64) -> Range<u64> {
    index * size / parts..(index + 1) * size / parts
}

/// Bytes that a tile reads of one kind of operand.
#[derive(Clone, Copy, Debug, Default)]
struct PoolingOperandRead {
    bytes: Bytes,
    /// Contiguous bytes, if channels are in other groups than the vertex reads.
    piece: Option<Bytes>,
}

impl PoolingOperandRead {
    /// Bytes of the pieces in which channels in groups of `grouping` are copied to groups of
    /// `group`, or `None` if the groups are equal. `element` is the size of an element.
    fn piece(grouping: u64, group: u64, element: Bytes) -> Option<Bytes> {
        if grouping == group { None } else { Some(gcd(grouping, group) * element) }
    }

    fn copy_cycles(&self) -> Cycles {
        self.piece.map_or(Cycles::ZERO, |piece| copy_cycles(self.bytes, piece))
    }

    /// Bytes that are copied separately. An exchange itself puts whole words in their places.
    fn copied_bytes(&self) -> Bytes {
        let odd = self.piece.filter(|piece| !(*piece % WORD_BYTES).is_zero());
        odd.map_or(Bytes::ZERO, |_| self.bytes)
    }
}

impl PoolingParams {
    /// Bytes that a tile reads for its box: the pooled operand, and for the gradient of a maximum
    /// also the forward operand.
    fn reads(
        &self,
        view: &PoolingPlanShape,
        group: u64,
        piece: &vertex::PoolOutputBox,
    ) -> [PoolingOperandRead; 2] {
        let PoolingPass { kind, backward } = view.pass;
        let bytes = view.dtype.bytes();
        let channels = piece.batch * piece.groups * group * bytes;
        let along = view.axes.iter().zip(&piece.field);
        let operands: u64 =
            along.map(|(axis, range)| length(&axis.operands(backward, range.clone()))).product();
        let results = piece.results();
        let operand_piece = PoolingOperandRead::piece(view.grouping, group, bytes);
        if kind == PoolingType::Max && backward {
            // The forward result has the layout of its gradient.
            let forward_piece = PoolingOperandRead::piece(self.forward_grouping, group, bytes);
            [
                PoolingOperandRead { bytes: 2 * operands * channels, piece: operand_piece },
                PoolingOperandRead { bytes: results * channels, piece: forward_piece },
            ]
        } else {
            [
                PoolingOperandRead { bytes: operands * channels, piece: operand_piece },
                PoolingOperandRead::default(),
            ]
        }
    }
}

/// Sum for each tile over its operands.
fn on_tiles<T: Quantity>(
    reads: &[[PoolingOperandRead; 2]],
    value: fn(&PoolingOperandRead) -> T,
) -> TileRuns<T> {
    per_tile(TileId(0).onwards().zip(reads.iter().map(|reads| reads.iter().map(value).sum())))
}

/// Bytes of a run in a worklist: two offsets and a count of 16 bits each.
const WORKLIST_RUN_BYTES: Bytes = Bytes(6);

/// Bytes of a vertex for each row of its worklists: position and length, packed.
const WORKLIST_ROW_BYTES: Bytes = Bytes(4);

/// Bytes of the positions at which workers start.
const WORKER_START_BYTES: Bytes = Bytes(12);

/// Returns the compute set of all tiles.
fn compute(
    view: &PoolingPlanShape,
    name: &str,
    vertex_type: String,
    boxes: &[vertex::PoolOutputBox],
) -> WorkPhase {
    let mut known: HashMap<&vertex::PoolOutputBox, PoolVertexCost> = HashMap::new();
    let mut cycles = Vec::with_capacity(boxes.len());
    let mut uses: BTreeMap<(Bytes, Bytes), Vec<(TileId, u64)>> = BTreeMap::new();
    for (tile, piece) in TileId(0).onwards().zip(boxes) {
        let cost = known.entry(piece).or_insert_with(|| vertex_cost(view, piece));
        cycles.push((tile, cost.cycles));
        uses.entry((cost.field_bytes, cost.constant_bytes)).or_default().push((tile, 1));
    }
    let edges = if view.pass.kind == PoolingType::Max && view.pass.backward { 4 } else { 2 };
    let vertices = uses
        .into_iter()
        .map(|((field_bytes, constant_bytes), tiles)| VertexInstances {
            vertex_type: vertex_type.clone(),
            count: per_tile(tiles),
            edges,
            field_bytes,
            constant_bytes,
            flops: None,
        })
        .collect();
    let kind = WorkPhaseKind::Compute { cycles: per_tile(cycles), vertices };
    WorkPhase { name: name.to_string(), kind }
}

/// Cost of a pooling vertex on a tile.
struct PoolVertexCost {
    cycles: Cycles,
    field_bytes: Bytes,
    constant_bytes: Bytes,
}

/// Cost of the vertex that computes a box.
fn vertex_cost(view: &PoolingPlanShape, piece: &vertex::PoolOutputBox) -> PoolVertexCost {
    let lists = vertex::lists(view.pass, view.axes, piece);
    let rows: u64 = lists.iter().map(|list| list.rows).sum();
    let runs: u64 = lists.iter().map(|list| list.runs).sum();
    let results = piece.batch * piece.results();
    let lists = lists.iter().copied();
    PoolVertexCost {
        cycles: vertex::cycles(view.pass, piece.groups, piece.vectors, results, lists),
        field_bytes: rows * WORKLIST_ROW_BYTES,
        constant_bytes: WORKER_START_BYTES + runs * WORKLIST_RUN_BYTES,
    }
}
