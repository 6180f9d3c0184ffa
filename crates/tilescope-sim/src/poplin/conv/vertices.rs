//! Vertices of a pass and their actual cycles.
//!
//! The planner assumes that every kernel position covers the whole field. An actual worklist holds
//! only the outputs that a position contributes to, which are fewer with padding and strides. The
//! use of the 1x1 vertex is decided for each tile (poplibs `ConvVertices.cpp`).

use super::tile_parts::{ConvTilePart, PartitionedConv, length};
use crate::cost_constants::CONV_FIELD_BYTES;
use crate::poplar::work::VertexInstances;
use crate::poplin::estimate::amp::AmpCycleEstimator;
use crate::poplin::estimate::worker_partition::ConvOutputRows;
use crate::poplin::estimate::{ConvVertexContext, ConvVertexWork, vertex_cycles};
use crate::poplin::planner::ConvPlan;
use crate::poplin::planner::cost_model::ConvGrainSize;
use crate::poplin::planner::vertex_candidates::{ConvMethod, SLIC_WINDOW};
use crate::shape::DType;
use crate::targets::IpuTarget;
use std::collections::{BTreeMap, HashMap};
use tilescope_report::units::{Bytes, Cycles, TileId, TileRange, TileRuns};

/// Bytes of one entry of a worklist: three 16-bit numbers.
const WORKLIST_ENTRY_BYTES: Bytes = Bytes(6);

/// Bytes of an entry of a list of worklists: the start and length of one (poplibs
/// `ConvPartialnx1.cpp`, COMPACT_DELTAN).
const WORKLIST_POINTER_BYTES: Bytes = Bytes(4);

/// Bytes of one edge in the state of a conv vertex.
const POINTER_BYTES: Bytes = Bytes(4);

/// Bytes of input that the matrix engine loads per cycle.
const LOAD_BYTES: Bytes = Bytes(8);

/// Cycles of the nx1 vertex for each outer kernel position (poplibs
/// `getConvPartialnx1SupervisorInnerLoopCycleEstimate`).
const OUTER_POSITION_CYCLES: Cycles = Cycles(14);

/// Maximum number of different row lengths that are distinguished in one dimension. Padding leads
/// to about one per kernel element, so only unrealistic shapes reach it. For these it limits the
/// run time.
const MAX_ROW_LENGTHS: u64 = 64;

/// One vertex on one tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvTileVertex {
    pub cycles: Cycles,
    /// Vertex type as in profiles.
    pub vertex_type: String,
    pub edges: u64,
    /// Bytes of the arrays that its fields point to.
    pub field_bytes: Bytes,
    /// Bytes of its worklists.
    pub constant_bytes: Bytes,
    /// Floating-point operations, including those on padding.
    pub flops: u64,
}

/// Cost and type of a vertex.
struct ConvVertexCost {
    /// Number of worklists in its list of worklists.
    lists: u64,
    /// Number of entries of all worklists.
    entries: u64,
    cycles: Cycles,
    vertex_type: String,
}

/// Everything that determines the cycles of a part. Equal keys mean equal vertices.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ConvVertexKey {
    work: ConvVertexWork,
    /// For each dimension, pairs of a number of active outputs and the number of kernel positions
    /// with it.
    positions: [Vec<(u64, u64)>; 3],
    may_use_1x1: bool,
}

/// For each dimension, true if the vertices read their input with padding and dilation applied.
pub(crate) fn explicit_dims(plan: &ConvPlan, machine: &IpuTarget) -> [bool; 3] {
    let slic = matches!(plan.vertex.method, ConvMethod::Slic { .. });
    [slic || plan.vertex.kernel_height(machine) > 1, slic, slic]
}

/// Returns the vertices of all parts, in tile order.
pub(crate) fn convolve(
    plan: &ConvPlan,
    machine: &IpuTarget,
    layout: &PartitionedConv,
) -> Vec<ConvTileVertex> {
    let builder = ConvVertexBuilder::new(plan, machine, layout);
    // Most tiles have equal parts at different positions, and finding active outputs iterates over
    // kernel positions, so both are cached.
    let mut axes = DimActiveOutputsCache::default();
    let mut made: HashMap<ConvVertexKey, ConvTileVertex> = HashMap::new();
    layout
        .parts
        .iter()
        .map(|part| {
            let key = builder.key(part, &mut axes);
            made.entry(key.clone()).or_insert_with(|| builder.vertex(&key)).clone()
        })
        .collect()
}

