//! Stages of a reduction: on the tiles, between tiles, to the result (poplibs
//! lib/popops/reduction/ReductionStages.cpp and ReductionPlan.cpp).

use super::compute_sets::ReduceStageWork;
use super::intermediate_partials::{IntermediatePartials, PartialsSources, joined, merged};
use super::introspection::{ReduceDim, width};
use super::memory_stretches::{self, MemoryStretchShape};
use super::operation::ReduceOperation;
use super::reduction_task::{ReductionTask, final_regions, senders};
use super::region_reduction::RegionReduction;
use super::worker_assignment::{ReduceStageTypes, ReduceTileWork, assign_regions};
use super::{ReduceResultUse, ReductionRequest, introspection};
use crate::poplar::exchange;
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{MemoryConstraint, OperationWork, TemporaryVariable};
use crate::popops::elementwise::{self, vector_width};
use crate::popops::relayout::{COPY_SPEED, copy_vertex, on_tile_copies};
use crate::poputil::list_length;
use crate::poputil::split_regions;
use crate::poputil::split_regions::SplitBounds;
use crate::shape::DType;
use crate::targets::WORKERS;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Elements, TileId, TileRange, TileRuns};

/// Minimum number of partials per result for which another stage between tiles pays off (poplibs
/// lib/popops/reduction, reductionFactorThresholdToAddMoreStages).
const PARTIALS_WORTH_A_STAGE: u64 = 64;

/// State of one reduction between stages.
pub(crate) struct ReductionStages<'a> {
    reduction: &'a ReductionRequest<'a>,
    dims: &'a [ReduceDim],
    /// Operation of the next stage.
    operation: ReduceOperation,
    /// Type of the partial results so far.
    dtype: DType,
    /// Type of partial results from now on.
    accumulator: DType,
    /// Number of phases of the work before this reduction.
    first_phase: usize,
    /// Analyses of stretches of memory by shape.
    stretch_cache: RefCell<HashMap<MemoryStretchShape, Rc<StretchPartials>>>,
}

/// Partial results of tiles with equal stretches, with columns counted from the start of the
/// stretch.
struct StretchPartials {
    groups: Vec<introspection::PartialsDescription>,
    /// Columns of all groups, in order.
    columns: Vec<Range<u64>>,
}

/// Bytes of partial results of type `dtype` on each tile.
fn bytes_per_tile(partials: &IntermediatePartials, dtype: DType) -> TileRuns<Bytes> {
    per_tile(partials.tiles.iter().map(|(tile, columns)| (*tile, width(columns) * dtype.bytes())))
}

impl<'a> ReductionStages<'a> {
    /// Creates a reduction with its collapsed dimensions.
    pub(crate) fn new(reduction: &'a ReductionRequest<'a>, dims: &'a [ReduceDim]) -> Self {
        Self {
            reduction,
            dims,
            operation: reduction.operation,
            dtype: reduction.dtype,
            accumulator: reduction.operation.accumulator(reduction.output),
            first_phase: 0,
            stretch_cache: RefCell::default(),
        }
    }

    fn columns(&self) -> u64 {
        introspection::column_count(self.dims)
    }

    fn tiles(&self) -> u64 {
        u64::from(self.reduction.tiles)
    }

    /// Number of columns that stay together when outputs are split (findGrainSizeForOp).
    fn grain(&self, dtype: DType) -> u64 {
        // Sums have accumulators of 128 bits. A split inside one leaves it half empty.
        vector_width(dtype) * if self.operation.is_sum() { 2 } else { 1 }
    }

