//! Compute sets made of very many strided copies.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};
use crate::tile_mapping::is_strided_copy;
use tilescope_report::ProgramKind;
use tilescope_report::units::{Cycles, ProgramId, grouped, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "strided_copies",
    description: "the longest strided copies",
    keys: &[],
    find,
};

/// Copies that take less do not matter.
const MIN_SHARE: f64 = 0.01;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((program, count, cycles)) = worst(facts) else { return Vec::new() };
    let share = facts.share(cycles);
    if share < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        sentence: format!(
            "{} runs {} strided copy vertices and takes {} of the run.",
            facts.name(program),
            grouped(count),
            percent(share),
        ),
        advice: "Many small strided copies hint at a layout that does not suit the next operation."
            .to_owned(),
        formula: "cycles of the compute set with StridedCopy vertices that takes longest / cycles \
                  of the run",
        gain: facts.gain_of_program(1.0, program),
        place: ViewLocation { program: Some(program), ..ViewLocation::view("program-tree") },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}

/// The program whose strided copies take longest, with their number and its cycles.
fn worst(facts: &InsightFacts) -> Option<(ProgramId, u64, Cycles)> {
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
    let with_copies = runs.steps.iter().map(|((_, id, _), of)| (*id, copies(*id), of.cycles));
    with_copies.filter(|(_, count, _)| *count > 0).max_by_key(|(_, _, cycles)| *cycles)
}
