//! Operations of an imported graph that take longer in the exported form than in another form.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::trace::RunShare;
use std::collections::BTreeMap;
use tilescope_report::ModelOperation;
use tilescope_report::units::OperationId;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "exported_form",
    description: "operations of an imported model that another form of the graph computes faster",
    keys: &[],
    find,
};

/// Smaller shares of the run do not justify another export.
const MIN_SHARE: f64 = 0.01;

/// Ratio of the cycles of GELU by tanh and GELU by erf: 1.3 of 16 for an element (poplibs
/// `lib/popnn/codelets/NonLinearity.cpp` and popart `willow/src/popx/op/erfx.cpp`).
const TANH_FOR_ERF: f64 = 1.3 / 16.0;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    gelu_by_erf(facts).into_iter().chain(separate_products(facts)).collect()
}

fn is_imported(operation: &ModelOperation) -> bool {
    operation.source.as_ref().is_some_and(|source| source.contains('@'))
}

/// The share of the run that some operations take, and the gain if the shares of their cycles in
/// `removed` disappear; `None` if that does not justify another export.
fn share_and_gain(
    facts: &InsightFacts,
    removed: &BTreeMap<OperationId, f64>,
) -> Option<(RunShare, InsightGain)> {
    let (share, _) = facts
        .busiest_share(|program| program.operation.is_some_and(|id| removed.contains_key(&id)))?;
    let gain = facts.gain(|part| {
        let share = part.program.operation.and_then(|id| removed.get(&id));
        share.copied().unwrap_or(0.0) * part.cycles.as_f64()
    });
    (share.value() >= MIN_SHARE).then_some((share, InsightGain::of_time(gain)))
}

fn gelu_by_erf(facts: &InsightFacts) -> Option<InsightFinding> {
    let mut wanted: BTreeMap<OperationId, f64> = BTreeMap::new();
    for (index, operation) in facts.operations.iter().enumerate() {
        if is_imported(operation) && operation.kind.starts_with("gelu_erf") {
            wanted.insert(OperationId::from_index(index), 1.0 - TANH_FOR_ERF);
        }
    }
    let (share, gain) = share_and_gain(facts, &wanted)?;
    let count = wanted.len();
    Some(InsightFinding {
        sentence: format!(
            "GELU computed with erf takes {share} of the run, in {count} \
                           operations."
        ),
        advice: "Export the model with the tanh form, torch.nn.GELU(approximate=\"tanh\"): it is \
                 a single vertex on the IPU, and the form that PopTorch uses for GELU."
            .to_owned(),
        formula: "gain: cycles of these operations x (1 - 1.3 / 16) / cycles of the run",
        gain,
        place: ViewLocation {
            operation: wanted.keys().next().copied(),
            ..ViewLocation::view("operations")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    })
}

/// The operation that produces the input of a chain of reshapes.
fn behind_reshapes(facts: &InsightFacts, mut operation: OperationId) -> OperationId {
    while let Some(reshape) =
        facts.operations.get(operation.index()).filter(|found| found.kind == "reshape")
        && let [input] = reshape.inputs[..]
        && input < operation
    {
        operation = input;
    }
    operation
}

/// Products of one tensor with several weights of the same shape, which one product with wider
/// weights can replace: the queries, keys and values of an attention.
fn separate_products(facts: &InsightFacts) -> Option<InsightFinding> {
    let mut groups: BTreeMap<(OperationId, &str), Vec<OperationId>> = BTreeMap::new();
    for (index, operation) in facts.operations.iter().enumerate() {
        if !is_imported(operation) || operation.kind != "matmul" {
            continue;
        }
        if let [input] = operation.inputs[..] {
            let read = behind_reshapes(facts, input);
            let group = groups.entry((read, operation.shapes.as_str())).or_default();
            group.push(OperationId::from_index(index));
        }
    }
    // A fused product takes at least as long as one of the products that it replaces.
    let mut removed: BTreeMap<OperationId, f64> = BTreeMap::new();
    let mut fused = 0;
    for group in groups.values().filter(|group| group.len() > 1) {
        fused += 1;
        for operation in group {
            removed.insert(*operation, 1.0 - 1.0 / group.len() as f64);
        }
    }
    let first = removed.keys().next().copied()?;
    let (share, gain) = share_and_gain(facts, &removed)?;
    Some(InsightFinding {
        sentence: format!(
            "{} matrix products of {fused} tensors take {} of the run. Products of the same \
             tensor have weights of the same shape.",
            removed.len(),
            share
        ),
        advice: "Concatenate the weights that multiply the same tensor, such as queries, keys and \
                 values, and export one product: the operand is then exchanged once."
            .to_owned(),
        formula: "gain: cycles of these products except one per tensor / cycles of the run; a \
                  joined product takes at least as long as one of them",
        gain,
        place: ViewLocation { operation: Some(first), ..ViewLocation::view("operations") },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    })
}
