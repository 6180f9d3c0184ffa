//! Planner and lowering against what Poplar's IPU Model reported for single operations
//! (`tests/data/poplar_ipumodel_ops.csv`), and against the profile of Graphcore's matmul tutorial.
//!
//! [`every_row`] prints the table of all rows and holds the mean error of every family and chip:
//!
//! ```sh
//! cargo test --release --no-default-features --test planner_rows -- --ignored --nocapture
//! ```

use std::collections::{BTreeMap, HashMap};
use tilescope::sim::graph::DType;
use tilescope::sim::lower::constants::{COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES};
use tilescope::sim::lower::conv::{self, Source};
use tilescope::sim::lower::work::{Phase, PhaseKind, Work};
use tilescope::sim::planner::{
    ConvParams, FieldDim, Machine, Pass, Plan, PlanOptions, plan, plan_convolution,
    plan_fully_connected,
};
use tilescope::sim::targets::chip;
use tilescope::units::{TileRange, TileRuns};

/// One row of the file.
struct Row {
    name: String,
    family: String,
    config: HashMap<String, String>,
    machine: Machine,
    cycles: f64,
    memory_bytes: f64,
}

impl Row {
    fn number(&self, key: &str, default: u64) -> u64 {
        self.config.get(key).map_or(default, |value| value.parse().expect("a well-formed row"))
    }

    /// Two numbers for two dimensions; one stands for both.
    fn pair(&self, key: &str, default: u64) -> [u64; 2] {
        let Some(value) = self.config.get(key) else { return [default; 2] };
        let values: Vec<u64> =
            value.split(',').map(|value| value.parse().expect("a well-formed row")).collect();
        [values[0], *values.last().expect("a well-formed row")]
    }

    fn data_type(&self) -> DType {
        let float = self.config.get("data-type").is_some_and(|name| name == "float");
        if float { DType::Float } else { DType::Half }
    }

    fn matmul(&self) -> ConvParams {
        let gemm = self.family == "gemm";
        let keys = if gemm { ["m", "k", "n"] } else { ["batch-size", "input-size", "output-size"] };
        let [m, k, n] = keys.map(|key| self.number(key, 1));
        ConvParams::matmul(self.data_type(), self.number("num-groups", 1), m, k, n)
    }

    fn convolution(&self) -> ConvParams {
        let [field, kernel, stride] =
            [("field", 1), ("kernel-size", 1), ("stride", 1)].map(|(key, or)| self.pair(key, or));
        let both = self.pair("padding", 0);
        let (lower, upper) = if self.config.contains_key("padding") {
            (both, both)
        } else {
            (self.pair("padding-lower", 0), self.pair("padding-upper", 0))
        };
        let dim = |d: usize| {
            FieldDim::new(field[d], kernel[d]).padded(lower[d], upper[d]).strided(stride[d])
        };
        ConvParams {
            input_type: self.data_type(),
            output_type: self.data_type(),
            batch: self.number("batch-size", 1),
            conv_groups: self.number("conv-groups", 1),
            in_channels: self.number("input-channels", 1),
            out_channels: self.number("output-channels", 1),
            dims: vec![dim(0), dim(1)],
        }
    }
}

/// Rows of the families that are planned.
fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/poplar_ipumodel_ops.csv");
    let text = std::fs::read_to_string(path).expect("a well-formed row");
    let rows = text.lines().skip(1).map(|line| {
        let quoted: Vec<&str> = line.split('"').collect();
        let fields: Vec<&str> = match quoted[..] {
            [head, config, tail] => {
                let head = head.split(',').take(2);
                head.chain([config]).chain(tail.split(',').skip(1)).collect()
            }
            _ => line.split(',').collect(),
        };
        let config = fields[2].split(' ').filter_map(|word| word.split_once('='));
        Row {
            name: fields[0].to_owned(),
            family: fields[1].to_owned(),
            config: config.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            machine: Machine::whole(*chip(fields[3]).expect("a well-formed row")),
            cycles: fields[4].parse().expect("a well-formed row"),
            memory_bytes: fields[5].parse().expect("a well-formed row"),
        }
    });
    rows.filter(|row| ["gemm", "fc", "conv"].contains(&&*row.family)).collect()
}

