//! Gathers and updates of the rows of a table by index.
//!
//! The method is that of popops (poplibs lib/popops/DynamicSlice.cpp, multiSlicePlanned and
//! generatePlannedMultiUpdateAdd). Each tile holds some rows and columns of the table and processes
//! some of the lookups. If the table is split, a second stage selects the results from the parts.
//! If lookups are split, updates go to separate dense sums, which are reduced and added to the
//! table.

mod cycles;
mod plan;

pub use plan::{SlicePlan, plan};
pub(crate) use plan::{fastest_gather, overwriting_plan};

use super::elementwise::{self, ElementwiseOp, UnaryOpType};
use super::reduce::{
    self, ReduceDim, ReduceError, ReduceOperation, ReduceResultUse, ReductionRequest,
};
use super::relayout::{COPY_SPEED, on_tile_copies};
use crate::poplar::exchange::{self, TileMessages, WORD_BYTES};
use crate::poplar::tile_runs::{add_per_tile, per_tile};
use crate::poplar::work::{MemoryConstraint, OperationWork, TemporaryVariable};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout, linear_mapping};
use crate::shape::DType;
use crate::targets::IpuTarget;
use plan::INDICES_PER_TILE;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity, TileId, TileRange, TileRuns};

/// Sizes of a table and number of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultiSliceParams {
    /// Rows of the table.
    pub rows: u64,
    /// Columns of the table.
    pub width: u64,
    /// Rows looked up at once.
    pub lookups: u64,
    pub dtype: DType,
}

/// Work of one tile.
#[derive(Clone, Copy, Debug, Default)]
struct MultiSliceTilePart {
    /// Index of its part of the lookups, and of its part of the rows.
    index: [u64; 2],
    rows: u64,
    columns: u64,
    lookups: u64,
    /// Number of its lookups in the second stage.
    second_stage_lookups: u64,
}

/// Number of elements of part `index` when `size` elements are cut into parts of the same largest
/// size.
fn part(size: u64, parts: u64, index: u64) -> u64 {
    let largest = size.div_ceil(parts);
    size.saturating_sub(index * largest).min(largest)
}

/// Embedding on the tiles of one IPU.
#[derive(Clone, Debug)]
pub(crate) struct MultiSliceLowering<'a> {
    machine: &'a IpuTarget,
    embedding: MultiSliceParams,
    plan: SlicePlan,
    parts: Vec<MultiSliceTilePart>,
}

impl<'a> MultiSliceLowering<'a> {
    /// Distributes `embedding` over tiles according to `plan`.
    pub(crate) fn new(
        machine: &'a IpuTarget,
        embedding: MultiSliceParams,
        plan: SlicePlan,
    ) -> Self {
        let mut parts = Vec::new();
        // Memory order: a part of the columns row by row, then the next one, so every tile holds
        // rows of one part. In poplibs a hash of the plan selects the first tile (startTile).
        for column in 0..plan.columns {
            for lookup in 0..plan.lookups {
                for row in 0..plan.rows {
                    let grains = embedding.width.div_ceil(plan.grain);
                    let columns = part(grains, plan.columns, column) * plan.grain;
                    let lookups = part(embedding.lookups, plan.lookups, lookup);
                    parts.push(MultiSliceTilePart {
                        index: [lookup, row],
                        rows: part(embedding.rows, plan.rows, row),
                        columns: columns.min(embedding.width),
                        lookups,
                        // Tiles with the same lookups and columns but different rows share the
                        // selection among their results.
                        second_stage_lookups: part(lookups, plan.rows, row),
                    });
                }
            }
        }
        Self { machine, embedding, plan, parts }
    }

    fn tiles(&self) -> u32 {
        self.machine.tiles
    }

    fn on_tiles<T: Quantity>(&self, value: impl Fn(&MultiSliceTilePart) -> T) -> TileRuns<T> {
        per_tile(TileId(0).onwards().zip(self.parts.iter().map(value)))
    }

    fn element(&self) -> Bytes {
        self.embedding.dtype.bytes()
    }

