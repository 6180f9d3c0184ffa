//! Compares the cost of a size with that of the next one: rows of a layer, tokens and samples of a
//! transformer layer, in steps of one. Prints the largest differences of each sweep, and the number
//! above 1.3 times.
//!
//! `cargo bench --bench neighbours` takes a few minutes. These are predicted cycles, not times.

use tilescope_report::units::Cycles;
use tilescope_sim::shape::DType;
use tilescope_test_support::operations::{
    encoder_operations, layer_cost, layer_cycles, operation_cliffs,
};

/// The minimum ratio that counts as a difference.
const CLIFF: f64 = 1.3;

/// Number of lines per sweep.
const SHOWN: usize = 5;

/// Prints where the costs of a size and of the next one differ.
fn compare(title: &str, costs: &[(u64, f64)]) {
    let mut pairs: Vec<(f64, u64)> = costs
        .windows(2)
        .map(|pair| (pair[0].1.max(pair[1].1) / pair[0].1.min(pair[1].1), pair[0].0))
        .collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let cliffs = pairs.iter().filter(|(factor, _)| *factor > CLIFF).count();
    println!("{title}: {} neighbours, {cliffs} above {CLIFF} times", pairs.len());
    for (factor, size) in pairs.iter().take(SHOWN) {
        println!("  {size} and {}: {factor:.2} times", size + 1);
    }
}

/// Compares layers with these batches and tokens, one of which (`at`) is swept, and prints the
/// operations that differ much.
fn compare_layers(title: &str, sizes: &[[u64; 2]], at: usize) {
    let layers: Vec<_> = sizes.iter().map(|size| (size[at], encoder_operations(*size))).collect();
    let costs: Vec<_> = layers.iter().map(|(size, layer)| (*size, layer_cost(layer))).collect();
    compare(title, &costs);
    for pair in layers.windows(2) {
        for cliff in operation_cliffs([&pair[0].1, &pair[1].1]) {
            println!("  {} and {}: {} {:.2} times", pair[0].0, pair[1].0, cliff.name, cliff.factor);
        }
    }
}

fn main() {
    for (name, dtype) in [("half", DType::Half), ("float", DType::Float)] {
        let layer = |rows| (rows, layer_cycles("mk2", dtype, [rows, 768, 3072]));
        let rows: Vec<(u64, [Cycles; 2])> = (1..=4096).map(layer).collect();
        let of = |cost: fn([Cycles; 2]) -> Cycles| -> Vec<(u64, f64)> {
            rows.iter().map(|(rows, cycles)| (*rows, cost(*cycles).as_f64())).collect()
        };
        compare(
            &format!("rows of a {name} product, 768 to 3072, and its bias"),
            &of(|cycles| cycles[0] + cycles[1]),
        );
        // Plans of neighbours may leave their results in different orders, which suit a bias more
        // or less. This is a part of the sweep above.
        compare(&format!("rows of the bias alone, {name}"), &of(|cycles| cycles[1]));
        let share = |(_, cycles): &(u64, [Cycles; 2])| cycles[1].as_f64() / cycles[0].as_f64();
        let largest = rows.iter().map(share).fold(0.0, f64::max);
        println!("  the bias takes {:.0} % of its product at most", 100.0 * largest);
    }
    for batch in [1, 8, 32] {
        let sizes: Vec<_> = (64..=512).map(|tokens| [batch, tokens]).collect();
        compare_layers(&format!("tokens of a BERT-Base layer, batch {batch}"), &sizes, 1);
    }
    for tokens in [64, 127, 128, 384, 392, 512] {
        let sizes: Vec<_> = (1..=32).map(|batch| [batch, tokens]).collect();
        compare_layers(&format!("samples of a BERT-Base layer, {tokens} tokens"), &sizes, 0);
    }
}
