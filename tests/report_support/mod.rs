//! Reports made from a seed, and small helpers the report tests share.

#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod foreign;
pub(crate) mod stripped;

use std::collections::BTreeSet;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::Cycles;
use tilescope_report::units::*;
use tilescope_report::*;

/// A small random number generator (xorshift64*), the same on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(3) { None } else { Some(make(self)) }
    }

    fn runs<T: Clone + PartialEq>(
        &mut self,
        tiles: u32,
        mut value: impl FnMut(&mut Self) -> T,
    ) -> TileRuns<T> {
        let mut runs = TileRuns::empty();
        let mut first = 0;
        while first < tiles {
            first += self.below(4) as u32;
            let end = (first + 1 + self.below(5) as u32).min(tiles);
            if first < end {
                runs.push(TileRange::new(TileId(first), TileId(end)), value(self));
            }
            first = end;
        }
        runs
    }
}

const NAMES: [&str; 6] = [
    "layer1/conv/Conv_1/Convolve",
    "copyFromHost",
    "",
    "naïve – 名前",
    "a'b\"c;--",
    "loss/copyToHost",
];

/// A report with something of everything, none of it sensible, all of it lawful for the writer.
pub(crate) fn random_report(seed: u64, steps: u64) -> ReportBuilder {
    let rng = &mut Dice::new(seed);
    let ipus = 1 + rng.below(3) as u32;
    let tiles_per_ipu = 1 + rng.below(20) as u32;
    let mut report = ReportBuilder::new(ipus, tiles_per_ipu);
    report.meta.spec = rng.maybe(|_| "model = \"mnist\"\n".to_owned());
    let tiles = ipus * tiles_per_ipu;
    let parts = &mut report.parts;
    parts.target.kind = rng.pick(&TargetKind::ALL);
    parts.target.io_tiles_per_ipu = rng.below(u64::from(tiles_per_ipu) + 1) as u32;
    parts.graph =
        GraphCounts { compute_sets: 3, vertices: rng.below(1 << 40), edges: 2, variables: 1 };
    parts.options =
        (0..rng.below(4)).map(|i| (format!("key{i}"), NAMES[i as usize].to_owned())).collect();
    parts.batching = rng.maybe(|rng| BatchingConfig {
        micro_batch: rng.below(64),
        gradient_accumulation: 16,
        replicas: 4,
        device_iterations: rng.below(100),
    });
    parts.notes = (0..rng.below(3)).map(|i| NAMES[i as usize].to_owned()).collect();
    random_program(rng, parts, ipus, tiles);
    random_memory(rng, parts, tiles);
    let programs = parts.programs.len() as u64;
    random_steps(rng, &mut report, programs, steps);
    random_machine(rng, &mut report.parts);
    for operation in &mut report.parts.operations {
        operation.cost_basis = rng.maybe(|rng| rng.pick(&CostBasis::ALL));
    }
    report
}

/// In what the machine differs from others, and what it takes to run it.
fn random_machine(rng: &mut Dice, parts: &mut CompilationReport) {
    for i in 0..rng.below(3) {
        parts.target.changes.push(MachineChange {
            key: format!("constant{i}"),
            title: rng.pick(&NAMES).to_owned(),
            unit: rng.pick(&MachineUnit::ALL),
            inherited: rng.below(1 << 40) as f64,
            value: rng.below(1 << 40) as f64 / 3.0,
        });
    }
    for _ in 0..rng.below(4) {
        let kind = rng.pick(&RunningCostKind::ALL);
        let currency = if kind == RunningCostKind::Price { "EUR" } else { "" };
        parts.running_costs.push(RunningCost {
            kind,
            part: rng.pick(&NAMES).to_owned(),
            count: rng.below(100),
            each: rng.below(1 << 20) as f64 / 7.0,
            currency: currency.to_owned(),
            basis: rng.pick(&RunningCostBasis::ALL),
            source: rng.pick(&NAMES).to_owned(),
        });
    }
}