    /// Layout of the table. Each part is distributed evenly over the tiles that look up in it.
    pub(crate) fn table(&self) -> TensorLayout {
        let grain = self.plan.grain;
        // The table is stored once, spread over the tiles that use it, and broadcast to all of
        // them for each gather: here poplibs accepts more exchange for less persistent memory.
        let held = self.on_tiles(|at| {
            let grains = at.rows * at.columns.div_ceil(grain);
            Elements(part(grains, self.plan.lookups, at.index[0]) * grain)
        });
        self.in_parts(self.embedding.rows, held)
    }

    /// Layout of a tensor of `rows` rows with the given distribution. Each part is contiguous, with
    /// the columns of a row together (poplibs lib/popops/DynamicSlice.cpp,
    /// createPartitionableTensor).
    fn in_parts(&self, rows: u64, elements: TileRuns<Elements>) -> TensorLayout {
        let width = self.embedding.width;
        let columns = self.parts.first().map_or(width, |part| part.columns);
        let order = ElementOrder::grouped_by_tile(&[rows, width], 1, columns);
        TensorLayout { elements, order }
    }

    /// Layout of the rows that are looked up or added.
    pub(crate) fn slices(&self) -> TensorLayout {
        let held = self.on_tiles(|at| Elements(at.second_stage_lookups * at.columns));
        self.in_parts(self.embedding.lookups, held)
    }

    /// Layout of the indices.
    pub(crate) fn indices(&self) -> TensorLayout {
        let least = INDICES_PER_TILE * WORD_BYTES;
        let lookups = Elements(self.embedding.lookups);
        let elements = linear_mapping(lookups, WORD_BYTES, least, self.tiles());
        TensorLayout { elements, order: ElementOrder::Linear }
    }

    fn temporary(
        &self,
        work: &mut OperationWork,
        name: &str,
        category: MemoryCategory,
        bytes: TileRuns<Bytes>,
        from: usize,
    ) {
        let live = from..work.phases().len();
        work.temporaries.push(TemporaryVariable::anywhere(name, category, bytes, live));
    }

    /// Adds a temporary of an update. A cast reads one memory element and writes another (poplibs
    /// lib/popops/codelets, `elem(*src) != elem(*dst)`), and the updates to be cast are in the same
    /// element as the always-live variables. Variables that are live together with their copy are
    /// placed above it, as the fullest tiles of Poplar's op benchmarks show.
    fn add_cast_temporary(
        &self,
        work: &mut OperationWork,
        name: &str,
        category: MemoryCategory,
        bytes: TileRuns<Bytes>,
        from: usize,
    ) {
        self.temporary(work, name, category, bytes, from);
        let casts = self.plan.lookups > 1 && self.embedding.dtype != DType::Float;
        if let Some(made) = work.temporaries.last_mut().filter(|_| casts) {
            made.memory_constraint = MemoryConstraint::OwnMemoryElement;
        }
    }

    fn exchange(
        &self,
        work: &mut OperationWork,
        name: &str,
        received: &TileRuns<Bytes>,
        sent: &TileRuns<Bytes>,
    ) {
        let message = self.indices().bytes(WORD_BYTES).max().max(Bytes(1));
        let messages = TileMessages {
            received: (received.max().next_multiple_of(message) / message).max(1),
            sent: 1,
        };
        let speed = self.machine.exchange_speed();
        let tiles = self.tiles();
        work.push_some(exchange::phase(name, received, sent, messages, tiles, speed));
    }

    fn compute(
        &self,
        work: &mut OperationWork,
        name: &str,
        vertex: &str,
        dtype: DType,
        cycles: impl Fn(&MultiSliceTilePart) -> Cycles,
    ) {
        let vertex = format!("popops::{vertex}<{}>", dtype.poplar_name());
        work.push(elementwise::compute(name, vertex, 3, self.on_tiles(cycles)));
    }

    /// Bytes of the table that a tile copies: its part, if lookups share it.
    fn table_copy(&self) -> TileRuns<Bytes> {
        if self.plan.lookups == 1 {
            return TileRuns::empty();
        }
        self.on_tiles(|part| part.rows * part.columns * self.element())
    }

