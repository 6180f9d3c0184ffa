//! Fewer IPUs per replica and more replicas, with the same IPUs and the same samples per update.

use super::proposal::SpecChanges;
use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation,
    pluralised,
};
use serde_json::json;
use tilescope_report::ProgramOutcome;
use tilescope_report::units::Bytes;

const IPUS: &str = "target.ipus";
const REPLICAS: &str = "options.replication_factor";
const ACCUMULATION: &str = "options.gradient_accumulation";
const MICRO_BATCH: &str = "model.batch_size";
const ITERATIONS: &str = "options.device_iterations";
const STAGES: &str = "options.stages";
const AUTO_STAGE: &str = "options.auto_stage";

/// Name of the rule. Its changes keep the samples of an update and the IPUs.
pub const DIVIDED_REPLICAS: &str = "more_replicas";

pub(crate) const RULE: InsightRule = InsightRule {
    name: DIVIDED_REPLICAS,
    description: "a pipeline whose model fits on fewer IPUs",
    keys: &[IPUS, REPLICAS, ACCUMULATION, MICRO_BATCH, ITERATIONS, STAGES, AUTO_STAGE],
    find,
};

/// Returns the changes that divide each replica into `parts` replicas, with as many samples per weight
/// update, or per host call without training. `number` reads a key of the spec.
///
/// `None` if the IPUs or the samples cannot be divided by `parts`, or if a pipeline would get fewer
/// micro-batches than it needs.
pub fn divided_replicas(
    parts: u64,
    number: impl Fn(&str) -> Option<u64>,
    is_trained: bool,
) -> Option<SpecChanges> {
    let ipus = number(IPUS).filter(|ipus| ipus.is_multiple_of(parts))? / parts;
    let replicas = number(REPLICAS)?.saturating_mul(parts);
    let mut changes: SpecChanges =
        [(IPUS.to_owned(), json!(ipus)), (REPLICAS.to_owned(), json!(replicas))].into();
    if is_trained {
        let steps = number(ACCUMULATION)?;
        // A pipeline of n stages takes 2n - 1 micro-batches to fill.
        let fills = ipus == 1 || steps / parts >= 2 * ipus - 1;
        if fills && steps.is_multiple_of(parts) {
            changes.insert(ACCUMULATION.to_owned(), json!(steps / parts));
        } else {
            let samples = number(MICRO_BATCH).filter(|of| of.is_multiple_of(parts))?;
            changes.insert(MICRO_BATCH.to_owned(), json!(samples / parts));
        }
    } else if let Some(iterations) = number(ITERATIONS).filter(|of| of.is_multiple_of(parts)) {
        changes.insert(ITERATIONS.to_owned(), json!(iterations / parts));
    }
    changes.insert(STAGES.to_owned(), json!([]));
    if ipus > 1 {
        changes.insert(AUTO_STAGE.to_owned(), json!("balanced"));
    }
    Some(changes)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    proposed(facts).into_iter().collect()
}

fn proposed(facts: &InsightFacts) -> Option<InsightFinding> {
    let ipus = u64::from(facts.target.ipus_per_replica);
    let divides = matches!(facts.spec("options.execution"), Some("pipelined" | "sharded"))
        && facts.spec("options.tensor_parallel").is_none_or(|ways| ways == "1");
    if ipus < 2 || !divides || facts.outcome != ProgramOutcome::Executed {
        return None;
    }
    let tiles = fullest_by_ipu(facts);
    let is_trained = facts.spec("model.training") == Some("true");
    // The fewest IPUs that hold all of their data.
    let fewest = (1..ipus).find(|count| {
        ipus.is_multiple_of(*count) && holds(&tiles, *count, facts.target.bytes_per_tile)
    })?;
    let parts = ipus / fewest;
    let changes = divided_replicas(parts, |key| facts.spec_number(key), is_trained)?;
    let gain = facts.chains.as_ref()?.gain_of_whole_batches(&facts.programs, fewest == 1)?;
    let most = most_together(&tiles, fewest);
    let room = facts.target.bytes_per_tile;
    let cost = if is_trained {
        "Replicas reduce gradients together; a tile needs more memory"
    } else {
        "A tile needs more memory"
    };
    Some(InsightFinding {
        sentence: format!(
            "A replica of {} fits on {}: the fullest tiles need {} of {} together.",
            pluralised(ipus, "IPU"),
            pluralised(fewest, "IPU"),
            facts.numbers.bytes(most.0),
            facts.numbers.bytes(room.0),
        ),
        advice: format!(
            "{parts} replicas of {} each run their micro-batches independently.",
            pluralised(fewest, "IPU")
        ),
        formula: "1 - mean over IPUs of cycles without waits and exchange between IPUs (for replicas \
                  of one IPU also without stashes and repeated handshakes) / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal(changes.iter().map(|(key, of)| (key.as_str(), of.clone())), cost),
        place: ViewLocation::view("summary"),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    })
}

