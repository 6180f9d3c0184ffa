//! Single operations against what Poplar's own IPU Model reported for them
//! (graphcore/poplibs tests/benchmark_results.csv, March 2021).
//!
//! `cargo test --test op_rows -- --nocapture` prints every row.

use std::collections::BTreeMap;
use tilescope::sim::graph::DType;
use tilescope::sim::lower::alone::{self, Cost};
use tilescope::sim::lower::layout::{Layout, Order};
use tilescope::sim::lower::pool::{Axis, Kind, Pass, Pooling};
use tilescope::sim::lower::reduce::{self, Operation, Reduction};
use tilescope::sim::lower::runs;
use tilescope::sim::lower::work::{Place, Work};
use tilescope::sim::targets::{self, Chip};
use tilescope::units::TileRuns;

/// One line of the file.
struct Row {
    name: String,
    family: String,
    config: BTreeMap<String, String>,
    chip: &'static Chip,
    measured: Cost,
}

impl Row {
    fn text(&self, key: &str) -> Option<&str> {
        self.config.get(key).map(String::as_str)
    }

    fn numbers(&self, key: &str) -> Vec<u64> {
        let list = self.text(key).unwrap_or_default();
        list.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect()
    }

    fn dtype(&self, key: &str) -> DType {
        match self.text(key) {
            Some("float") => DType::Float,
            _ => DType::Half,
        }
    }

    fn tiles(&self) -> u32 {
        self.text("tiles-per-ipu").map_or(self.chip.tiles, |count| count.parse().unwrap())
    }
}

fn rows(family: &str) -> Vec<Row> {
    let text = include_str!("data/poplar_ipumodel_ops.csv");
    text.lines().skip(1).map(parse).filter(|row| row.family == family).collect()
}

/// A line: name, family, config in quotes where it has commas, target, three numbers.
fn parse(line: &str) -> Row {
    let (name, rest) = line.split_once(',').unwrap();
    let (family, rest) = rest.split_once(',').unwrap();
    let (config, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once("\",").unwrap(),
        None => rest.split_once(',').unwrap(),
    };
    let words = config.split_whitespace().filter_map(|word| word.split_once('='));
    let fields: Vec<&str> = rest.split(',').collect();
    let number = |at: usize| fields[at].parse().unwrap();
    Row {
        name: name.to_string(),
        family: family.to_string(),
        config: words.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        chip: targets::chip(fields[0]).unwrap(),
        measured: Cost {
            cycles: number(1),
            memory_bytes: number(2),
            fullest_tile_bytes: number(3),
        },
    }
}

/// Mean errors of a family, in percent: cycles, memory, fullest tile.
fn errors(family: &str, predict: impl Fn(&Row) -> Cost) -> [f64; 3] {
    let rows = rows(family);
    let mut sums = [0.0; 3];
    for row in &rows {
        let predicted = predict(row);
        let pairs = [
            (predicted.cycles, row.measured.cycles),
            (predicted.memory_bytes, row.measured.memory_bytes),
            (predicted.fullest_tile_bytes, row.measured.fullest_tile_bytes),
        ];
        let errors = pairs.map(|(p, m)| 100.0 * (p as f64 - m as f64) / m as f64);
        print!("{:32} {:4}", row.name, row.chip.name);
        for ((predicted, measured), error) in pairs.iter().zip(errors) {
            print!(" {predicted:>10} {measured:>10} {error:>6.1}%");
        }
        println!();
        for (sum, error) in sums.iter_mut().zip(errors) {
            *sum += error.abs() / rows.len() as f64;
        }
    }
    println!("{family:37} cycles {:.1}%, memory {:.1}%, fullest {:.1}%", sums[0], sums[1], sums[2]);
    sums
}

/// Asserts that mean errors stay below bounds in percent.
fn check(family: &str, bounds: [f64; 3], predict: impl Fn(&Row) -> Cost) {
    let errors = errors(family, predict);
    for ((error, bound), what) in
        errors.iter().zip(bounds).zip(["cycles", "memory", "fullest tile"])
    {
        assert!(*error <= bound, "{family}: {what} {error:.1} % off, {bound} % allowed");
    }
}