    /// Returns the gather of rows.
    pub(crate) fn gather(&self) -> OperationWork {
        let mut work = OperationWork::default();
        let dtype = self.embedding.dtype;
        let indices = self.on_tiles(|part| part.lookups * WORD_BYTES);
        let copy = self.table_copy();
        let wanted = add_per_tile(&indices, &copy);
        let mut held = self.indices().bytes(WORD_BYTES);
        // A tile that holds its whole part of the table gets no copy, so no tile sends one.
        if !copy.is_empty() {
            held = add_per_tile(&held, &self.table().bytes(self.element()));
        }
        self.exchange(&mut work, "multiSlice/stage0", &wanted, &held);
        self.compute(&mut work, "multiSlice/stage0", "MultiSlice", dtype, |part| {
            cycles::gather(dtype, part.lookups, part.columns)
        });
        self.temporary(&mut work, "multiSlice/table", MemoryCategory::Message, copy, 0);
        self.temporary(&mut work, "multiSlice/indices", MemoryCategory::Message, indices, 0);
        if self.plan.rows > 1 {
            self.choose(&mut work);
        }
        work
    }

    /// Adds the second stage, which selects the correct results from those of all parts of the
    /// rows.
    fn choose(&self, work: &mut OperationWork) {
        let dtype = self.embedding.dtype;
        let first_result = self.on_tiles(|part| part.lookups * part.columns * self.element());
        let made_at = work.phases().len() - 1;
        let indices = self.indices();
        for step in ["iota", "adjustedIndicesStage1"] {
            let count = &indices.elements;
            work.push(elementwise::apart(
                &format!("multiSlice/{step}"),
                ElementwiseOp::Unary(UnaryOpType::Negate),
                DType::Int,
                count,
            ));
        }
        let from = work.phases().len();
        // Each part of the rows yields a result for every lookup. Only one of them is from the
        // right row.
        let candidates = self.on_tiles(|part| {
            self.plan.rows * part.second_stage_lookups * part.columns * self.element()
        });
        let chosen = self.on_tiles(|part| part.second_stage_lookups * WORD_BYTES);
        let received = add_per_tile(&candidates, &chosen);
        self.exchange(work, "multiSlice/Stage1", &received, &first_result);
        self.compute(work, "multiSlice/Stage1", "MultiSlice", dtype, |part| {
            cycles::gather(dtype, part.second_stage_lookups, part.columns)
        });
        self.temporary(work, "multiSlice/stage1Input", MemoryCategory::Message, received, from);
        self.temporary(
            work,
            "multiSlice/stage0Output",
            MemoryCategory::Variable,
            first_result,
            made_at,
        );
    }

    /// Adds rows to the rows that indices select.
    ///
    /// # Errors
    ///
    /// Fails if sums cannot be reduced.
    pub(crate) fn update(&self) -> Result<OperationWork, ReduceError> {
        let mut work = OperationWork::default();
        let several = self.plan.lookups > 1;
        // Split lookups add into separate partial tables, which poplibs sums in floats.
        let dtype = if several { DType::Float } else { self.embedding.dtype };
        if several {
            self.cast_slices(&mut work);
        }
        let made_at = work.phases().len();
        let sums = self.on_tiles(|part| Elements(part.rows * part.columns));
        if several {
            work.push(elementwise::fill("multiUpdateAdd/zero", dtype, &sums));
        }
        let exchange_at = work.phases().len();
        let slices = self.slices().bytes(dtype.bytes());
        let wanted = self.send_updates(&mut work, "multiUpdateAdd", dtype);
        self.compute(&mut work, "multiUpdateAdd", "MultiUpdateAdd", dtype, |part| {
            cycles::update(dtype, part.lookups, part.columns)
        });
        self.add_cast_temporary(
            &mut work,
            "multiUpdateAdd/operands",
            MemoryCategory::Message,
            wanted,
            exchange_at,
        );
        if several {
            if self.embedding.dtype != dtype {
                self.add_cast_temporary(
                    &mut work,
                    "multiUpdateAdd/CastSlices",
                    MemoryCategory::Variable,
                    slices,
                    made_at - 1,
                );
            }
            self.add_sums(&mut work, &sums, made_at)?;
        }
        Ok(work)
    }