    /// Adds all stages and returns the results on each tile.
    pub(crate) fn lower(mut self, work: &mut OperationWork) -> TileRuns<Elements> {
        self.first_phase = work.phases().len();
        let partial = ReduceStageTypes { first: true, ..self.stage(self.accumulator) };
        let (mut held, several, tiles) = self.reduce_on_tiles(partial);
        // If no column is on two tiles, the first stage computes the results directly, in their own
        // type and without partials.
        let local = joined(&held.stretches()).iter().all(|stretch| stretch.tiles.len() == 1);
        if local {
            let name = format!("{}/ReduceOnTile/InToOutNoExchange", self.reduction.name);
            let ReductionRequest { output, result, .. } = *self.reduction;
            let (_, _, tiles) =
                self.reduce_on_tiles(ReduceStageTypes { output, result, ..partial });
            tiles.add_to(work, &name, self.accumulator);
            let results = held.tiles.iter();
            return per_tile(results.map(|(tile, columns)| (*tile, Elements(width(columns)))));
        }
        if several {
            let name = format!("{}/ReduceOnTile/InToIntermediateNoExchange", self.reduction.name);
            let start = work.phases().len();
            tiles.add_to(work, &name, self.accumulator);
            self.advance();
            // Vertices write in memory order, whereas later stages expect columns in ascending
            // order.
            let rotated = self.rotated_bytes();
            if !rotated.is_empty() {
                let vertex = copy_vertex(DType::Float, 2);
                work.push(on_tile_copies(
                    &name,
                    vertex,
                    &rotated.map(|bytes| COPY_SPEED.cycles_for(*bytes)),
                ));
            }
            let (moved, others) =
                held.tiles.iter().cloned().partition(|(tile, _)| rotated.get(*tile).is_some());
            // Copies read one memory element and write another.
            self.add_partials_variable(
                work,
                &IntermediatePartials { tiles: moved },
                start,
                "rotated",
                MemoryConstraint::OwnMemoryElement,
            );
            self.add_partials_variable(
                work,
                &IntermediatePartials { tiles: others },
                start,
                "tile_data1",
                MemoryConstraint::Any,
            );
        } else if self.needs_cast(&held) {
            let name = format!("{}/PreExchangeCast", self.reduction.name);
            let start = work.phases().len();
            let elements = held.tiles.iter().map(|(tile, at)| (*tile, Elements(width(at))));
            let elements = per_tile(elements);
            work.push(elementwise::cast(&name, self.dtype, DType::Float, &elements));
            self.dtype = DType::Float;
            self.add_partials_variable(work, &held, start, "cast", MemoryConstraint::Any);
        }
        let mut stage = 0;
        while self.needs_intermediate_stage(&held) {
            let name =
                format!("{}/ReduceStage{stage}/IntermediateToIntermediate", self.reduction.name);
            held = self.intermediate_stage(work, &name, &held);
            stage += 1;
        }
        self.final_stage(work, &held)
    }

    /// Prepares for the stages after the first: squared values are only summed from now on, in the
    /// accumulator's type.
    fn advance(&mut self) {
        self.operation = self.operation.combining();
        self.dtype = self.accumulator;
    }

    /// Adds the variable that holds partial results until they are sent.
    fn add_partials_variable(
        &self,
        work: &mut OperationWork,
        held: &IntermediatePartials,
        start: usize,
        name: &str,
        place: MemoryConstraint,
    ) {
        if held.tiles.is_empty() {
            return;
        }
        work.temporaries.push(TemporaryVariable {
            name: format!("{}/{name}", self.reduction.name),
            category: MemoryCategory::Variable,
            bytes: bytes_per_tile(held, self.dtype),
            memory_constraint: place,
            live: start..work.phases().len() + 1,
        });
    }

    /// Returns true if partial results are cast before sending. Single halves are sent as floats,
    /// because half a word cannot be received without copying.
    fn needs_cast(&self, held: &IntermediatePartials) -> bool {
        self.operation.is_sum()
            && self.dtype == DType::Half
            && held.tiles.iter().any(|(_, columns)| width(columns) == 1)
    }

    /// Reduction of each tile's own elements. Returns columns per tile, true if any tile holds
    /// several elements of a column, and the vertices.
    fn reduce_on_tiles(
        &self,
        stage: ReduceStageTypes,
    ) -> (IntermediatePartials, bool, ReduceStageWork) {
        let mut known: HashMap<MemoryStretchShape, Rc<ReduceTileWork>> = HashMap::new();
        let mut held = IntermediatePartials::default();
        let mut several = false;
        let mut work = ReduceStageWork::default();
        for (tile, range) in memory_stretches::stretches(self.reduction.input) {
            let (shape, first) = MemoryStretchShape::from_range(self.dims, &range);
            let seen = self.partials_of_stretch(shape);
            let columns: Vec<Range<u64>> =
                seen.columns.iter().map(|at| at.start + first..at.end + first).collect();
            several |= width(&columns) < range.end - range.start;
            let vertices = known.entry(shape).or_insert_with(|| {
                Rc::new(assign_regions(stage, self.regions(seen.groups.clone())))
            });
            work.tiles.push((tile, vertices.clone()));
            held.tiles.push((tile, columns));
        }
        (held, several, work)
    }

