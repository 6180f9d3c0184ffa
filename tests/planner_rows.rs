//! Planner and lowering against what Poplar's IPU Model reported for single operations
//! (`tests/data/poplar_ipumodel_ops.csv`).

use std::collections::HashMap;
use tilescope::sim::graph::DType;
use tilescope::sim::lower::constants::{COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES};
use tilescope::sim::lower::conv;
use tilescope::sim::lower::work::{PhaseKind, Work, WorkItem};
use tilescope::sim::planner::{
    ConvParams, FieldDim, Machine, Pass, PlanOptions, TrainingPlans, plan, plan_convolution,
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
        self.config.get(key).map_or(default, |value| value.parse().unwrap())
    }

    /// Two numbers for two dimensions; one stands for both.
    fn pair(&self, key: &str, default: u64) -> [u64; 2] {
        let Some(value) = self.config.get(key) else { return [default; 2] };
        let values: Vec<u64> = value.split(',').map(|value| value.parse().unwrap()).collect();
        [values[0], *values.last().unwrap()]
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
    let text = std::fs::read_to_string(path).unwrap();
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
            machine: Machine::whole(*chip(fields[3]).unwrap()),
            cycles: fields[4].parse().unwrap(),
            memory_bytes: fields[5].parse().unwrap(),
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

fn added(machine: &Machine, data_type: DType, bytes: &TileRuns<u64>) -> Work {
    let phase = conv::scaled_add(machine, "UpdateWeights".to_owned(), data_type, bytes);
    Work { items: vec![phase], temporaries: Vec::new() }
}

/// What the benchmark tools run for a row.
fn works(row: &Row) -> Vec<(String, Work)> {
    let machine = &row.machine;
    let planned = conv::Source::Planned;
    if row.family == "gemm" {
        let params = row.matmul();
        let plan = plan(machine, &params, &PlanOptions::new(Pass::MatMul)).unwrap();
        let product = conv::forward(machine, &plan, planned, planned);
        let bytes = evenly(machine, params.output_elements() * params.output_type.bytes());
        return vec![
            ("matmul".to_owned(), product),
            ("add".to_owned(), added(machine, params.output_type, &bytes)),
        ];
    }
    let (params, plans): (ConvParams, TrainingPlans) = if row.family == "fc" {
        let params = row.matmul();
        let options = PlanOptions::new(Pass::FcTrainingForward);
        let plans = plan_fully_connected(machine, &params, &options).unwrap();
        (params, plans)
    } else {
        let params = row.convolution();
        let options = PlanOptions::new(Pass::TrainingForward);
        let plans = plan_convolution(machine, &params, &options).unwrap();
        (params, plans)
    };
    let weights = conv::planned_layouts(machine, &plans.forward).weights;
    vec![
        ("fwd".to_owned(), conv::forward(machine, &plans.forward, planned, planned)),
        ("bwd".to_owned(), conv::backward(machine, &plans, planned)),
        ("wu".to_owned(), conv::weight_update(machine, &plans)),
        ("add".to_owned(), added(machine, params.input_type, &weights.bytes)),
    ]
}

fn print_phases(items: &[WorkItem], indent: usize) {
    for item in items {
        match item {
            WorkItem::Phase(phase) => {
                let most = match &phase.kind {
                    PhaseKind::Exchange { cycles, .. } | PhaseKind::Compute { cycles, .. } => {
                        cycles.max()
                    }
                };
                println!("{:indent$}{} {most}", "", phase.name);
            }
            WorkItem::Loop { times, body } => {
                println!("{:indent$}x{times}", "");
                print_phases(body, indent + 2);
            }
        }
    }
}

#[test]
fn table() {
    let only = std::env::var("ROW").unwrap_or_default();
    let mut sums: HashMap<String, (f64, f64, u32)> = HashMap::new();
    for row in rows() {
        if !only.is_empty() && !row.name.contains(&only) {
            continue;
        }
        let works = works(&row);
        let total: u64 = works.iter().map(|(_, work)| cycles(work)).sum();
        let error = (total as f64 / row.cycles - 1.0) * 100.0;
        if !only.is_empty() {
            for (name, work) in &works {
                println!("  {name} {}", cycles(work));
                print_phases(&work.items, 4);
            }
        }
        let mut ex = 0;
        let mut co = 0;
        for (_, work) in &works {
            for (phase, times) in work.phases() {
                match phase.kind {
                    PhaseKind::Exchange { .. } => ex += times,
                    _ => co += times,
                }
            }
        }
        println!(
            "ROW,{},{},{},{},{total},{error:+.2},{ex},{co}",
            row.family, row.name, row.machine.chip.name, row.cycles
        );
        let sum = sums.entry(format!("{} {}", row.family, row.machine.chip.name)).or_default();
        sum.0 += error.abs();
        sum.1 = sum.1.max(error.abs());
        sum.2 += 1;
    }
    let mut keys: Vec<_> = sums.iter().collect();
    keys.sort_by_key(|(k, _)| (*k).clone());
    for (key, (sum, worst, n)) in keys {
        println!("{key}: mean {:.2} worst {worst:.1} n {n}", sum / f64::from(*n));
    }
    let _ = rows()[0].memory_bytes;
}
