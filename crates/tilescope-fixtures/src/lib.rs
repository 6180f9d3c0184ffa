//! Small hand-made reports and ONNX files for tests of their readers.
//!
//! ```
//! use tilescope_fixtures::ReportBuilder;
//! use tilescope_report::units::{Bytes, IpuId, TileId};
//! use tilescope_report::{MemoryCategory, ProgramKind};
//!
//! let mut report = ReportBuilder::new(2, 4);
//! let conv = report.compute("conv/Convolve", 100);
//! let sync = report.program(ProgramKind::Sync, "External");
//! report.run(conv, 0..100).run(sync, 100..120).run_on(conv, IpuId(1), 120..220);
//! report.variable("weights", MemoryCategory::Variable, 0..8, 1024, None);
//! assert_eq!(report.steps.len(), 3);
//! let memory = report.compilation().tile_memory;
//! assert_eq!(memory.get(TileId(7)).unwrap().always_live, Bytes(1024));
//! ```

pub mod ipu_stack_profile;
pub mod onnx_file;
pub mod onnx_text;

use std::ops::Range;
use std::path::{Path, PathBuf};
use tilescope_report::units::*;
use tilescope_report::*;

/// A report under construction. The methods cover the usual parts; others can be set through the
/// fields.
#[derive(Clone, Debug)]
pub struct ReportBuilder {
    /// The compiled program; [`ReportBuilder::compilation`] computes tile memory unless it is set.
    pub parts: CompilationReport,
    pub steps: Vec<ExecutionStep>,
    /// Marks on the trace.
    pub marks: Vec<TraceMark>,
    /// Marks of replicas of other classes than the first.
    pub marks_of_others: Vec<(ReplicaClassId, TraceMark)>,
    /// Facts about the report itself.
    pub meta: ReportMeta,
    /// The storage of the steps.
    pub layout: StepLayout,
}

impl ReportBuilder {
    /// An empty report of a machine with `ipus` IPUs of `tiles_per_ipu` tiles of 624 KiB each, at
    /// 1 GHz, so that a cycle is a nanosecond.
    pub fn new(ipus: u32, tiles_per_ipu: u32) -> Self {
        let target = Target {
            kind: TargetKind::Ipu,
            name: "tiny".to_owned(),
            architecture: "Mk2".to_owned(),
            num_ipus: ipus,
            tiles_per_ipu,
            io_tiles_per_ipu: 0,
            bytes_per_tile: Bytes(624 * 1024),
            clock: Hertz(1_000_000_000),
            replicas: 1,
            ipus_per_replica: ipus,
            memory_element_bytes: Bytes(16 * 1024),
            interleaved_offset: Bytes(208 * 1024),
            tiles_per_column: tiles_per_ipu.min(64),
            physical_numbers: false,
            changes: Vec::new(),
        };
        let parts = CompilationReport {
            target,
            bandwidths: Vec::new(),
            compute_rates: Vec::new(),
            action_costs: Vec::new(),
            sync_groups: None,
            error_bands: Vec::new(),
            program_errors: Vec::new(),
            running_costs: Vec::new(),
            graph: GraphCounts::default(),
            options: Vec::new(),
            batching: None,
            operations: Vec::new(),
            programs: Vec::new(),
            roots: Vec::new(),
            compute_sets: Vec::new(),
            vertex_types: Vec::new(),
            exchanges: Vec::new(),
            routes: Vec::new(),
            control_code: Vec::new(),
            data_flows: DataFlows::default(),
            variables: Vec::new(),
            variable_uses: Vec::new(),
            tile_memory: TileRuns::empty(),
            tile_categories: TileRuns::empty(),
            liveness: Vec::new(),
            host: None,
            replica_rings: Vec::new(),
            replica_classes: ReplicaClasses::default(),
            notes: Vec::new(),
        };
        let meta = ReportMeta { generator: "by hand".to_owned(), spec: None, imported: None };
        let layout = StepLayout::default();
        let (steps, marks, marks_of_others) = (Vec::new(), Vec::new(), Vec::new());
        Self { parts, steps, marks, marks_of_others, meta, layout }
    }

    /// Adds a leaf program.
    pub fn program(&mut self, kind: ProgramKind, name: &str) -> ProgramId {
        self.parts.programs.push(ProgramNode::new(kind, name));
        ProgramId(self.parts.programs.len() as u32 - 1)
    }