    /// Partial results of stretches of memory of one shape.
    fn partials_of_stretch(&self, shape: MemoryStretchShape) -> Rc<StretchPartials> {
        let mut cache = self.stretch_cache.borrow_mut();
        let partials = cache.entry(shape).or_insert_with_key(|shape| {
            let groups = shape.groups(self.dims);
            let columns = merged(groups.iter().flat_map(|group| group.columns.clone()).collect());
            Rc::new(StretchPartials { groups, columns })
        });
        Rc::clone(partials)
    }

    /// Cuts the groups of a tile so that every worker has some columns (dividePartials).
    fn regions(&self, groups: Vec<introspection::PartialsDescription>) -> Vec<RegionReduction> {
        let simple = groups.into_iter().flat_map(introspection::split_mixed);
        // Groups of three columns are left whole, because few columns are handled separately.
        let (cut, mut whole): (Vec<_>, Vec<_>) =
            simple.partition(|group| group.patterns[0].inner == 1 && group.width() != 3);
        let workers = WORKERS.saturating_sub(whole.len() as u64).max(1);
        let bounds = SplitBounds { grain: self.grain(self.dtype), most: workers, least: 1 };
        let mut next = 0;
        let ends: Vec<Range<u64>> = cut
            .iter()
            .map(|group| {
                let start = next;
                next += group.width();
                start..next
            })
            .collect();
        for part in split_regions::split_regions(&ends, bounds).into_iter().flatten() {
            let at = ends.partition_point(|range| range.end <= part.start);
            whole.push(cut[at].slice(part.start - ends[at].start..part.end - ends[at].start));
        }
        whole.into_iter().map(RegionReduction::of_group).collect()
    }

    /// Bytes of results that vertices write in a different order than they are stored.
    fn rotated_bytes(&self) -> TileRuns<Bytes> {
        let mut known: HashMap<MemoryStretchShape, u64> = HashMap::new();
        per_tile(memory_stretches::stretches(self.reduction.input).map(|(tile, range)| {
            let (shape, _) = MemoryStretchShape::from_range(self.dims, &range);
            let outputs = known
                .entry(shape)
                .or_insert_with(|| self.rotated_outputs(&self.partials_of_stretch(shape)));
            (tile, *outputs * self.accumulator.bytes())
        }))
    }

    /// Number of results of a stretch of memory that are written in a different order than they are
    /// stored.
    fn rotated_outputs(&self, seen: &StretchPartials) -> u64 {
        let regions = self.regions_before_advance(seen.groups.clone());
        let rotated = regions.iter().filter(|region| !in_order(&region.columns, &seen.columns));
        rotated.map(|region| region.outputs).sum()
    }

    /// Regions as in the first stage.
    fn regions_before_advance(
        &self,
        groups: Vec<introspection::PartialsDescription>,
    ) -> Vec<RegionReduction> {
        let first = Self::new(self.reduction, self.dims);
        first.regions(groups)
    }

    /// Returns true if the partial results are worth another stage (calculateNextStep).
    fn needs_intermediate_stage(&self, held: &IntermediatePartials) -> bool {
        let spread = held.stretches().iter().map(|stretch| stretch.tiles.len()).max().unwrap_or(0);
        // With results on most tiles and few partial sums each, a direct last stage takes less
        // exchange and control code and is hardly slower (poplibs calculateNextStep).
        let few = (spread as f64) < 2.0 * (self.tiles() as f64).sqrt();
        if few && held.tiles.len() as u64 > self.tiles() * 3 / 4 {
            return false;
        }
        held.elements() > self.columns() * PARTIALS_WORTH_A_STAGE
    }

