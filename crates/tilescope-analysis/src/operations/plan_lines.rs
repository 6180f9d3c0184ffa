//! The planner's choice, as lines of text.

use crate::json::{self, JsonLine};
use tilescope_report::units::Cycles;

/// A line of the planner's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLine {
    pub line: JsonLine,
    /// The value, if it is a number of cycles of a phase.
    pub cycles: Option<Cycles>,
}

/// The planner's choice, line by line; estimated phases without cycles are left out. Text other
/// than JSON becomes a single line.
pub fn plan_lines(plan: &str) -> Vec<PlanLine> {
    let Ok(lines) = json::lines(plan) else {
        let line = JsonLine { depth: 0, name: "Plan".to_owned(), value: plan.to_owned() };
        return vec![PlanLine { line, cycles: None }];
    };
    let mut found = Vec::new();
    for line in lines {
        let cycles = cycles_of_phase(&line);
        if cycles != Some(Cycles::ZERO) {
            found.push(PlanLine { line, cycles });
        }
    }
    found
}

fn cycles_of_phase(line: &JsonLine) -> Option<Cycles> {
    if !line.name.ends_with("Cycles") {
        return None;
    }
    line.value.replace(',', "").parse().ok().map(Cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_line_by_line() {
        let lines = plan_lines(r#"{"method":"AMP","estimate":{"aCycles":0,"bCycles":1200}}"#);
        let words: Vec<_> = lines
            .iter()
            .map(|PlanLine { line, .. }| (line.depth, line.name.as_str(), line.value.as_str()))
            .collect();
        assert_eq!(words, [(0, "estimate", ""), (1, "bCycles", "1,200"), (0, "method", "AMP")]);
        assert_eq!(lines[1].cycles, Some(Cycles(1200)));
        assert_eq!(plan_lines("not json")[0].line.value, "not json");
    }
}