/// Cycles of a work: the slowest tile of every phase, and the start of each.
fn cycles(work: &Work) -> u64 {
    let of_phase = |kind: &PhaseKind| match kind {
        PhaseKind::Exchange { cycles, .. } => EXCHANGE_START_CYCLES + cycles.max(),
        PhaseKind::Compute { cycles, .. } => COMPUTE_START_CYCLES + cycles.max(),
    };
    work.phases().iter().map(|(phase, times)| times * of_phase(&phase.kind)).sum()
}

/// Bytes spread over all tiles, as tensors without a layout of their own are.
fn evenly(machine: &Machine, bytes: u64) -> TileRuns<u64> {
    TileRuns::uniform(TileRange::new(0, machine.tiles as u32), bytes.div_ceil(machine.tiles))
}

/// The scaled add of a result that is laid out as `bytes`.
fn added(machine: &Machine, data_type: DType, bytes: &TileRuns<u64>) -> Work {
    let phase = conv::scaled_add(machine, "UpdateWeights".to_owned(), data_type, bytes);
    Work { items: vec![phase], temporaries: Vec::new() }
}

fn plan_matmul(machine: &Machine, params: &ConvParams) -> Plan {
    plan(machine, params, &PlanOptions::new(Pass::MatMul)).expect("a plan")
}

/// What the benchmark tools run for a row.
fn works(row: &Row) -> Vec<Work> {
    let machine = &row.machine;
    let planned = Source::Planned;
    if row.family == "gemm" {
        let params = row.matmul();
        let product = conv::forward(machine, &plan_matmul(machine, &params), planned, planned);
        let bytes = evenly(machine, params.output_elements() * params.output_type.bytes());
        return vec![product, added(machine, params.output_type, &bytes)];
    }
    let plans = if row.family == "fc" {
        let options = PlanOptions::new(Pass::FcTrainingForward);
        plan_fully_connected(machine, &row.matmul(), &options)
    } else {
        let options = PlanOptions::new(Pass::TrainingForward);
        plan_convolution(machine, &row.convolution(), &options)
    };
    let plans = plans.expect("a plan");
    let weights = conv::planned_layouts(machine, &plans.forward).weights;
    vec![
        conv::forward(machine, &plans.forward, planned, planned),
        conv::backward(machine, &plans, planned),
        conv::weight_update(machine, &plans),
        added(machine, row.data_type(), &weights.bytes),
    ]
}

/// Error of the cycles of a row, in percent. Tiles also wait once for the upload.
fn cycle_error(row: &Row) -> f64 {
    let total = EXCHANGE_START_CYCLES + works(row).iter().map(cycles).sum::<u64>();
    (total as f64 / row.cycles - 1.0) * 100.0
}

/// Mean and worst of the absolute errors, and the row with the worst.
#[derive(Default)]
struct Errors {
    sum: f64,
    rows: u32,
    worst: f64,
    worst_row: String,
}

impl Errors {
    fn add(&mut self, row: &Row, error: f64) {
        self.sum += error.abs();
        self.rows += 1;
        if error.abs() > self.worst.abs() {
            self.worst = error;
            self.worst_row = row.name.clone();
        }
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.rows.max(1))
    }
}

