//! Changes that a search tries.

use super::fit_levers::FitLevers;
use super::levers::{LEVERS, Lever, LeverUse, MEANING, NUMBERS, NUMBERS_OF_MEMORY, is_below};
use crate::condition::Condition;
use crate::effective_keys::{EffectiveKeys, value_type};
use crate::objective::TuneObjective;
use crate::trial::TrialFinding;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tilescope_analysis::insights::{
    DIVIDED_REPLICAS, SpecChanges, TriedProposal, divided_replicas,
};
use tilescope_sim::specification::Spec;
use tilescope_sim::specification::keys::SpecKeyType;

/// The largest number of pipeline divisions that are tried from one point.
const MOST_STAGE_MOVES: usize = 24;

/// Factors of numbers, coarse ones first.
const FACTORS: [[f64; 2]; 3] = [[2.0, 0.5], [1.5, 0.75], [1.25, 0.875]];

/// The reason to try a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveReason {
    /// The rule of insights that proposes it, or the kind of change: `lever`, `number`, `stages`.
    pub rule: String,
    pub sentence: String,
    /// The cost of the change; empty if it is not known.
    #[serde(alias = "price")]
    pub cost: String,
    /// Upper bound of its gain in time, as a share.
    pub bound: Option<f64>,
    /// Its part of all changes.
    pub changes: SpecChanges,
}

/// A change of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneMove {
    #[serde(rename = "change")]
    pub changes: SpecChanges,
    /// The reasons; several for a combination.
    pub reasons: Vec<MoveReason>,
}

impl TuneMove {
    pub(super) fn of(rule: &str, changes: SpecChanges, sentence: String) -> Self {
        let rule = rule.to_owned();
        let cost = String::new();
        let reason = MoveReason { rule, sentence, cost, bound: None, changes: changes.clone() };
        Self { changes, reasons: vec![reason] }
    }

    /// The change that a finding proposes.
    pub fn proposed(finding: &TrialFinding) -> Option<Self> {
        let of_time = ["time", "everything"].contains(&finding.gain.of.as_str());
        let reason = MoveReason {
            rule: finding.rule.clone(),
            sentence: finding.sentence.clone(),
            cost: finding.cost.clone(),
            bound: finding.gain.share.filter(|_| of_time),
            changes: finding.changes.clone(),
        };
        let changes = finding.changes.clone();
        (!changes.is_empty()).then(|| Self { changes, reasons: vec![reason] })
    }

    /// Combines several changes; those that change a key of an earlier one are left out.
    pub fn together(parts: &[Self]) -> Self {
        let mut all = Self { changes: SpecChanges::new(), reasons: Vec::new() };
        for part in parts {
            if !part.overlaps(&all) {
                all.changes.extend(part.changes.clone());
                all.reasons.extend(part.reasons.clone());
            }
        }
        all
    }

    /// The parts of the change, each with its reason.
    pub fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        for reason in &self.reasons {
            parts.push(Self { changes: reason.changes.clone(), reasons: vec![reason.clone()] });
        }
        parts
    }

    /// True if both change the same key.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.changes.keys().any(|key| other.changes.contains_key(key))
    }

    /// Upper bound of its gain in time, as a share; `None` if it is not known.
    pub fn bound(&self) -> Option<f64> {
        match self.reasons.as_slice() {
            [reason] => reason.bound,
            _ => None,
        }
    }

    /// `options.num_io_tiles = 32, options.overlap_io = "loops"`
    pub fn text(&self) -> String {
        changes_words(&self.changes)
    }
}

/// Formats changes in one line.
pub fn changes_words(changes: &SpecChanges) -> String {
    let changes = changes.iter().map(|(key, value)| format!("{key} = {value}"));
    changes.collect::<Vec<_>>().join(", ")
}

/// The key that determines whether gradients and an update follow the forward pass.
const TRAINING: &str = "model.training";
/// The key of the number of micro-batches per update.
const ACCUMULATION: &str = "options.gradient_accumulation";

/// The changes of a spec that a search may try.
pub struct TuneSpace {
    pub keys: EffectiveKeys,
    /// Keys and tables named by `--free`.
    pub free: Vec<String>,
    /// Keys and tables named by `--fix`.
    pub fixed: Vec<String>,
    pub objective: TuneObjective,
    pub conditions: Vec<Condition>,
    /// Changes that are tried where the spec does not fit.
    pub fit: FitLevers,
}