    /// Adds a stage that spreads partial results over the IPU. Returns the contents of each tile
    /// after it.
    fn intermediate_stage(
        &mut self,
        work: &mut OperationWork,
        name: &str,
        held: &IntermediatePartials,
    ) -> IntermediatePartials {
        let stretches = held.stretches();
        let pieces = self.pieces(held, &stretches);
        let mut duties: BTreeMap<TileId, Vec<ReductionTask>> = BTreeMap::new();
        // A single piece stays on the tile of its first part: with many small reductions, tile 0
        // would otherwise get all of them (poplibs ReductionStages.cpp).
        let mut tile = match &pieces[..] {
            [(only, _)] => only.tiles[0],
            _ => TileId(0),
        };
        for (piece, rows) in pieces {
            for sources in piece.tiles.chunks(list_length(rows)) {
                let columns = piece.columns.clone();
                duties
                    .entry(tile)
                    .or_default()
                    .push(ReductionTask { columns, sources: sources.to_vec() });
                // Round robin, as in poplibs: the load of the tiles is unknown here.
                tile = (tile + 1) % self.reduction.tiles;
            }
        }
        let stage = self.stage(self.accumulator);
        let (received, done) = self.gather(work, name, held, &duties, stage, |duties| {
            let mut regions = Vec::new();
            for duty in duties {
                let rows = duty.sources.len() as u64;
                regions.push(RegionReduction::of_pieces(duty.columns.clone(), rows));
            }
            regions
        });
        let next = IntermediatePartials {
            tiles: duties
                .into_iter()
                .map(|(tile, duties)| {
                    (tile, merged(duties.into_iter().map(|duty| duty.columns).collect()))
                })
                .collect(),
        };
        let start = work.phases().len();
        done.add_to(work, name, self.accumulator);
        self.keep_messages(work, name, received, start);
        self.advance();
        self.add_partials_variable(work, &next, start, "tile_data2", MemoryConstraint::Any);
        next
    }

    /// Cuts stretches into pieces for that stage, each with the number of rows that one tile
    /// reduces (calculateSplit).
    fn pieces(
        &self,
        held: &IntermediatePartials,
        stretches: &[PartialsSources],
    ) -> Vec<(PartialsSources, u64)> {
        let total = held.elements();
        let grain = self.grain(self.dtype);
        let narrowest = stretches.iter().map(|s| s.columns.end - s.columns.start).min();
        // The width of pieces leaves each column on the square root of its current number of tiles.
        // Longer pieces mean less exchange code (poplibs calculateSplit).
        let depth = (total / self.columns().max(1)).isqrt().max(1);
        let grains = narrowest.unwrap_or(0) / grain / depth;
        let bounds = SplitBounds { grain, most: self.tiles(), least: grain.max(grains * grain) };
        let ranges: Vec<Range<u64>> = stretches.iter().map(|s| s.columns.clone()).collect();
        let ideal = (total / self.tiles()).max(1);
        split_regions::split_regions(&ranges, bounds)
            .into_iter()
            .flatten()
            .map(|columns| {
                let at = ranges.partition_point(|range| range.end <= columns.start);
                let tiles = stretches[at].tiles.clone();
                let rows = tiles.len() as u64;
                let size = rows * (columns.end - columns.start);
                let mut splits = (size / ideal).max(1);
                if size / splits < PARTIALS_WORTH_A_STAGE {
                    splits = (size / PARTIALS_WORTH_A_STAGE).max(1);
                }
                // A piece of one row would be moved without being reduced.
                if rows / splits < 2 {
                    splits = (rows / 2).max(1);
                }
                (PartialsSources { columns, tiles }, rows.div_ceil(splits).max(2))
            })
            .collect()
    }