#[test]
fn reductions_cost_what_poplar_says() {
    check("reduction", [6.0, 6.0, 15.0], |row| {
        let shape = row.numbers("shape");
        let axes: Vec<usize> = row.numbers("dims").iter().map(|axis| *axis as usize).collect();
        let dtype = row.dtype("type");
        let input = Layout::linear(shape.iter().product(), dtype.bytes(), row.tiles());
        let mut work = Work::default();
        let reduction = Reduction {
            name: "reduce",
            operation: Operation::find(row.text("operation").unwrap()).unwrap(),
            dims: &reduce::dims(&shape, Order::Linear, &axes),
            input: &input.elements,
            dtype,
            output: dtype,
            tiles: row.tiles(),
            bytes_per_cycle: u64::from(row.chip.exchange_bytes_per_cycle),
        };
        let output = reduce::add(&mut work, &reduction).unwrap();
        if std::env::var("SHOW").is_ok() {
            show(&work);
        }
        let live = [input.bytes(dtype.bytes()), output.map(|count| count * dtype.bytes())];
        alone::cost(row.chip, row.tiles(), &work, &live, Place::Any)
    });
}

fn show(work: &Work) {
    use tilescope::sim::lower::work::PhaseKind;
    for (phase, times) in work.phases() {
        match &phase.kind {
            PhaseKind::Exchange { cycles, traffic, .. } => println!(
                "   {times}x {} exchange {} in {}",
                phase.name,
                cycles.max(),
                traffic.map(|t| t.bytes_in).total()
            ),
            PhaseKind::Compute { cycles, vertices } => println!(
                "   {times}x {} compute {} vertices {}",
                phase.name,
                cycles.max(),
                vertices
                    .iter()
                    .map(|v| format!("{} x{} ", v.vertex_type, v.count.total()))
                    .collect::<String>()
            ),
        }
    }
    for t in &work.temporaries {
        println!("      {} {} max {} live {:?}", t.name, t.bytes.total(), t.bytes.max(), t.live);
    }
}

/// The larger cost of two passes that follow each other, and the sum of their cycles.
fn both(first: Cost, second: Cost) -> Cost {
    Cost {
        cycles: first.cycles + second.cycles,
        memory_bytes: first.memory_bytes.max(second.memory_bytes),
        fullest_tile_bytes: first.fullest_tile_bytes.max(second.fullest_tile_bytes),
    }
}

#[test]
fn poolings_cost_what_poplar_says() {
    check("pooling", [6.0, 5.0, 1.0], |row| {
        let pair = |key: &str, or: u64| {
            let values = row.numbers(key);
            [values.first().copied().unwrap_or(or), values.last().copied().unwrap_or(or)]
        };
        let one = |key: &str, or: u64| pair(key, or)[0];
        let (field, kernel, stride) = (pair("field", 1), pair("kernel", 1), pair("stride", 1));
        let (before, behind) = (pair("padding-lower", 0), pair("padding-upper", 0));
        let axis = |at: usize| Axis {
            elements: field[at],
            kernel: kernel[at],
            stride: stride[at],
            before: before[at],
            behind: behind[at],
        };
        let (tiles, dtype) = (row.tiles(), row.dtype("data-type"));
        let forward = Pooling {
            pass: Pass { kind: Kind::Max, backward: false },
            dtype,
            batch: one("batch-size", 1),
            channels: one("channels", 1),
            axes: [axis(0), axis(1)],
            grouping: one("fwd-chans-per-group", 1),
            forward_grouping: one("fwd-chans-per-group", 1),
        };
        let elements = |field: [u64; 2]| forward.batch * forward.channels * field[0] * field[1];
        let linear = |field: [u64; 2]| {
            Layout::linear(elements(field), dtype.bytes(), tiles).bytes(dtype.bytes())
        };
        let windows = forward.axes.map(|axis| axis.windows().unwrap());
        // Activations and their gradients on both sides.
        let live = [linear(field), linear(field), linear(windows), linear(windows)];
        let speed = u64::from(row.chip.exchange_bytes_per_cycle);
        let run = |pooling: &Pooling, sources: &[TileRuns<u64>]| {
            let sources = sources.iter().fold(TileRuns::empty(), |sum, at| runs::add(&sum, at));
            let pooled = pooling.lower(tiles, speed, &sources).unwrap();
            if std::env::var("SHOW").is_ok() {
                println!("{:?}", pooled.plan);
                show(&pooled.work);
            }
            (pooled.plan, alone::cost(row.chip, tiles, &pooled.work, &live, Place::OwnElement))
        };
        let (plan, first) = run(&forward, &live[..1]);
        // Gradients lie as the results of the forward pass do.
        let backward = Pooling {
            pass: Pass { backward: true, ..forward.pass },
            grouping: plan.group,
            ..forward
        };
        let (_, second) = run(&backward, &live[1..]);
        both(first, second)
    });
}
