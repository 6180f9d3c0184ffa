//! The records of operations, found by the name of an operation or of one of its programs.

use super::GroupKey;
use crate::label_conventions::blocks_of_stage;
use crate::program_names::without_counter_prefix;
use crate::tables::operations::pass_title;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tilescope_report::units::{IpuId, OperationId, ProgramId};
use tilescope_report::{
    MarkFilter, MarkKind, ModelOperation, ProgramNodeTable, Report, ReportError,
};

/// Marks that are looked through for stages: a pipeline has each of them in its first slots.
const MOST_STAGE_MARKS: usize = 4096;

/// Operations by their names, and the stages of a pipeline.
#[derive(Debug)]
pub struct OperationIndex {
    operations: Arc<Vec<ModelOperation>>,
    programs: Arc<ProgramNodeTable>,
    by_name: HashMap<String, Vec<OperationId>>,
    /// Folded names that stand for several.
    layers: BTreeSet<String>,
    /// Names of stages with their blocks, by IPU.
    stages: BTreeMap<IpuId, Vec<PipelineStage>>,
}

#[derive(Debug)]
struct PipelineStage {
    name: String,
    blocks: BTreeSet<String>,
}

/// The facts that a row states itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowSubject<'a> {
    /// Name of an operation, or of one of its programs.
    pub(super) name: &'a str,
    pub(super) program: Option<ProgramId>,
    /// The IPU that the row names.
    pub(super) ipu: Option<IpuId>,
}

/// A row with its operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedRow<'a> {
    operation: Option<&'a ModelOperation>,
    /// Name of the operation, or that of the row without its number.
    name: &'a str,
    ipu: Option<IpuId>,
}

impl OperationIndex {
    /// The index of a report, which is made once.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn of(report: &Report) -> Result<Arc<Self>, ReportError> {
        report.derived(Self::read)
    }

    fn read(report: &Report) -> Result<Self, ReportError> {
        let operations = report.operations()?;
        let programs = report.programs()?;
        let mut by_name: HashMap<String, Vec<OperationId>> = HashMap::new();
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        let mut layers = BTreeSet::new();
        for (id, operation) in (0..).map(OperationId).zip(operations.iter()) {
            by_name.entry(operation.name.clone()).or_default().push(id);
            let folded = folded(&operation.name);
            match names.get(folded.as_str()) {
                Some(first) if *first != operation.name => drop(layers.insert(folded)),
                Some(_) => {}
                None => drop(names.insert(folded, &operation.name)),
            }
        }
        let mut index = Self { operations, programs, by_name, layers, stages: BTreeMap::new() };
        index.read_stages(report)?;
        Ok(index)
    }

    fn read_stages(&mut self, report: &Report) -> Result<(), ReportError> {
        let kind = Some(MarkKind::Stage);
        let filter = MarkFilter { kind, ipu: None, window: None, limit: MOST_STAGE_MARKS };
        for mark in report.marks(&filter)? {
            let Some(ipu) = mark.ipu else { continue };
            // `B1 forward` and `B1 backward` are passes of one stage.
            let name = mark.label.split(' ').next().unwrap_or_default();
            let known = self.stages.entry(ipu).or_default();
            if !name.is_empty() && !known.iter().any(|stage| stage.name == name) {
                let blocks = blocks_of_stage(name).into_iter().map(str::to_owned).collect();
                known.push(PipelineStage { name: name.to_owned(), blocks });
            }
        }
        Ok(())
    }

    /// The label of an operation or a program by its name alone; `None` if it has none.
    pub fn label_of_name(&self, key: GroupKey, name: &str) -> Option<String> {
        let row = self.resolve(RowSubject { name, ..RowSubject::default() });
        self.label(key, &row).map(Cow::into_owned)
    }

    /// Finds the operation, the name and the IPU of a row, from which all its labels follow.
    pub(super) fn resolve<'a>(&'a self, row: RowSubject<'a>) -> ResolvedRow<'a> {
        let operation = self.operation(row);
        let name = operation.map_or_else(|| plain_name(row.name), |of| &of.name);
        let ipu = row.ipu.or_else(|| self.ipu(row, operation));
        ResolvedRow { operation, name, ipu }
    }

    /// The label of a row for a key; `None` if it has none.
    pub(super) fn label<'a>(
        &'a self,
        key: GroupKey,
        row: &ResolvedRow<'a>,
    ) -> Option<Cow<'a, str>> {
        let ResolvedRow { operation, name, ipu } = *row;
        let label = match key {
            GroupKey::Block => operation?.block.as_deref()?.into(),
            GroupKey::Layer => self.layer(name).into(),
            GroupKey::Part => first_two(&folded(name)).to_owned().into(),
            GroupKey::Operator => operation?.kind.as_str().into(),
            GroupKey::Pass => pass_title(Some(operation?.pass)).into(),
            GroupKey::Stage => self.stage(ipu?, operation?)?.into(),
            GroupKey::Ipu => ipu_label(ipu?).into(),
        };
        Some(label).filter(|label: &Cow<'_, str>| !label.is_empty())
    }

    /// The operation of a row: that of its program, or else the one whose name is the longest prefix
    /// of the row's name.
    fn operation(&self, row: RowSubject<'_>) -> Option<&ModelOperation> {
        if let Some(program) = row.program.and_then(|id| self.programs.get(id)) {
            let of = program.operation.and_then(|of| self.operations.get(of.index()));
            if of.is_some() {
                return of;
            }
        }
        let mut name = plain_name(row.name);
        loop {
            if let Some(found) = self.by_name.get(name) {
                let mut all = found.iter().filter_map(|id| self.operations.get(id.index()));
                let first = all.clone().next();
                return all.find(|of| row.ipu.is_some() && of.ipu == row.ipu).or(first);
            }
            (name, _) = name.rsplit_once('/')?;
        }
    }

    fn ipu(&self, row: RowSubject<'_>, operation: Option<&ModelOperation>) -> Option<IpuId> {
        let of_program = || self.programs.get(row.program?)?.ipu;
        operation.and_then(|of| of.ipu).or_else(of_program)
    }

    /// The name with its number folded, where several operations then have the same.
    fn layer(&self, name: &str) -> String {
        let folded = folded(name);
        let known = self.layers.contains(&folded) || !self.by_name.contains_key(name);
        if known { folded } else { name.to_owned() }
    }

    /// The stage on an IPU that computes the block of an operation.
    fn stage(&self, ipu: IpuId, operation: &ModelOperation) -> Option<&str> {
        let stages = self.stages.get(&ipu)?;
        let block = operation.block.as_deref().unwrap_or_default();
        let own = stages.iter().find(|stage| stage.blocks.contains(block));
        Some(&own.or_else(|| stages.first())?.name)
    }
}