    /// Adds a program with children, and makes it the only root.
    pub fn root(&mut self, kind: ProgramKind, name: &str, children: &[ProgramId]) -> ProgramId {
        let id = self.program(kind, name);
        self.parts.programs[id.index()].children = children.to_vec();
        self.parts.roots = vec![id];
        id
    }

    /// Adds a compute set that takes `cycles` on every tile, and the program that executes it.
    pub fn compute(&mut self, name: &str, cycles: u64) -> ProgramId {
        let tiles = TileRange::first_tiles(self.parts.target.tiles_per_replica());
        self.parts.compute_sets.push(ComputeSet {
            name: name.to_owned(),
            cycles: TileRuns::uniform(tiles, Cycles(cycles)),
            vertices: Vec::new(),
        });
        let id = self.program(ProgramKind::OnTileExecute, name);
        let set = ComputeSetId(self.parts.compute_sets.len() as u32 - 1);
        self.parts.programs[id.index()].compute_set = Some(set);
        self.parts.graph.compute_sets += 1;
        id
    }

    /// Adds an internal exchange in which every tile sends and receives `bytes`.
    pub fn exchange(&mut self, name: &str, bytes: u64) -> ProgramId {
        let program = self.program(ProgramKind::DoExchange, name);
        let tiles = TileRange::first_tiles(self.parts.target.tiles_per_replica());
        let traffic = TileTraffic {
            bytes_in: Bytes(bytes),
            bytes_out: Bytes(bytes),
            bytes_delivered: Bytes(bytes),
            messages_in: 1,
            messages_out: 1,
            code_bytes: Bytes(16),
        };
        let tiles = TileRuns::uniform(tiles, traffic);
        let cycles = TileRuns::empty();
        self.parts.exchanges.push(ExchangeTraffic { program, tiles, cycles });
        program
    }

    /// Adds an operation of the forward pass on IPU 0.
    pub fn operation(&mut self, name: &str, kind: &str) -> OperationId {
        self.parts.operations.push(ModelOperation {
            name: name.to_owned(),
            kind: kind.to_owned(),
            source: None,
            pass: TrainingPass::Forward,
            block: None,
            ipu: Some(IpuId(0)),
            flops: 0,
            element_type: None,
            inner_runs: None,
            cost_basis: None,
            shapes: String::new(),
            plan: None,
            inputs: Vec::new(),
        });
        OperationId(self.parts.operations.len() as u32 - 1)
    }

    /// Adds a variable with `bytes` on each of `tiles`, live in `lifetime` (`None`: always). Its
    /// addresses follow those of the previous variables.
    pub fn variable(
        &mut self,
        name: &str,
        category: MemoryCategory,
        tiles: Range<u32>,
        bytes: u64,
        lifetime: Option<Range<u32>>,
    ) -> VariableId {
        let tiles = TileRange::new(TileId(tiles.start), TileId(tiles.end));
        let end = |variable: &Variable| {
            let placed = variable
                .tiles
                .iter()
                .filter(|(other, _)| other.first < tiles.end && tiles.first < other.end);
            placed.map(|(_, placement)| placement.offset + placement.bytes).max()
        };
        let offset = self.parts.variables.iter().filter_map(end).max().unwrap_or_default();
        let placement = VariablePlacement { bytes: Bytes(bytes), offset };
        self.parts.variables.push(Variable {
            name: name.to_owned(),
            category,
            operation: None,
            shape: String::new(),
            lifetime,
            tiles: TileRuns::uniform(tiles, placement),
        });
        self.parts.graph.variables += u64::from(tiles.count());
        VariableId(self.parts.variables.len() as u32 - 1)
    }

    /// Adds a step of the liveness walk.
    pub fn live(&mut self, program: ProgramId, bytes: u64) -> &mut Self {
        self.parts.liveness.push(LivenessStep { program, bytes: Bytes(bytes) });
        self
    }

    /// Executes `program` on all IPUs and tiles during `cycles`.
    pub fn run(&mut self, program: ProgramId, cycles: Range<u64>) -> &mut Self {
        let ipus = (0..self.parts.target.ipus_per_replica).map(IpuId);
        let ipus = ipus.map(|ipu| self.bar(ipu, cycles.clone())).collect();
        self.steps.push(ExecutionStep::new(program, ipus));
        self
    }

