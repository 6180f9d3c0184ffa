//! Grouping of programs into rows: operations of the model, library calls, single programs.

use super::{OpRow, OperationLayer};
use crate::program_names::without_counter_prefix;
use std::collections::BTreeMap;
use tilescope_report::units::{OperationId, ProgramId};
use tilescope_report::{
    ModelOperation, ProgramKind, ProgramNode, Report, ReportError, StepActivity,
};

/// The treatment of programs without an operation of the model if rows are operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherPrograms {
    LeftOut,
    /// Programs with the same name form a row.
    ByName,
}

/// The rows of a layer with their programs, without costs.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn rows(
    report: &Report,
    layer: OperationLayer,
    rest: OtherPrograms,
) -> Result<Vec<OpRow>, ReportError> {
    let known = report.operations()?;
    let programs = report.executed_program_nodes()?;
    let mut rows: Vec<OpRow> = Vec::new();
    if layer == OperationLayer::Model {
        rows.extend(known.iter().enumerate().map(|(index, of)| model_row(index, of)));
    }
    // Rows of operations have their places already, and precede all others.
    let mut others: BTreeMap<OpRowKey, OpRow> = BTreeMap::new();
    for (id, program) in programs.iter().filter(|(_, program)| counts(program)) {
        let operation = program.operation.and_then(|of| Some((of, known.get(of.index())?)));
        let Some(key) = key((layer, rest), id, program, operation) else { continue };
        let row = match &key {
            OpRowKey::Operation(index) => rows.get_mut(*index as usize),
            OpRowKey::Name(_) | OpRowKey::Program(_) => None,
        };
        let row = match row {
            Some(row) => row,
            None => {
                others.entry(key).or_insert_with_key(|key| row_of(layer, key, program, operation))
            }
        };
        row.programs.push(id);
    }
    // Growing by halves would double the list of a program with many operations.
    rows.reserve_exact(others.len());
    rows.extend(others.into_values());
    Ok(rows)
}

/// The key of a row, in the order of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OpRowKey {
    Operation(u32),
    Name(String),
    Program(ProgramId),
}

/// True if a program does work for an operation.
fn counts(program: &ProgramNode) -> bool {
    let waits = program.kind == ProgramKind::Sync;
    !waits && program.children.is_empty() && program.kind != ProgramKind::WriteUndef
}

fn key(
    (layer, rest): (OperationLayer, OtherPrograms),
    id: ProgramId,
    program: &ProgramNode,
    operation: Option<(OperationId, &ModelOperation)>,
) -> Option<OpRowKey> {
    match layer {
        OperationLayer::Model => match operation {
            Some((id, _)) => Some(OpRowKey::Operation(id.0)),
            None => {
                if rest == OtherPrograms::ByName {
                    Some(OpRowKey::Name(whole_name(program)))
                } else {
                    None
                }
            }
        },
        OperationLayer::Library => {
            let name = library_name(&program.name, operation.map(|(_, of)| of.name.as_str()));
            if name.is_empty() { None } else { Some(OpRowKey::Name(name)) }
        }
        OperationLayer::Program => Some(OpRowKey::Program(id)),
    }
}

/// The library call that a program belongs to: the operation's name and one more part, or all parts
/// but the last if the operation is not known. Prefixes of exchanges such as `cs3_` are left out.
fn library_name(program: &str, operation: Option<&str>) -> String {
    let name = plain_name(program);
    let rest = operation.and_then(|of| Some((of, name.strip_prefix(of)?.strip_prefix('/')?)));
    match (rest, operation) {
        (Some((of, rest)), _) => format!("{of}/{}", rest.split('/').next().unwrap_or(rest)),
        (None, Some(of)) => of.to_owned(),
        (None, None) => name.rsplit_once('/').map_or(name, |(above, _)| above).to_owned(),
    }
}

/// A name without the number of its compute set or copy and without `/ExchangePre`.
fn plain_name(name: &str) -> &str {
    without_counter_prefix(name.strip_suffix("/ExchangePre").unwrap_or(name))
}

fn model_row(index: usize, operation: &ModelOperation) -> OpRow {
    OpRow {
        name: operation.name.clone(),
        kind: operation.kind.clone(),
        source: operation.source.clone().unwrap_or_default(),
        operation: Some(OperationId(index as u32)),
        pass: Some(operation.pass),
        block: operation.block.clone().unwrap_or_default(),
        ipu: operation.ipu,
        shapes: operation.shapes.clone(),
        flops: operation.flops,
        ..OpRow::default()
    }
}

fn row_of(
    layer: OperationLayer,
    key: &OpRowKey,
    program: &ProgramNode,
    operation: Option<(OperationId, &ModelOperation)>,
) -> OpRow {
    let name = match key {
        OpRowKey::Name(name) => name.clone(),
        OpRowKey::Operation(_) | OpRowKey::Program(_) => program.name.clone(),
    };
    let kind = match (layer, operation) {
        (OperationLayer::Program, _) => program.kind.name().to_owned(),
        (OperationLayer::Model, None) => kind_of_rest(program).to_owned(),
        (_, Some((_, of))) => of.kind.clone(),
        (_, None) => String::new(),
    };
    OpRow {
        name,
        kind,
        source: operation.and_then(|(_, of)| of.source.clone()).unwrap_or_default(),
        operation: operation.map(|(id, _)| id),
        pass: operation.map(|(_, of)| of.pass),
        block: operation.and_then(|(_, of)| of.block.clone()).unwrap_or_default(),
        ipu: program.ipu,
        ..OpRow::default()
    }
}

/// The name of a program without an operation, the same for all steps of a copy.
fn whole_name(program: &ProgramNode) -> String {
    let name = plain_name(&program.name);
    let name = name.strip_suffix("/GlobalPre").unwrap_or(name);
    if name.is_empty() { program.kind.name().to_owned() } else { name.to_owned() }
}

/// The kind of work of a program without an operation.
fn kind_of_rest(program: &ProgramNode) -> &'static str {
    match StepActivity::from_program_kind(program.kind, program.stream) {
        StepActivity::Compute => "compute",
        StepActivity::InternalExchange => "exchange",
        StepActivity::GlobalExchange => "copy between IPUs",
        StepActivity::Host => "host copy",
        StepActivity::RemoteBuffer => "remote buffer copy",
        StepActivity::Sync | StepActivity::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_calls_are_one_name_below_their_operation() {
        let name = |program: &str, operation: Option<&str>| library_name(program, operation);
        assert_eq!(name("cs3_a/conv/Conv_1/Convolve/ExchangePre", Some("a/conv")), "a/conv/Conv_1");
        assert_eq!(name("a/conv/Conv_1/Reduce0", Some("a/conv")), "a/conv/Conv_1");
        assert_eq!(name("a/conv/Conv_1/Reduce0", None), "a/conv/Conv_1");
        assert_eq!(name("elsewhere", Some("a/conv")), "a/conv");
        assert_eq!(name("csv_file/x", None), "csv_file");
    }
}