fn random_program(rng: &mut Dice, parts: &mut CompilationReport, ipus: u32, tiles: u32) {
    let on_tiles = tiles;
    for i in 0..rng.below(5) {
        parts.operations.push(ModelOperation {
            name: format!("op{i}"),
            kind: rng.pick(&NAMES).to_owned(),
            source: rng.maybe(|_| "Conv@11".to_owned()),
            pass: rng.pick(&TrainingPass::ALL),
            block: rng.maybe(|_| "B1".to_owned()),
            ipu: Some(IpuId(rng.below(ipus.into()) as u32)),
            flops: rng.below(1 << 50),
            element_type: rng.maybe(|rng| rng.pick(&ArithmeticType::ALL)),
            inner_runs: rng.maybe(|rng| 1 + rng.below(100)),
            cost_basis: None,
            shapes: "[1,2] -> [3]".to_owned(),
            plan: rng.maybe(|_| "{\"method\":\"AMP\"}".to_owned()),
            inputs: (0..i as u32).filter(|_| rng.below(2) == 0).map(OperationId).collect(),
        });
    }
    for i in 0..rng.below(4) {
        parts.vertex_types.push(VertexTypeInfo {
            name: format!("poplin::Vertex{i}<float>"),
            code_bytes: Bytes(rng.below(5000)),
            shares_code: false,
            state_bytes: Bytes(rng.below(100)),
        });
    }
    for _ in 0..rng.below(5) {
        let types = parts.vertex_types.len() as u64;
        let groups = if types == 0 { 0 } else { rng.below(3) };
        parts.compute_sets.push(ComputeSet {
            name: rng.pick(&NAMES).to_owned(),
            cycles: rng.runs(tiles, |rng| Cycles(rng.below(10_000))),
            vertices: (0..groups)
                .map(|_| VertexGroup {
                    vertex_type: VertexTypeId(rng.below(types) as u32),
                    count: rng.runs(tiles, |rng| rng.below(8)),
                    edges: rng.below(9),
                    flops: rng.maybe(|rng| rng.below(1 << 50)),
                })
                .collect(),
        });
    }
    let count = 1 + rng.below(12) as u32;
    for id in 0..count {
        let sets = parts.compute_sets.len() as u64;
        let operations = parts.operations.len() as u64;
        let children = if rng.chance(2) { 0 } else { rng.below(4) };
        parts.programs.push(ProgramNode {
            kind: rng.pick(&ProgramKind::ALL),
            name: rng.pick(&NAMES).to_owned(),
            // Children come later, so that nothing runs in circles.
            children: (0..children)
                .filter(|_| id + 1 < count)
                .map(|_| ProgramId(id + 1 + rng.below(u64::from(count - id - 1)) as u32))
                .collect(),
            ipu: rng.maybe(|rng| IpuId(rng.below(ipus.into()) as u32)),
            compute_set: (sets > 0).then(|| ComputeSetId(rng.below(sets) as u32)),
            operation: (operations > 0).then(|| OperationId(rng.below(operations) as u32)),
            stream: rng.pick(&StreamEndpoint::ALL),
            repeats: 1 + rng.below(1000),
            outlined: rng.maybe(|rng| OutlinedCall {
                body: ProgramId(id),
                call: ProgramId(rng.below(count.into()) as u32),
            }),
        });
    }
    parts.roots = (0..rng.below(3)).map(|_| ProgramId(rng.below(count.into()) as u32)).collect();
    for _ in 0..rng.below(4) {
        let tiles = rng.runs(tiles, |rng| TileTraffic {
            bytes_in: Bytes(rng.below(500)),
            bytes_out: Bytes(rng.below(500)),
            bytes_delivered: Bytes(rng.below(500)),
            messages_in: rng.below(5),
            messages_out: rng.below(5),
            code_bytes: Bytes(rng.below(200)),
        });
        let cycles = rng.runs(on_tiles, |rng| Cycles(rng.below(5000)));
        let program = ProgramId(rng.below(count.into()) as u32);
        parts.exchanges.push(ExchangeTraffic { program, tiles, cycles });
    }
    for program in (0..count).map(ProgramId) {
        let tiles = rng.runs(on_tiles, |rng| Bytes(rng.below(100)));
        if !tiles.is_empty() {
            parts.control_code.push(ControlCode { program, tiles });
        }
    }
}