/// One dimension of a part: pairs of a number of active outputs and the number of kernel positions
/// with it, and true if all of them write every output.
type DimActiveOutputs = (Vec<(u64, u64)>, bool);

/// Results by dimension, outputs and kernel elements.
type DimActiveOutputsCache = HashMap<(usize, [u64; 4]), DimActiveOutputs>;

struct ConvVertexBuilder<'a> {
    plan: &'a ConvPlan,
    machine: &'a IpuTarget,
    layout: &'a PartitionedConv,
    grain: ConvGrainSize,
    height: u64,
    /// For each dimension, true if the input transforms are applied before the vertex, so that
    /// every position covers all outputs.
    explicit: [bool; 3],
    context: ConvVertexContext,
}

impl<'a> ConvVertexBuilder<'a> {
    fn new(plan: &'a ConvPlan, machine: &'a IpuTarget, layout: &'a PartitionedConv) -> Self {
        let height = plan.vertex.kernel_height(machine);
        let explicit = explicit_dims(plan, machine);
        let dims = layout.dims();
        let mut dilation = [1; 3];
        let mut stride = [1; 3];
        for (dim, field) in layout.slice.dims.iter().enumerate() {
            // If the tile itself applies dilation and padding, the vertex reads a plain field.
            dilation[dim] = if explicit[dim] { 1 } else { field.input_transform.dilation };
            stride[dim] = field.output_transform.stride;
        }
        let context = ConvVertexContext {
            vertex: plan.vertex,
            dims,
            dilation,
            stride,
            innermost_stride: stride[dims - 1],
            may_use_1x1: false,
            float_output: plan.params.output_type == DType::Float,
        };
        Self {
            plan,
            machine,
            layout,
            grain: ConvGrainSize::of_vertex(&plan.vertex),
            height,
            explicit,
            context,
        }
    }

    fn key(&self, part: &ConvTilePart, axes: &mut DimActiveOutputsCache) -> ConvVertexKey {
        let mut positions: [Vec<(u64, u64)>; 3] = Default::default();
        let mut covers = true;
        let mut same_steps = true;
        for (dim, counts) in positions.iter_mut().enumerate().take(self.layout.dims()) {
            let outputs = &part.field[dim];
            let kernel = &part.kernel[dim];
            let at = (dim, [outputs.start, outputs.end, kernel.start, kernel.end]);
            let (found, full) = axes.entry(at).or_insert_with(|| self.axis(part, dim)).clone();
            *counts = found;
            covers &= full;
            same_steps &=
                // The 1x1 vertex steps through input and output alike. A single output takes no
                // step.
                length(outputs) == 1 || self.context.dilation[dim] == self.context.stride[dim];
        }
        let work = ConvVertexWork {
            batch: part.batch,
            field: std::array::from_fn(|dim| length(&part.field[dim])),
            kernel: std::array::from_fn(|dim| length(&part.kernel[dim])),
            conv_groups: part.groups.size / self.grain.groups,
            in_groups: part.in_channels.size / self.grain.in_channels,
            out_groups: part.out_channels.size / self.grain.out_channels,
        };
        let may_use_1x1 = covers && same_steps && part.kernel_elements() == 1 && self.height == 1;
        ConvVertexKey { work, positions, may_use_1x1 }
    }

    /// Returns the active outputs of dimension `dim`.
    fn axis(&self, part: &ConvTilePart, dim: usize) -> DimActiveOutputs {
        let field = &self.layout.slice.dims[dim];
        let outputs = &part.field[dim];
        let kernel = &part.kernel[dim];
        if self.explicit[dim] {
            let positions = length(kernel).div_ceil(self.positions_together(dim));
            return (vec![(length(outputs), positions)], true);
        }
        let step = self.context.active_step(dim);
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut covers = true;
        for position in kernel.clone() {
            let touched = field.outputs_of_kernel(outputs, position);
            covers &= touched == *outputs;
            *counts.entry(length(&touched).div_ceil(step)).or_default() += 1;
        }
        (coarsened(counts).into_iter().collect(), covers)
    }

