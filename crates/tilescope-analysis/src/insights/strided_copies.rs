//! Compute sets with a very large number of strided copies.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};
use crate::tile_mapping::is_strided_copy;
use crate::trace::RunShare;
use tilescope_report::ProgramKind;
use tilescope_report::units::{ProgramId, grouped};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "strided_copies",
    description: "the longest strided copies",
    keys: &[],
    find,
};

/// Smaller shares are negligible.
const MIN_SHARE: f64 = 0.01;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((program, count, share)) = worst(facts) else { return Vec::new() };
    if share.value() < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        sentence: format!(
            "{} runs {} strided copy vertices, which take {} of the run.",
            facts.name(program),
            grouped(count),
            share,
        ),
        advice: "Many small strided copies suggest a layout that does not suit the next operation."
            .to_owned(),
        formula: "cycles of the compute set with StridedCopy vertices that takes longest / cycles \
                  of the run",
        gain: facts.gain_of_program(1.0, program),
        place: ViewLocation { program: Some(program), ..ViewLocation::view("program-tree") },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}

/// The program with the longest strided copies, their number and the program's share of the run.
fn worst(facts: &InsightFacts) -> Option<(ProgramId, u64, RunShare)> {
    let runs = facts.runs.as_ref()?;
    let copies = |id: ProgramId| -> u64 {
        let program = facts.programs.get(id);
        let set = program.filter(|program| program.kind == ProgramKind::OnTileExecute);
        let set = set.and_then(|program| facts.compute_sets.get(&program.compute_set?));
        let groups = set.map_or(&[][..], |set| &set.vertices);
        let strided = groups.iter().filter(|group| {
            let kind = facts.vertex_types.get(group.vertex_type.index());
            kind.is_some_and(|kind| is_strided_copy(&kind.name))
        });
        strided.map(|group| group.count.total()).sum()
    };
    let with_copies = runs.shares().map(|of| (of.program, copies(of.program), of.share));
    let with_copies = with_copies.filter(|(_, count, _)| *count > 0);
    with_copies.max_by(|a, b| a.2.value().total_cmp(&b.2.value()))
}