fn random_memory(rng: &mut Dice, parts: &mut CompilationReport, tiles: u32) {
    let liveness = rng.below(6);
    for _ in 0..liveness {
        let program = ProgramId(rng.below(parts.programs.len() as u64) as u32);
        parts.liveness.push(LivenessStep { program, bytes: Bytes(rng.below(1 << 30)) });
    }
    for _ in 0..rng.below(8) {
        let operations = parts.operations.len() as u64;
        parts.variables.push(Variable {
            name: rng.pick(&NAMES).to_owned(),
            category: rng.pick(&MemoryCategory::ALL),
            operation: (operations > 0).then(|| OperationId(rng.below(operations) as u32)),
            shape: rng.pick(&["", "float32[10]"]).to_owned(),
            lifetime: rng.maybe(|rng| {
                let start = rng.below(5) as u32;
                start..start + rng.below(4) as u32
            }),
            tiles: rng.runs(tiles, |rng| VariablePlacement {
                bytes: Bytes(rng.below(100_000)),
                offset: Bytes(rng.below(600_000)),
            }),
        });
    }
    for id in 0..parts.variables.len() as u32 {
        let start = rng.below(5) as u32;
        let steps = start..start + 1 + rng.below(4) as u32;
        parts.variable_uses.push(VariableUse { variable: VariableId(id), steps });
    }
    parts.tile_memory = rng.runs(tiles, |rng| TileMemory {
        including_gaps: Bytes(rng.below(600_000)),
        non_interleaved: Bytes(rng.below(200_000)),
        interleaved: Bytes(rng.below(400_000)),
        overflowed: Bytes(rng.below(2)),
        always_live: Bytes(rng.below(9)),
        peak_not_always_live: Bytes(rng.below(9)),
    });
    parts.tile_categories = rng.runs(tiles, |rng| {
        // An owner is named once, in order.
        let owners: BTreeSet<_> = (0..1 + rng.below(4))
            .map(|_| (rng.pick(&MemoryCategory::ALL), rng.pick(&MemoryRegion::ALL), rng.chance(2)))
            .collect();
        let share = |(category, region, overlapped)| CategoryBytes {
            category,
            region,
            overlapped,
            bytes: Bytes(1 + rng.below(9000)),
        };
        owners.into_iter().map(share).collect()
    });
}

fn random_steps(rng: &mut Dice, report: &mut ReportBuilder, programs: u64, steps: u64) {
    let ipus = report.parts.target.ipus_per_replica;
    let tiles = u64::from(report.parts.target.tiles_per_ipu);
    let mut clocks = vec![[0u64; 2]; ipus as usize];
    for _ in 0..steps {
        let mut bars = Vec::new();
        for ipu in (0..ipus).map(IpuId) {
            for sub_lane in 0..2u8 {
                if rng.chance(if sub_lane == 0 { 4 } else { 2 }) {
                    continue;
                }
                let clock = &mut clocks[ipu.index()][usize::from(sub_lane)];
                let from_max = *clock + if rng.chance(2) { 0 } else { rng.below(30) };
                let length = if rng.chance(50) { rng.below(20_000) } else { rng.below(40) };
                let to_max = from_max + length;
                let from_min = from_max - rng.below(from_max.min(9) + 1);
                *clock = to_max;
                bars.push(StepOnIpu {
                    ipu,
                    sub_lane,
                    from_min: Cycles(from_min),
                    from_max: Cycles(from_max),
                    to_min: Cycles(from_min + rng.below(to_max - from_min + 1)),
                    to_max: Cycles(to_max),
                    active_tiles: rng.below(tiles + 1) as u32,
                    active_tile_balance: rng.below(1001) as f32 / 1000.0,
                    bytes_in: if rng.chance(2) { Bytes::ZERO } else { Bytes(rng.below(1 << 20)) },
                    bytes_out: Bytes(rng.below(3)),
                });
            }
        }
        let program = ProgramId(rng.below(programs) as u32);
        report.steps.push(ExecutionStep::new(program, bars));
    }
    for _ in 0..rng.below(10) {
        let start = rng.below(steps + 1);
        let cycle = rng.below(10_000);
        report.marks.push(TraceMark {
            kind: rng.pick(&MarkKind::ALL),
            label: rng.pick(&NAMES).to_owned(),
            ipu: rng.maybe(|rng| IpuId(rng.below(ipus.into()) as u32)),
            pass: rng.maybe(|rng| rng.pick(&TrainingPass::ALL)),
            index: rng.below(100),
            steps: StepId(start)..StepId(start + rng.below(steps - start + 1)),
            cycles: CycleRange::new(Cycles(cycle), Cycles(cycle + rng.below(5000))),
        });
    }
}

/// All marks of a report.
pub(crate) const ALL_MARKS: MarkFilter =
    MarkFilter { kind: None, ipu: None, window: None, limit: usize::MAX };

/// All steps of a report as the writer was given them.
pub(crate) fn steps_of(report: &Report) -> Vec<ExecutionStep> {
    let count = report.step_count().unwrap();
    let steps = report.steps(StepId(0)..StepId(count), usize::MAX).unwrap();
    assert!(steps.iter().enumerate().all(|(id, step)| step.id == StepId(id as u64)));
    let step = |step: StepDetails| ExecutionStep::new(step.program.unwrap(), step.ipus);
    steps.into_iter().map(step).collect()
}