    /// Number of kernel elements of dimension `dim` that the vertex processes at once.
    fn positions_together(&self, dim: usize) -> u64 {
        let slic = matches!(self.plan.vertex.method, ConvMethod::Slic { .. });
        match dim {
            _ if slic && dim + 1 == self.layout.dims() => SLIC_WINDOW,
            0 if !slic => self.height,
            _ => 1,
        }
    }

    fn vertex(&self, key: &ConvVertexKey) -> ConvTileVertex {
        let work = &key.work;
        let ConvVertexCost { lists, entries, cycles, vertex_type } = match self.plan.vertex.method {
            ConvMethod::Amp { conv_units } => self.amp(key, conv_units),
            method => ConvVertexCost {
                lists: 0,
                entries: self.rows(key).count.max(self.machine.workers()),
                cycles: vertex_cycles(&self.context, self.machine, work).unwrap_or_default(),
                vertex_type: self.plain_name(method),
            },
        };
        // One pointer for each group of input, of output and of weights, and one for the worklist.
        let operands = work.conv_groups * (work.in_groups + work.out_groups)
            + work.conv_groups * work.in_groups * work.out_groups;
        let edges = operands + 1;
        ConvTileVertex {
            cycles,
            vertex_type,
            edges,
            field_bytes: edges * POINTER_BYTES
                + CONV_FIELD_BYTES.bytes()
                + lists * WORKLIST_POINTER_BYTES,
            constant_bytes: entries * WORKLIST_ENTRY_BYTES,
            flops: 2 * self.macs(key),
        }
    }

    /// Multiply-accumulates of a vertex, including those on padding: each kernel position
    /// multiplies all elements that the vertex processes at a time, for all of its active outputs.
    fn macs(&self, key: &ConvVertexKey) -> u64 {
        let along = (0..self.layout.dims()).map(|dim| {
            let hits: u64 = key.positions[dim].iter().map(|(active, count)| active * count).sum();
            hits * self.positions_together(dim)
        });
        let ConvVertexWork { batch, conv_groups, in_groups, out_groups, .. } = key.work;
        along.product::<u64>()
            * batch
            * (conv_groups * self.grain.groups)
            * (in_groups * self.grain.in_channels)
            * (out_groups * self.grain.out_channels)
    }

    /// Outputs of the fullest position of all dimensions, in rows of the innermost one.
    fn rows(&self, key: &ConvVertexKey) -> ConvOutputRows {
        let last = self.layout.dims() - 1;
        let mut rows = ConvOutputRows { count: key.work.batch, length: 1 };
        for (dim, positions) in key.positions[..=last].iter().enumerate() {
            let most = positions.iter().map(|(active, _)| *active).max().unwrap_or(1);
            if dim == last {
                rows.length = most;
            } else {
                rows.count *= most;
            }
        }
        rows
    }

    /// Returns true if all 16 units compute sums in a narrower type than requested. These run on
    /// the nx1 vertex. This is inferred from the weight updates of at most 16 samples on the second
    /// generation, whose cycles are far from those of the 1x1 vertex although its plan has their
    /// bytes.
    fn has_narrow_sums(&self, units: u64) -> bool {
        let asked = self.plan.options.partials_for(self.plan.params.input_type);
        units == 16 && self.plan.vertex.partial_type.bytes() < asked.bytes()
    }

