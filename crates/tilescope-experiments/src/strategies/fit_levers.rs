//! Single changes of a spec that save memory.

use super::moves::{TuneMove, TuneSpace};
use crate::effective_keys::read;
use serde_json::{Value, json};
use tilescope_analysis::insights::SpecChanges;
use tilescope_report::units::Bytes;
use tilescope_sim::changes_for_ipus;
use tilescope_sim::specification::Spec;
use tilescope_sim::targets::{Chip, MK2};

/// Memory proportions to try below that of a spec: half of PopTorch's default, and the smallest one
/// of published programs.
const PROPORTIONS: [f64; 2] = [0.3, 0.1];

/// Factors by which the IPUs of a replica are multiplied.
const MORE_IPUS: [u32; 3] = [2, 4, 8];

/// A change that may make a program fit.
#[derive(Clone, Debug)]
pub struct FitLever {
    pub moved: TuneMove,
    /// Memory of a tile with the change divided by that without: above 1 for another chip.
    pub room: f64,
}

impl FitLever {
    /// A lever on the same chip.
    pub fn new(moved: TuneMove) -> Self {
        Self { moved, room: 1.0 }
    }
}

/// The changes of a spec that may make it fit.
#[derive(Clone, Debug, Default)]
pub struct FitLevers {
    /// Memory of a tile.
    pub tile: Bytes,
    /// Changes that do not affect the result come first.
    pub levers: Vec<FitLever>,
}

impl FitLevers {
    /// Returns the changes of a spec that save memory.
    pub fn of(spec: &Spec, space: &TuneSpace) -> Self {
        Self { tile: spec.target.chip.bytes_per_tile, levers: levers(spec, space) }
    }

    /// The levers that a search may use.
    pub fn allowed(&self, space: &TuneSpace) -> Self {
        let mut levers = self.levers.clone();
        levers.retain(|lever| space.allows(&SpecChanges::new(), &lever.moved));
        Self { tile: self.tile, levers }
    }
}

fn levers(spec: &Spec, space: &TuneSpace) -> Vec<FitLever> {
    let mut found = Vec::new();
    found.extend(proportions(space));
    found.extend(space.levers(&SpecChanges::new(), true));
    found.extend(micro_batches(space));
    let mut found: Vec<FitLever> = found.into_iter().map(FitLever::new).collect();
    found.extend(more_ipus(spec).into_iter().map(FitLever::new));
    found.extend(other_chip(spec));
    found.extend(precision(spec, space).map(FitLever::new));
    found
}

fn fit_move(changes: SpecChanges, sentence: String, cost: &str) -> TuneMove {
    let mut moved = TuneMove::of("smallest_fit", changes, sentence);
    for reason in &mut moved.reasons {
        cost.clone_into(&mut reason.cost);
    }
    moved
}

fn value<'a>(space: &'a TuneSpace, key: &str) -> Option<&'a Value> {
    space.keys.value(key)
}

fn proportions(space: &TuneSpace) -> Vec<TuneMove> {
    const KEY: &str = "options.available_memory_proportion";
    let Some(now) = value(space, KEY) else { return Vec::new() };
    let mut found = Vec::new();
    for share in PROPORTIONS {
        if now.as_f64().is_none_or(|now| share < now) {
            found.push(fit_move(
                [(KEY.to_owned(), json!(share))].into(),
                format!(
                    "Matmuls and convolutions are planned with {share} of the memory of a tile."
                ),
                "Matmuls and convolutions are serialised into more parts",
            ));
        }
    }
    found
}

/// Half and a quarter of the samples of a micro-batch, with more micro-batches per weight update.
fn micro_batches(space: &TuneSpace) -> Vec<TuneMove> {
    const BATCH: &str = "model.batch_size";
    const STEPS: &str = "options.gradient_accumulation";
    let Some(samples) = value(space, BATCH).and_then(Value::as_u64) else { return Vec::new() };
    let is_trained = value(space, "model.training") == Some(&json!(true));
    let steps = value(space, STEPS).and_then(Value::as_u64);
    let mut found = Vec::new();
    for parts in [2, 4] {
        if samples < parts || samples % parts != 0 {
            continue;
        }
        let mut changes: SpecChanges = [(BATCH.to_owned(), json!(samples / parts))].into();
        if let Some(steps) = steps.filter(|_| is_trained) {
            changes.insert(STEPS.to_owned(), json!(steps.saturating_mul(parts)));
        }
        found.push(fit_move(
            changes,
            format!("A micro-batch has {} samples instead of {samples}.", samples / parts),
            "Syncs and operation starts occur more often",
        ));
    }
    found
}

fn more_ipus(spec: &Spec) -> Vec<TuneMove> {
    let now = spec.target.ipus;
    let most = spec.target.system.ipus / spec.options.replication_factor.max(1);
    let mut found = Vec::new();
    for times in MORE_IPUS {
        let ipus = now.saturating_mul(times);
        if ipus > most {
            break;
        }
        let mut changes = SpecChanges::new();
        for change in changes_for_ipus(spec, ipus) {
            let Some((key, text)) = change.split_once('=') else { continue };
            if let Ok(new) = read(key, text) {
                changes.insert(key.to_owned(), new);
            }
        }
        let sentence = format!("A replica has {ipus} IPUs instead of {now}.");
        found.push(fit_move(changes, sentence, &format!("{times} times as many IPUs")));
    }
    found
}

/// An Mk2, if the chip of the spec has less memory.
fn other_chip(spec: &Spec) -> Option<FitLever> {
    let chip: &Chip = spec.target.system.chip;
    if chip.bytes_per_tile >= MK2.bytes_per_tile {
        return None;
    }
    let sentence = format!(
        "A tile of an Mk2 has {} KiB instead of {}.",
        MK2.bytes_per_tile.0 / 1024,
        chip.bytes_per_tile.0 / 1024
    );
    let changes = [("target.name".to_owned(), json!(MK2.name))].into();
    Some(FitLever {
        moved: fit_move(changes, sentence, "Another machine"),
        room: MK2.bytes_per_tile.as_f64() / chip.bytes_per_tile.as_f64(),
    })
}

/// Half precision; in training, with weights and optimiser state in single precision.
fn precision(spec: &Spec, space: &TuneSpace) -> Option<TuneMove> {
    const KEY: &str = "model.precision";
    let now = value(space, KEY)?.as_str()?;
    if now != "float32" {
        return None;
    }
    let new = if spec.model.training { "mixed" } else { "float16" };
    let sentence = format!("Activations and temporaries are float16 ({KEY} = {new:?}).");
    let cost = "Lower precision: float16 has an 11-bit significand, and gradients may need loss \
                 scaling";
    Some(fit_move([(KEY.to_owned(), json!(new))].into(), sentence, cost))
}