impl TuneSpace {
    /// The changes of a spec that may make an objective small.
    pub fn new(spec: &Spec, objective: TuneObjective) -> Self {
        let mut space = Self {
            keys: EffectiveKeys::of(spec),
            free: Vec::new(),
            fixed: Vec::new(),
            objective,
            conditions: Vec::new(),
            fit: FitLevers::default(),
        };
        space.fit = FitLevers::of(spec, &space);
        space
    }

    /// The value of a key at a point.
    pub fn value<'a>(&'a self, at: &'a SpecChanges, path: &str) -> Option<&'a Value> {
        at.get(path).or_else(|| self.keys.value(path))
    }

    /// A point with more changes. Keys that return to the value of the spec are removed.
    pub fn moved(&self, from: &SpecChanges, by: &TuneMove) -> SpecChanges {
        let mut changes = from.clone();
        changes.extend(by.changes.clone());
        changes.retain(|path, value| self.keys.value(path) != Some(value));
        changes
    }

    /// The keys of a change that must not be touched.
    pub fn forbidden<'a>(&self, by: &'a TuneMove) -> Vec<&'a str> {
        let mut found = Vec::new();
        for reason in &by.reasons {
            // The same samples on the same IPUs, divided in another way.
            let is_meant = reason.rule == DIVIDED_REPLICAS;
            for path in reason.changes.keys() {
                let has_meaning = !is_meant && is_below(path, MEANING);
                let is_free = is_below(path, &self.free) || !has_meaning;
                if is_below(path, &self.fixed) || !is_free {
                    found.push(path.as_str());
                }
            }
        }
        found
    }

    /// True if a point is not possible on any machine: gradients are accumulated without training,
    /// or an IPU Model is replicated.
    fn is_of_no_machine(&self, at: &SpecChanges) -> bool {
        let is_trained = self.value(at, TRAINING) != Some(&json!(false));
        let is_model = self.value(at, "target.type") == Some(&json!("ipu_model"));
        !is_trained && self.is_above_one(at, ACCUMULATION)
            || is_model && self.is_above_one(at, "options.replication_factor")
    }

    /// True if conditions on keys are met, and no fixed keys are changed.
    pub fn allows(&self, from: &SpecChanges, by: &TuneMove) -> bool {
        let to = self.moved(from, by);
        for condition in &self.conditions {
            if condition.of_keys(|path| self.value(&to, path)) == Some(false) {
                return false;
            }
        }
        self.forbidden(by).is_empty() && !self.is_of_no_machine(&to)
    }

    /// The proposals of findings, the largest bound first, limited to those that save memory or
    /// time as the objective requires.
    pub fn proposals(&self, findings: &[TrialFinding], saves_memory: bool) -> Vec<TuneMove> {
        let mut found: Vec<TuneMove> = Vec::new();
        for finding in findings {
            let counts = match finding.gain.of.as_str() {
                "time" => self.objective != TuneObjective::Memory,
                "memory" => saves_memory,
                _ => true,
            };
            if counts {
                found.extend(TuneMove::proposed(finding));
            }
        }
        found.sort_by(|a, b| b.bound().unwrap_or(0.0).total_cmp(&a.bound().unwrap_or(0.0)));
        found
    }

    /// Other values of keys that a point has changed, first coarse and then finer ones.
    pub fn neighbours(&self, at: &SpecChanges, proposed: &[String]) -> Vec<Vec<TuneMove>> {
        let freed = self.free.iter().filter(|path| self.keys.has(path)).map(String::as_str);
        let own = at.keys().map(String::as_str);
        let named = proposed.iter().map(String::as_str);
        let numbers = match self.objective {
            TuneObjective::Memory => NUMBERS_OF_MEMORY,
            _ => NUMBERS,
        };
        let mut paths: Vec<&str> = Vec::new();
        for path in own.chain(freed).chain(named).chain(numbers.iter().copied()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let level = |factors: &[f64; 2]| {
            let of = |path: &&str| {
                factors
                    .iter()
                    .filter_map(|factor| self.number(at, path, *factor))
                    .collect::<Vec<_>>()
            };
            paths.iter().flat_map(of).collect()
        };
        FACTORS.iter().map(level).collect()
    }

    /// A number times a factor, within the range of its key.
    fn number(&self, at: &SpecChanges, path: &str, factor: f64) -> Option<TuneMove> {
        let now = self.value(at, path)?;
        let value = match value_type(path) {
            SpecKeyType::Integer(least, most) => {
                let whole = now.as_i64()?;
                // Even numbers stay even if possible: I/O tiles come in pairs.
                let grain = if whole % 2 == 0 && whole > 2 { 2.0 } else { 1.0 };
                let value = ((whole as f64 * factor / grain).round() * grain) as i64;
                json!(value.clamp(least, most))
            }
            SpecKeyType::PowerOfTwo(most) if factor == 2.0 || factor == 0.5 => {
                json!(((now.as_i64()? as f64 * factor) as i64).clamp(1, most))
            }
            SpecKeyType::RealAbove(least, most)
            | SpecKeyType::RealsAboveOr(least, most, _)
            | SpecKeyType::RealFrom(least, most) => {
                let value = (now.as_f64()? * factor).clamp(least, most);
                // A few digits: users do not set a proportion to the billionth.
                json!((value * 1e4).round() / 1e4)
            }
            _ => return None,
        };
        let times = match factor {
            2.0 => "twice".to_owned(),
            0.5 => "half".to_owned(),
            factor => format!("{factor} times"),
        };
        let is_new = value.as_f64() != now.as_f64() && value.as_f64() != Some(0.0);
        let sentence = format!("{path} is {now}; this tries {times} as much.");
        is_new.then(|| TuneMove::of("number", [(path.to_owned(), value)].into(), sentence))
    }

    /// Other values of levers, and of freed keys of the same kind.
    pub fn levers(&self, at: &SpecChanges, saves_memory: bool) -> Vec<TuneMove> {
        let mut found = Vec::new();
        for Lever { key, used, faster, smaller } in LEVERS {
            let has_effect = match used {
                LeverUse::Always => true,
                LeverUse::Training => self.value(at, TRAINING) == Some(&json!(true)),
                LeverUse::SeveralIpus => self.is_above_one(at, "target.ipus"),
                LeverUse::Replicas => self.is_above_one(at, "options.replication_factor"),
            };
            if !has_effect {
                continue;
            }
            let words = if saves_memory { smaller } else { faster };
            found.extend(words.iter().filter_map(|word| self.word(at, key, word)));
        }
        for path in self.free.iter().filter(|path| self.keys.has(path)) {
            let words: &[&str] = match value_type(path) {
                SpecKeyType::OneOf(words) => words,
                SpecKeyType::Boolean => &["true", "false"],
                _ => &[],
            };
            found.extend(words.iter().filter_map(|word| self.word(at, path, word)));
        }
        found
    }

    fn is_above_one(&self, at: &SpecChanges, path: &str) -> bool {
        self.value(at, path).and_then(Value::as_i64).is_some_and(|count| count > 1)
    }

    fn word(&self, at: &SpecChanges, path: &str, word: &str) -> Option<TuneMove> {
        let now = self.value(at, path)?;
        let value = word.parse::<bool>().map_or_else(|_| json!(word), |flag| json!(flag));
        let sentence = format!("{path} is {now}; this tries {value}.");
        if *now == value {
            return None;
        }
        let mut changes: SpecChanges = [(path.to_owned(), value)].into();
        // Without training there is no accumulation.
        if path == TRAINING && word == "false" && self.is_above_one(at, ACCUMULATION) {
            changes.insert(ACCUMULATION.to_owned(), json!(1));
        }
        Some(TuneMove::of("lever", changes, sentence))
    }

    /// Fewer stages, and boundaries of stages moved by one block; empty if stages are not given.
    pub fn stage_moves(&self, at: &SpecChanges) -> Vec<TuneMove> {
        const KEY: &str = "options.stages";
        let stages = self.value(at, KEY).and_then(written_stages).unwrap_or_default();
        let mut found = Vec::new();
        let mut add = |stages: Vec<Vec<String>>, sentence: String| {
            found.push(TuneMove::of("stages", [(KEY.to_owned(), json!(stages))].into(), sentence));
        };
        for left in 0..stages.len().saturating_sub(1) {
            let names = stages[left].join(" + ");
            let others = stages[left + 1].join(" + ");
            let mut merged = stages.clone();
            let right = merged.remove(left + 1);
            merged[left].extend(right);
            add(merged, format!("{names} and {others} are two stages; this merges them."));
            if let [_, .., last] = stages[left].as_slice() {
                let mut later = stages.clone();
                let last = last.clone();
                later[left].pop();
                later[left + 1].insert(0, last.clone());
                add(
                    later,
                    format!(
                        "{last} is the last of stage {names}; this moves it to the next stage."
                    ),
                );
            }
            if let [first, _, ..] = stages[left + 1].as_slice() {
                let mut earlier = stages.clone();
                let first = first.clone();
                earlier[left + 1].remove(0);
                earlier[left].push(first.clone());
                add(
                    earlier,
                    format!(
                        "{first} is the first of stage {others}; this moves it to the previous \
                         stage."
                    ),
                );
            }
        }
        found.truncate(MOST_STAGE_MOVES);
        found
    }

    /// Half the IPUs, with the blocks distributed over the rest; empty if that cannot be an
    /// improvement by itself.
    pub fn fewer_ipus(&self, at: &SpecChanges) -> Vec<TuneMove> {
        let ipus = self.value(at, "target.ipus").and_then(Value::as_i64).unwrap_or(1);
        if !self.objective.is_of_machine() || ipus < 2 {
            return Vec::new();
        }
        let fewer = |auto_stage: &str| {
            let changes = [
                ("target.ipus".to_owned(), json!(ipus / 2)),
                ("options.stages".to_owned(), json!([])),
                ("options.auto_stage".to_owned(), json!(auto_stage)),
            ];
            let sentence = format!("A replica has {ipus} IPUs; this tries half of them.");
            TuneMove::of("ipus", changes.into(), sentence)
        };
        vec![fewer("same_as_ipu"), fewer("balanced")]
    }

    /// More replicas of fewer IPUs each, with the same IPUs and the same samples per update.
    pub fn more_replicas(&self, at: &SpecChanges) -> Vec<TuneMove> {
        let read_number = |path: &str| self.value(at, path).and_then(Value::as_u64);
        let execution = self.value(at, "options.execution").and_then(Value::as_str);
        let is_divided = matches!(execution, Some("pipelined" | "sharded"));
        if !is_divided || self.is_above_one(at, "options.tensor_parallel") {
            return Vec::new();
        }
        let ipus = read_number("target.ipus").unwrap_or(1);
        let is_trained = self.value(at, TRAINING) == Some(&json!(true));
        let mut found = Vec::new();
        for parts in (2..=ipus).filter(|parts| ipus.is_multiple_of(*parts)) {
            if let Some(changes) = divided_replicas(parts, read_number, is_trained) {
                let sentence = format!(
                    "A replica has {ipus} IPUs; this tries {parts} replicas of {} each.",
                    ipus / parts
                );
                found.push(TuneMove::of(DIVIDED_REPLICAS, changes, sentence));
            }
        }
        found
    }

    /// True if the upper bound of a change is below the smallest gain worth testing.
    pub fn is_bound_too_low(&self, by: &TuneMove) -> bool {
        self.objective.is_time()
            && by.bound().is_some_and(|bound| bound < TriedProposal::LEAST_GAIN)
    }
}