/// The label of an IPU.
pub(super) fn ipu_label(ipu: IpuId) -> String {
    format!("IPU {ipu}")
}

/// A name without the number of its compute set or copy and without `/ExchangePre`.
fn plain_name(name: &str) -> &str {
    without_counter_prefix(name.strip_suffix("/ExchangePre").unwrap_or(name))
}

/// A path with the numbers of its first numbered name folded: `layer*/ff2/wu` for `layer17/ff2/wu`.
/// Further numbers tell unlike things apart: `ff1` and `ff2`.
fn folded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut is_done = false;
    for part in name.split_inclusive('/') {
        let has_number = part.bytes().any(|byte| byte.is_ascii_digit());
        if is_done || !has_number {
            text.push_str(part);
            continue;
        }
        is_done = true;
        let mut in_number = false;
        for letter in part.chars() {
            let is_digit = letter.is_ascii_digit();
            match (is_digit, in_number) {
                (true, false) => text.push('*'),
                (true, true) => {}
                (false, _) => text.push(letter),
            }
            in_number = is_digit;
        }
    }
    text
}

/// The first two names of a path, or the first three where it begins with a slash.
fn first_two(path: &str) -> &str {
    let from = usize::from(path.starts_with('/'));
    let mut slashes = path[from..].match_indices('/');
    match slashes.nth(1) {
        Some((at, _)) => &path[..from + at],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_first_numbered_name_are_folded() {
        let cases = [
            ("layer17/ff2/wu", "layer*/ff2/wu"),
            ("layer1_0/conv2/bn", "layer*_*/conv2/bn"),
            ("/encoder/layer.11/attention/MatMul_1", "/encoder/layer.*/attention/MatMul_1"),
            ("embeddings/word", "embeddings/word"),
            ("", ""),
        ];
        for (name, expected) in cases {
            assert_eq!(folded(name), expected);
        }
    }

    #[test]
    fn a_part_has_two_names() {
        let cases = [
            ("layer*/ff2/wu", "layer*/ff2"),
            ("loss", "loss"),
            ("/encoder/layer.*/attention", "/encoder/layer.*"),
        ];
        for (name, expected) in cases {
            assert_eq!(first_two(name), expected);
        }
    }
}