    fn amp(&self, key: &ConvVertexKey, units: u64) -> ConvVertexCost {
        let engine = AmpCycleEstimator::new(&self.plan.vertex, self.machine, units);
        let workers = self.machine.workers();
        let rows = self.rows(key);
        // Its worklist has one entry per worker. poplibs uses an nx1 vertex for more entries
        // instead of a second type of 1x1 vertex (`ConvVertices.cpp`).
        let one_row_each = (0..workers).all(|worker| {
            rows.count * rows.length == 0 || rows.worker_share(worker, workers).entries() <= 1
        });
        if key.may_use_1x1 && one_row_each && !self.has_narrow_sums(units) {
            let cycles = engine.cycles_1x1(&key.work, rows);
            let vertex_type = self.amp_name("1x1Out", units);
            return ConvVertexCost { lists: 0, entries: workers, cycles, vertex_type };
        }
        let last = self.layout.dims() - 1;
        let mut inner = Cycles::ZERO;
        let mut entries = 0;
        let mut all_positions = 0;
        // Positions of all outer dimensions: number of active rows and number of occurrences.
        let mut outer = vec![(key.work.batch, 1)];
        for dim in 0..last {
            let along = &key.positions[dim];
            outer = outer
                .iter()
                .flat_map(|(rows, times)| {
                    along.iter().map(move |(active, count)| (rows * active, times * count))
                })
                .collect();
        }
        for (count, times) in outer {
            for (length, columns) in &key.positions[last] {
                let rows = ConvOutputRows { count, length: *length };
                let positions = times * columns;
                all_positions += positions;
                inner += positions * engine.kernel_position_cycles_nx1(rows, self.height);
                let lists = (0..workers).map(|worker| {
                    if count * length == 0 {
                        0
                    } else {
                        rows.worker_share(worker, workers).entries()
                    }
                });
                // Workers without outputs keep an empty entry, because lists are indexed by worker
                // number.
                entries += positions * lists.sum::<u64>().max(workers);
            }
        }
        let outer_positions: u64 = key.positions[0].iter().map(|(_, count)| *count).sum();
        let field: u64 = key.work.field.iter().product::<u64>() * key.work.batch;
        let cycles = engine.cycles_nx1(
            self.machine,
            &self.plan.vertex,
            &key.work,
            inner + outer_positions * OUTER_POSITION_CYCLES,
            field,
        );
        let vertex_type = self.amp_name("nx1", units);
        ConvVertexCost { lists: all_positions * workers, entries, cycles, vertex_type }
    }

    fn amp_name(&self, kind: &str, units: u64) -> String {
        let vertex = &self.plan.vertex;
        // Elements of input that the engine reads per cycle, as in the names of later Poplar
        // versions.
        let load_elements = LOAD_BYTES / vertex.input_type.bytes();
        format!(
            "poplin::ConvPartial{kind}<{},{},true,{},{units},{load_elements},false>",
            vertex.input_type.poplar_name(),
            vertex.partial_type.poplar_name(),
            vertex.wide_weight_loads,
        )
    }

    fn plain_name(&self, method: ConvMethod) -> String {
        let vertex = &self.plan.vertex;
        let input = vertex.input_type.poplar_name();
        let partial = vertex.partial_type.poplar_name();
        match method {
            ConvMethod::Amp { conv_units } => self.amp_name("nx1", conv_units),
            ConvMethod::Slic { chains } => format!(
                "poplin::ConvPartial1xNSLIC<{input},{partial},{},true,{SLIC_WINDOW},{chains},4>",
                self.context.innermost_stride,
            ),
            ConvMethod::Hmac => format!("poplin::ConvPartialHorizontalMac<{input},{partial},true>"),
            ConvMethod::Vmac => format!("poplin::ConvPartialVerticalMac<{input},{partial},true,4>"),
            ConvMethod::OuterProduct => format!("poplin::OuterProduct<{input}>"),
        }
    }
}

/// Limits the counts to [`MAX_ROW_LENGTHS`] different lengths by rounding up to a common step.
fn coarsened(counts: BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let longest = counts.last_key_value().map_or(0, |(length, _)| *length);
    if counts.len() as u64 <= MAX_ROW_LENGTHS {
        return counts;
    }
    let step = longest.div_ceil(MAX_ROW_LENGTHS);
    let mut coarse = BTreeMap::new();
    for (length, count) in counts {
        *coarse.entry(length.next_multiple_of(step).min(longest)).or_default() += count;
    }
    coarse
}

/// Vertices of a compute set, one entry per distinct type.
pub(crate) fn uses(vertices: &[ConvTileVertex]) -> Vec<VertexInstances> {
    let mut kinds: Vec<VertexInstances> = Vec::new();
    let mut known: HashMap<(&str, u64, Bytes, Bytes), usize> = HashMap::new();
    for (tile, vertex) in TileId(0).onwards().zip(vertices) {
        let key = (&*vertex.vertex_type, vertex.edges, vertex.field_bytes, vertex.constant_bytes);
        let index = *known.entry(key).or_insert_with(|| {
            kinds.push(VertexInstances {
                vertex_type: vertex.vertex_type.clone(),
                count: TileRuns::empty(),
                edges: vertex.edges,
                field_bytes: vertex.field_bytes,
                constant_bytes: vertex.constant_bytes,
                flops: Some(0),
            });
            kinds.len() - 1
        });
        kinds[index].count.push(TileRange::single(tile), 1);
        kinds[index].flops = kinds[index].flops.map(|flops| flops + vertex.flops);
    }
    kinds
}