    /// Adds the last stage, with results on the smallest number of tiles that hold a few each.
    fn final_stage(
        &mut self,
        work: &mut OperationWork,
        held: &IntermediatePartials,
    ) -> TileRuns<Elements> {
        let name = format!("{}/ReduceFinalStage/IntermediateToOutput", self.reduction.name);
        let width = vector_width(self.dtype);
        // Four vectors per tile keep most workers busy. poplibs requires four instead of six,
        // because balancing over tiles would create a seventh vertex on some.
        let bounds = SplitBounds { grain: width, most: self.tiles(), least: 4 * width };
        let parts: Vec<(TileId, Range<u64>)> = match self.reduction.output_mapping {
            Some(wanted) => memory_stretches::stretches(wanted).collect(),
            None => {
                let parts = split_regions::split_evenly(self.columns(), bounds);
                TileId(0).onwards().zip(parts).collect()
            }
        };
        let stretches = joined(&held.stretches());
        let grain = self.grain(self.dtype);
        let mut duties: BTreeMap<TileId, Vec<ReductionTask>> = BTreeMap::new();
        let mut results = TileRuns::empty();
        for (tile, part) in parts {
            let first = stretches.partition_point(|s| s.columns.end <= part.start);
            let mine = stretches[first..].iter().take_while(|s| s.columns.start < part.end);
            let cut: Vec<ReductionTask> = mine
                .map(|s| ReductionTask {
                    columns: s.columns.start.max(part.start)..s.columns.end.min(part.end),
                    sources: s.tiles.clone(),
                })
                .collect();
            duties.insert(tile, cut);
            results.push(TileRange::single(tile), Elements(part.end - part.start));
        }
        let ReductionRequest { output, result, .. } = *self.reduction;
        let stage = ReduceStageTypes { result, ..self.stage(output) };
        let (received, done) =
            self.gather(work, &name, held, &duties, stage, |duties| final_regions(duties, grain));
        let start = work.phases().len();
        done.add_to(work, &name, self.accumulator);
        self.keep_messages(work, &name, received, start);
        results
    }

    fn stage(&self, output: DType) -> ReduceStageTypes {
        ReduceStageTypes {
            operation: self.operation,
            input: self.dtype,
            partials: self.accumulator,
            output,
            first: false,
            result: ReduceResultUse::PLAIN,
        }
    }

    /// Sends partial results to the tiles that reduce them. Returns the received data and the tasks
    /// of each tile.
    fn gather(
        &self,
        work: &mut OperationWork,
        name: &str,
        held: &IntermediatePartials,
        duties: &BTreeMap<TileId, Vec<ReductionTask>>,
        stage: ReduceStageTypes,
        regions: impl Fn(&[ReductionTask]) -> Vec<RegionReduction>,
    ) -> (TileRuns<Bytes>, ReduceStageWork) {
        let bytes = self.dtype.bytes();
        let mut own: BTreeMap<TileId, Bytes> = BTreeMap::new();
        let mut known: HashMap<Vec<(u64, u64)>, Rc<ReduceTileWork>> = HashMap::new();
        let mut done = ReduceStageWork::default();
        let mut messages = Vec::with_capacity(duties.len());
        let received = per_tile(duties.iter().map(|(tile, duties)| {
            let shape = duties.iter().map(|duty| (duty.width(), duty.sources.len() as u64));
            let mine = known
                .entry(shape.collect())
                .or_insert_with(|| Rc::new(assign_regions(stage, regions(duties))));
            done.tiles.push((*tile, mine.clone()));
            // Partial results that a tile itself reduces are not exchanged.
            let kept: Bytes = duties
                .iter()
                .filter(|duty| duty.sources.contains(tile))
                .map(|duty| duty.width() * bytes)
                .sum();
            *own.entry(*tile).or_default() += kept;
            messages.push((*tile, senders(duties, *tile)));
            let all: Bytes =
                duties.iter().map(|duty| duty.width() * bytes * duty.sources.len() as u64).sum();
            (*tile, all - kept)
        }));
        let sent = per_tile(held.tiles.iter().map(|(tile, columns)| {
            (*tile, width(columns) * bytes - own.get(tile).copied().unwrap_or_default())
        }));
        work.push_some(exchange::gather(
            name,
            &received,
            &sent,
            &per_tile(messages),
            self.reduction.tiles,
            self.reduction.speed,
        ));
        (received, done)
    }

    /// Adds the variable of received partial results, live from their exchange to their reduction.
    fn keep_messages(
        &self,
        work: &mut OperationWork,
        name: &str,
        bytes: TileRuns<Bytes>,
        start: usize,
    ) {
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/message"),
            MemoryCategory::Message,
            bytes,
            start.saturating_sub(1)..work.phases().len(),
        ));
    }
}

/// Returns true if `columns` are consecutive among the sorted columns that a tile holds.
fn in_order(columns: &[Range<u64>], held: &[Range<u64>]) -> bool {
    columns.windows(2).all(|pair| {
        let at = held.partition_point(|range| range.end < pair[0].end);
        let end_of_range = held.get(at).is_some_and(|range| range.end == pair[0].end);
        let next = held.get(at + usize::from(end_of_range));
        next.is_some_and(|range| range.start == pair[1].start)
    })
}