    /// Executes `program` on all tiles of one IPU during `cycles`.
    pub fn run_on(&mut self, program: ProgramId, ipu: IpuId, cycles: Range<u64>) -> &mut Self {
        let ipus = vec![self.bar(ipu, cycles)];
        self.steps.push(ExecutionStep::new(program, ipus));
        self
    }

    /// A step on all tiles of an IPU, perfectly balanced and without data.
    pub fn bar(&self, ipu: IpuId, cycles: Range<u64>) -> StepOnIpu {
        StepOnIpu {
            ipu,
            sub_lane: 0,
            from_min: Cycles(cycles.start),
            from_max: Cycles(cycles.start),
            to_min: Cycles(cycles.end),
            to_max: Cycles(cycles.end),
            active_tiles: self.parts.target.tiles_per_ipu,
            active_tile_balance: 1.0,
            bytes_in: Bytes::ZERO,
            bytes_out: Bytes::ZERO,
        }
    }

    /// Adds a mark for all IPUs over the cycles of the steps `steps`.
    pub fn mark(&mut self, kind: MarkKind, label: &str, steps: Range<u64>) -> &mut Self {
        let covered = &self.steps[steps.start as usize..steps.end as usize];
        let ranges = covered.iter().flat_map(|step| step.ipus.iter().map(StepOnIpu::range));
        let cycles = ranges.reduce(CycleRange::union).unwrap_or_default();
        let index = self.marks.iter().filter(|mark| mark.kind == kind).count() as u64;
        self.marks.push(TraceMark {
            kind,
            label: label.to_owned(),
            ipu: None,
            pass: None,
            index,
            steps: StepId(steps.start)..StepId(steps.end),
            cycles,
        });
        self
    }

    /// The compiled program. Unless it was set, memory of tiles is the sum of the variables, all of
    /// it non-interleaved and none of it shared over time.
    pub fn compilation(&self) -> CompilationReport {
        let mut parts = self.parts.clone();
        if parts.tile_memory.is_empty() && parts.tile_categories.is_empty() {
            for tile in TileRange::first_tiles(parts.target.tiles_per_replica()).iter() {
                let (memory, categories) = memory_of(&parts, tile);
                parts.tile_memory.push(TileRange::single(tile), memory);
                if !categories.is_empty() {
                    parts.tile_categories.push(TileRange::single(tile), categories);
                }
            }
        }
        parts
    }

    /// Writes the report into `directory`. Returns the path of its `profile.pop`.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, ReportError> {
        let mut writer = ReportWriter::create(directory, &self.meta)?;
        writer.step_layout(self.layout)?;
        writer.compilation(&self.compilation())?;
        self.steps.iter().try_for_each(|step| writer.step(step))?;
        self.marks.iter().try_for_each(|mark| writer.mark(mark))?;
        let mut others = self.marks_of_others.iter();
        others.try_for_each(|(class, mark)| writer.mark_of_class(*class, mark))?;
        writer.finish()
    }
}

fn memory_of(parts: &CompilationReport, tile: TileId) -> (TileMemory, Vec<CategoryBytes>) {
    let on_tile = || {
        let variables = parts.variables.iter();
        variables.filter_map(|v| v.tiles.get(tile).map(|placement| (v, placement.bytes)))
    };
    let bytes = |wanted: &dyn Fn(&Variable) -> bool| -> Bytes {
        on_tile().filter(|(variable, _)| wanted(variable)).map(|(_, bytes)| bytes).sum()
    };
    let live_at = |step: u32| {
        bytes(&|variable| variable.lifetime.as_ref().is_some_and(|life| life.contains(&step)))
    };
    let total = bytes(&|_| true);
    let memory = TileMemory {
        including_gaps: total,
        non_interleaved: total,
        always_live: bytes(&|variable| variable.lifetime.is_none()),
        peak_not_always_live: (0..parts.liveness.len() as u32)
            .map(live_at)
            .max()
            .unwrap_or_default(),
        ..TileMemory::default()
    };
    let share = |category| CategoryBytes {
        category,
        region: MemoryRegion::NonInterleaved,
        overlapped: false,
        bytes: bytes(&|variable| variable.category == category),
    };
    let shares = MemoryCategory::ALL.into_iter().map(share).filter(|share| !share.bytes.is_zero());
    (memory, shares.collect())
}