/// Stages given as lists of blocks.
fn written_stages(value: &Value) -> Option<Vec<Vec<String>>> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_sim::specification::SpecSource;

    /// The moves of a bundled spec with some keys freed.
    fn space(name: &str, overrides: &[&str], free: &[&str]) -> TuneSpace {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let source = SpecSource::find(name, &overrides).expect("bundled");
        let spec = Spec::build(&source).expect("valid");
        let free = free.iter().map(ToString::to_string).collect();
        TuneSpace { free, ..TuneSpace::new(&spec, TuneObjective::Throughput) }
    }

    #[test]
    fn accumulation_requires_training() {
        let start = SpecChanges::new();
        let both = space("mnist_pipeline", &[], &[TRAINING, ACCUMULATION]);
        let off = both.word(&start, TRAINING, "false").expect("a move");
        assert_eq!(off.changes[ACCUMULATION], json!(1));
        assert!(both.allows(&start, &off));
        // Training stays on unless accumulation can be reset.
        let only = space("mnist_pipeline", &[], &[TRAINING]);
        assert!(!only.allows(&start, &only.word(&start, TRAINING, "false").expect("a move")));
        let inference = ["model.training=false", "options.gradient_accumulation=1"];
        let untrained = space("mnist_pipeline", &inference, &[ACCUMULATION]);
        let more = untrained.number(&start, ACCUMULATION, 2.0).expect("a move");
        assert!(!untrained.allows(&start, &more));
        let more = both.number(&start, ACCUMULATION, 2.0).expect("a move");
        assert!(both.allows(&start, &more));
    }

    #[test]
    fn an_ipu_model_is_not_replicated() {
        let replicas = "options.replication_factor";
        let start = SpecChanges::new();
        for (kind, allowed) in [("target.type=ipu_model", false), ("target.type=ipu", true)] {
            let space = space("mat_vec", &[kind], &[replicas]);
            let more = space.number(&start, replicas, 2.0).expect("a move");
            assert_eq!(space.allows(&start, &more), allowed, "{kind}");
        }
    }
}