    /// Adds the exchange of indices and updates. Returns the bytes that each tile receives.
    fn send_updates(&self, work: &mut OperationWork, name: &str, dtype: DType) -> TileRuns<Bytes> {
        let mut wanted = self.on_tiles(|part| part.lookups * WORD_BYTES);
        let mut held = self.indices().bytes(WORD_BYTES);
        if self.plan.rows > 1 {
            // Every part of the rows reads all updates.
            let updates = self.on_tiles(|part| part.lookups * part.columns * dtype.bytes());
            wanted = add_per_tile(&wanted, &updates);
            held = add_per_tile(&held, &self.slices().bytes(dtype.bytes()));
        }
        self.exchange(work, name, &wanted, &held);
        wanted
    }

    /// Overwrites the rows that indices select. The plan has one part of the lookups.
    pub(crate) fn overwrite(&self) -> OperationWork {
        debug_assert_eq!(
            self.plan.lookups, 1,
            "parts of the lookups would have to be put together"
        );
        let mut work = OperationWork::default();
        let dtype = self.embedding.dtype;
        let wanted = self.send_updates(&mut work, "multiUpdate", dtype);
        self.compute(&mut work, "multiUpdate", "MultiUpdate", dtype, |part| {
            cycles::overwrite(dtype, part.lookups, part.columns)
        });
        let category = MemoryCategory::Message;
        self.temporary(&mut work, "multiUpdate/operands", category, wanted, 0);
        work
    }

    /// Copies updates of a narrow type and casts them, because sums are computed in floats.
    fn cast_slices(&self, work: &mut OperationWork) {
        let dtype = self.embedding.dtype;
        let one = TileRuns::uniform(TileRange::first_tiles(1), Elements(1));
        work.push(elementwise::cast("multiUpdateAdd/CastScale", dtype, DType::Float, &one));
        if dtype == DType::Float {
            return;
        }
        let slices = self.slices().elements;
        let from = work.phases().len();
        let copied = slices.map(|count| COPY_SPEED.cycles_for(*count * dtype.bytes()));
        work.push(on_tile_copies("multiUpdateAdd", "poplar_rt::Memcpy64Bit", &copied));
        work.push(elementwise::cast("multiUpdateAdd/CastSlices", dtype, DType::Float, &slices));
        let bytes = slices.map(|count| *count * dtype.bytes());
        self.temporary(
            work,
            "multiUpdateAdd/slicesRearranged",
            MemoryCategory::Rearrangement,
            bytes,
            from,
        );
    }

    /// Reduces the sums of all parts of the lookups, and adds them to the table.
    fn add_sums(
        &self,
        work: &mut OperationWork,
        sums: &TileRuns<Elements>,
        made_at: usize,
    ) -> Result<(), ReduceError> {
        let dtype = self.embedding.dtype;
        let float = DType::Float;
        let columns = (sums.total() / self.plan.lookups).0;
        let reduction = ReductionRequest {
            name: "multiUpdateAdd/Reduce",
            operation: ReduceOperation::Add,
            dims: &[
                ReduceDim { size: self.plan.lookups, reduced: true },
                ReduceDim { size: columns, reduced: false },
            ],
            input: sums,
            dtype: float,
            output: float,
            result: ReduceResultUse::PLAIN,
            output_mapping: None,
            tiles: self.tiles(),
            speed: self.machine.exchange_speed(),
        };
        let reduced = reduce::add(work, &reduction)?;
        let sums = sums.map(|count| *count * float.bytes());
        self.add_cast_temporary(
            work,
            "multiUpdateAdd/gathered",
            MemoryCategory::Variable,
            sums,
            made_at,
        );
        let table = self.table().elements;
        let from = work.phases().len();
        let wide = table.map(|count| *count * float.bytes());
        if dtype != float {
            // The table is widened for the sum and narrowed after it, so that it is rounded only
            // once.
            work.push(elementwise::cast("multiUpdateAdd/castBase", dtype, float, &table));
        }
        let held = reduced.map(|count| *count * float.bytes());
        self.exchange(work, "multiUpdateAdd/Add", &wide, &held);
        work.push(elementwise::scaled_add("multiUpdateAdd/Add", float, &table));
        if dtype != float {
            work.push(elementwise::cast("multiUpdateAdd/castBack", float, dtype, &table));
        }
        self.temporary(work, "multiUpdateAdd/sumUpdates", MemoryCategory::Variable, wide, from);
        Ok(())
    }
}