/// Prints the table, and checks that the mean error of every family and chip is below its bound,
/// which is what is reached, rounded up.
#[test]
#[ignore = "all rows; run in release, see the head of this file"]
fn every_row() {
    let mut table: BTreeMap<(String, &str), Errors> = BTreeMap::new();
    println!("{:6} {:36} {:4} {:>10} {:>8}", "family", "row", "chip", "cycles", "error %");
    for row in rows() {
        let error = cycle_error(&row);
        let chip = row.machine.chip.name;
        println!("{:6} {:36} {chip:4} {:10} {error:+8.2}", row.family, row.name, row.cycles);
        table.entry((row.family.clone(), chip)).or_default().add(&row, error);
    }
    for ((family, chip), errors) in &table {
        let Errors { rows, worst, worst_row, .. } = errors;
        let mean = errors.mean();
        println!(
            "{family:5} {chip}: mean {mean:.2} %, worst {worst:+.1} % ({worst_row}), {rows} rows"
        );
    }
    for ((family, chip), errors) in table {
        let bound = match family.as_str() {
            "gemm" => 1.2,
            "fc" => 2.9,
            _ => 2.8,
        };
        assert!(errors.mean() <= bound, "{family} on {chip}: mean {:.2} %", errors.mean());
    }
}

/// A dozen rows of all kinds of plans: serial and joint ones, SLIC, expanded and strided kernels,
/// grouped products, float. Bounds are the errors they have, rounded up to whole percents.
#[test]
fn a_dozen_rows() {
    let chosen = [
        ("gemm_200x64x10000", "mk1", 3.0),
        ("gemm_600x512x20000", "mk1", 1.0),
        ("gemm_1000x512x10000", "mk2", 1.0),
        ("fc_layer_1440x200x400", "mk1", 1.0),
        ("fc_layer_4_1000_1000_float", "mk2", 5.0),
        ("bert_grouped_16x128x64x128", "mk2", 3.0),
        ("bert_ffn1_128x768x3072", "mk2", 2.0),
        ("inception_tr_bs4_i1_b5x5", "mk1", 3.0),
        ("inception_tr_bs4_i5_b1x1", "mk2", 2.0),
        ("mobilenet_depthwise_3", "mk1", 2.0),
        ("resnet50_tr_bs4_cnv", "mk2", 2.0),
        ("resnet50_tr_bs4_bm256L0A0", "mk1", 3.0),
    ];
    let rows = rows();
    let mut wrong = Vec::new();
    for (name, chip, bound) in chosen {
        let row = rows.iter().find(|row| row.name == name && row.machine.chip.name == chip);
        let error = cycle_error(row.expect("a row of this name"));
        println!("{name} on {chip}: {error:+.2} %");
        wrong.extend((error.abs() > bound).then(|| format!("{name} on {chip}: {error:+.2} %")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Most bytes of temporaries at once, over all tiles.
fn peak_temporary_bytes(work: &Work) -> u64 {
    let live = |phase: usize| {
        let temporaries = work.temporaries.iter().filter(|variable| variable.live.contains(&phase));
        temporaries.map(|variable| variable.bytes.total()).sum::<u64>()
    };
    (0..work.phases().len()).map(live).max().unwrap_or(0)
}

/// Tensors and temporaries of matrix products are most of their memory. The rest is code and
/// vertex state, which planner and lowering do not know: 2,700 bytes on every tile fit all rows.
#[test]
fn memory_of_matrix_products() {
    let mut all = Errors::default();
    for row in rows().iter().filter(|row| row.family == "gemm") {
        let params = row.matmul();
        let elements =
            params.input_elements() + params.weight_elements() + params.output_elements();
        let plan = plan_matmul(&row.machine, &params);
        let work = conv::forward(&row.machine, &plan, Source::Planned, Source::Planned);
        let code = 2_700 * row.machine.tiles;
        let bytes = elements * params.input_type.bytes() + peak_temporary_bytes(&work) + code;
        all.add(row, (bytes as f64 / row.memory_bytes - 1.0) * 100.0);
    }
    println!("mean {:.2} %, worst {:+.2} % ({})", all.mean(), all.worst, all.worst_row);
    assert!(all.mean() < 0.5 && all.worst.abs() < 1.0, "mean {:.2} %", all.mean());
}

/// Cycles of the slowest tile in the phase of this name.
fn phase_cycles(work: &Work, name: &str) -> u64 {
    let of_phase = |(phase, _): (&Phase, u64)| match &phase.kind {
        PhaseKind::Exchange { cycles, .. } | PhaseKind::Compute { cycles, .. } => cycles.max(),
    };
    let named = |(phase, _): &(&Phase, u64)| phase.name == name;
    work.phases().into_iter().find(named).map(of_phase).expect("a phase of this name")
}

/// The conv vertices of a work: how many, their edges, the bytes of their work lists.
fn vertex_sums(work: &Work) -> [u64; 3] {
    let mut sums = [0; 3];
    for (phase, _) in work.phases() {
        let PhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
        for vertex in vertices.iter().filter(|vertex| vertex.vertex_type.contains("::ConvPartial"))
        {
            let count = vertex.count.total();
            for (sum, each) in sums.iter_mut().zip([1, vertex.edges, vertex.constant_bytes]) {
                *sum += count * each;
            }
        }
    }
    sums
}

/// Graphcore's matmul tutorial on a Mk2: float 800x500 by 500x400, then by 400x200. Its profile
/// shows 1,400 and 1,350 conv vertices, 45,700 edges and 99,000 bytes of work lists for both
/// together; the first product takes about 15,240 cycles from the exchange of its operands to the
/// end of its vertices, and 3,430 for its reduction.
#[test]
fn matmul_tutorial() {
    let machine = Machine::whole(*chip("mk2").expect("a chip"));
    // The first operand lies in rows, or as the first product leaves it; the others in rows, of
    // which eight elements lie together on every tile.
    let lowered = |[m, k, n]: [u64; 3], first, second| {
        let params = ConvParams::matmul(DType::Float, 1, m, k, n);
        let plan = plan_matmul(&machine, &params);
        let work = conv::forward(&machine, &plan, first, second);
        (plan, work)
    };
    let turned = |group, tiles| Source::Transposed { group, tiles };
    let (first_plan, first) =
        lowered([800, 500, 400], Source::Elsewhere { group: 500 }, turned(8, 1_471));
    let (second_plan, second) = lowered([800, 400, 200], turned(16, 1_400), turned(8, 1_429));
    let split = |plan: &Plan| {
        let partition = &plan.partition;
        [partition.field_parts(), partition.out_channels, partition.in_channels, plan.tiles()]
    };
    assert_eq!(split(&first_plan), [4, 50, 7, 1_400]);
    assert_eq!(split(&second_plan), [3, 50, 9, 1_350]);
    let [a, b] = [vertex_sums(&first), vertex_sums(&second)];
    println!("vertices, edges, work lists: {a:?} {b:?}");
    assert_eq!([a[0], b[0]], [1_400, 1_350]);
    assert_eq!(a[1] + b[1], 45_700);
    assert_eq!(a[2] + b[2], 99_000);

    let within = |what: &str, cycles: u64, profiled: f64, percent: f64| {
        println!("{what}: {cycles} cycles, profiled {profiled}");
        assert!((cycles as f64 / profiled - 1.0).abs() * 100.0 < percent, "{what}: {cycles}");
    };
    let transposed = phase_cycles(&second, "Conv_1/Transpose_#0") + COMPUTE_START_CYCLES;
    within("Transpose", transposed, 880.0, 11.0);
    let of = |names: &[&str], starts: u64| {
        names.iter().map(|name| phase_cycles(&first, &format!("Conv_1/{name}"))).sum::<u64>()
            + starts
    };
    let convolve = ["Convolve/ExchangePre", "Convolve/PreArrange-0", "Convolve"];
    let starts = EXCHANGE_START_CYCLES + 2 * COMPUTE_START_CYCLES;
    within("Convolve", of(&convolve, starts), 15_240.0, 6.0);
    let starts = EXCHANGE_START_CYCLES + COMPUTE_START_CYCLES;
    within("Reduce0", of(&["Reduce0/ExchangePre", "Reduce0"], starts), 3_430.0, 9.0);
}
