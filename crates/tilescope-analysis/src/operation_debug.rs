//! All recorded data of an operation, line by line and unprocessed.

use super::json::{self, JsonLine};
use tilescope_report::units::{OperationId, ProgramId, grouped};
use tilescope_report::{Report, ReportError};

/// The largest number of programs or operands that are listed.
const MAX_LISTED: usize = 2_000;

/// The lines of an operation and of its programs.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn debug_lines(
    report: &Report,
    operation: Option<OperationId>,
    programs: &[ProgramId],
) -> Result<Vec<JsonLine>, ReportError> {
    let mut lines = OperationDebugLines(Vec::new());
    let known = report.operations()?;
    if let Some((id, of)) = operation.and_then(|id| Some((id, known.get(id.index())?))) {
        lines.add(0, "operation", String::new());
        lines.add(1, "id", id.0.to_string());
        lines.add(1, "name", of.name.clone());
        lines.add(1, "operator", of.kind.clone());
        lines.add(1, "pass", of.pass.name().to_owned());
        lines.add(1, "block", of.block.clone().unwrap_or_else(|| "none".to_owned()));
        lines.add(1, "IPU", of.ipu.map_or_else(|| "unknown".to_owned(), |ipu| ipu.to_string()));
        lines.add(1, "shapes", of.shapes.clone());
        lines.add(1, "FLOPs", grouped(of.flops));
        lines.add(1, "inputs", if of.inputs.is_empty() { "none" } else { "" }.to_owned());
        for input in of.inputs.iter().take(MAX_LISTED) {
            let name = known.get(input.index()).map_or("unknown", |input| input.name.as_str());
            lines.add(2, &input.0.to_string(), name.to_owned());
        }
        lines.add_rest(2, of.inputs.len());
        if let Some(plan) = &of.plan {
            lines.add(1, "plan", String::new());
            let parts = json::lines(plan).unwrap_or_else(|error| {
                vec![JsonLine {
                    depth: 0,
                    name: "not valid JSON".to_owned(),
                    value: error.to_string(),
                }]
            });
            lines
                .0
                .extend(parts.into_iter().map(|line| JsonLine { depth: line.depth + 2, ..line }));
        }
    }
    let all = report.programs()?;
    lines.add(0, "programs", String::new());
    for id in programs.iter().take(MAX_LISTED) {
        let Some(program) = all.get(*id) else { continue };
        lines.add(1, &id.0.to_string(), format!("{} {}", program.kind.name(), program.name));
        if let Some(set) = program.compute_set {
            lines.add(2, "compute set", set.0.to_string());
        }
        for frame in report.debug_frames(*id)?.iter() {
            let name = frame.operation.as_ref().unwrap_or(&frame.name);
            let kind = frame.kind.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
            lines.add(2, &format!("{} context", frame.layer), format!("{name}{kind}"));
        }
    }
    lines.add_rest(1, programs.len());
    Ok(lines.0)
}

struct OperationDebugLines(Vec<JsonLine>);

impl OperationDebugLines {
    fn add(&mut self, depth: u32, name: &str, value: String) {
        self.0.push(JsonLine { depth, name: name.to_owned(), value });
    }

    /// Adds a line with the number of items that are left out of a list.
    fn add_rest(&mut self, depth: u32, all: usize) {
        if all > MAX_LISTED {
            self.add(depth, "and more", grouped((all - MAX_LISTED) as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::ProgramKind;

    #[test]
    fn programs_are_listed_as_they_stand_in_the_report() {
        let mut report = ReportBuilder::new(1, 4);
        let work = report.compute("a/b", 50);
        report.root(ProgramKind::Sequence, "main", &[work]);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        let lines = debug_lines(&report, None, &[work]).unwrap();
        let described: Vec<String> = lines
            .iter()
            .map(|line| format!("{} {} {}", line.depth, line.name, line.value))
            .collect();
        let id = work.0;
        let expected = [
            "0 programs ".to_owned(),
            format!("1 {id} OnTileExecute a/b"),
            "2 compute set 0".to_owned(),
        ];
        assert_eq!(described, expected);
    }
}