/// Memory of the fullest tile of each IPU.
fn fullest_by_ipu(facts: &InsightFacts) -> Vec<Bytes> {
    let per_ipu = facts.target.tiles_per_ipu.max(1);
    let mut fullest = vec![Bytes::ZERO; facts.target.ipus_per_replica as usize];
    for (range, tile) in facts.memory.iter() {
        let first = range.first.0 / per_ipu;
        let last = (range.end.0.max(1) - 1) / per_ipu;
        for ipu in fullest.iter_mut().take(last as usize + 1).skip(first as usize) {
            *ipu = (*ipu).max(tile.including_gaps);
        }
    }
    fullest
}

/// The most that the fullest tiles of IPUs need which become one of `count`.
fn most_together(tiles: &[Bytes], count: u64) -> Bytes {
    let parts = tiles.len() / (count as usize).max(1);
    let mut most = Bytes::ZERO;
    for group in tiles.chunks(parts.max(1)) {
        most = most.max(group.iter().copied().sum());
    }
    most
}

fn holds(tiles: &[Bytes], count: u64, room: Bytes) -> bool {
    most_together(tiles, count) <= room
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn divided(parts: u64, keys: &[(&str, u64)], is_trained: bool) -> Option<SpecChanges> {
        let keys: BTreeMap<&str, u64> = keys.iter().copied().collect();
        divided_replicas(parts, |key| keys.get(key).copied(), is_trained)
    }

    #[test]
    fn samples_per_update_are_kept() {
        for (ipus, replicas, samples, steps) in [(2, 1, 8, 6), (4, 2, 3, 40), (6, 1, 12, 5)] {
            let keys =
                [(IPUS, ipus), (REPLICAS, replicas), (MICRO_BATCH, samples), (ACCUMULATION, steps)];
            for parts in 2..=ipus {
                let Some(changes) = divided(parts, &keys, true) else { continue };
                let value = |key: &str| {
                    let old = keys.iter().find(|(of, _)| *of == key).map_or(1, |(_, now)| *now);
                    changes.get(key).and_then(serde_json::Value::as_u64).unwrap_or(old)
                };
                let after = value(REPLICAS) * value(MICRO_BATCH) * value(ACCUMULATION);
                assert_eq!(after, replicas * samples * steps, "{keys:?} in {parts}");
                assert_eq!(value(IPUS) * value(REPLICAS), ipus * replicas);
            }
        }
    }

    #[test]
    fn what_cannot_be_divided_is_left_alone() {
        let odd = [(IPUS, 3), (REPLICAS, 1), (MICRO_BATCH, 5), (ACCUMULATION, 7)];
        assert_eq!(divided(2, &odd, true), None);
        assert_eq!(divided(3, &odd, true), None);
        // Without training a call may bring more samples.
        assert!(divided(3, &odd, false).is_some());
    }

    #[test]
    fn memory_of_neighbours_is_added_up() {
        let tiles = [10, 20, 30, 5].map(Bytes);
        assert_eq!(most_together(&tiles, 1), Bytes(65));
        assert_eq!(most_together(&tiles, 2), Bytes(35));
        assert!(holds(&tiles, 2, Bytes(35)) && !holds(&tiles, 2, Bytes(34)));
    }
}
