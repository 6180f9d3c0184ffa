//! Correspondence of operations and variables of two reports: by name, in order.

use super::comparison_table::{ComparedThing, ComparisonTable, pair_by_key};
use crate::data_table::TableCell;
use crate::view_location::ViewLocation;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, OperationId, VariableId};
use tilescope_report::{
    MemoryCategory, Report, ReportError, Variable, VariableFilter, VariablePlacement,
};

/// Corresponding operations and variables.
#[derive(Clone, Debug, Default)]
pub struct MatchedEntities {
    operations: BidirectionalMap<OperationId>,
    variables: BidirectionalMap<VariableId>,
}

#[derive(Clone, Debug)]
struct BidirectionalMap<T> {
    to_target: BTreeMap<T, T>,
    to_source: BTreeMap<T, T>,
}

impl<T> Default for BidirectionalMap<T> {
    fn default() -> Self {
        Self { to_target: BTreeMap::new(), to_source: BTreeMap::new() }
    }
}

impl<T: Ord + Copy> BidirectionalMap<T> {
    fn new(pairs: Vec<(Option<T>, Option<T>)>) -> Self {
        let mut both = Self::default();
        for (source, target) in pairs {
            if let (Some(source), Some(target)) = (source, target) {
                both.to_target.insert(source, target);
                both.to_source.insert(target, source);
            }
        }
        both
    }
}

impl MatchedEntities {
    /// Matches the operations and variables of two reports.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub(crate) fn read(source: &Report, target: &Report) -> Result<Self, ReportError> {
        let read_operations = |report: &Report| -> Result<Vec<_>, ReportError> {
            let mut found = Vec::new();
            for (at, operation) in report.operations()?.iter().enumerate() {
                let key = (operation.name.clone(), operation.kind.clone(), operation.pass);
                found.push((key, OperationId(at as u32)));
            }
            Ok(found)
        };
        let read_variables = |report: &Report| -> Result<Vec<_>, ReportError> {
            let all = report.variables(&unlimited_variable_filter())?.into_iter();
            Ok(all.map(|(id, variable)| ((variable.name, variable.category), id)).collect())
        };
        Ok(Self {
            operations: BidirectionalMap::new(pair_by_key(
                read_operations(source)?,
                read_operations(target)?,
            )),
            variables: BidirectionalMap::new(pair_by_key(
                read_variables(source)?,
                read_variables(target)?,
            )),
        })
    }

    /// The operation of the target that corresponds to one of the source.
    pub fn operation_to_target(&self, id: OperationId) -> Option<OperationId> {
        self.operations.to_target.get(&id).copied()
    }

    /// The operation of the source that corresponds to one of the target.
    pub fn operation_to_source(&self, id: OperationId) -> Option<OperationId> {
        self.operations.to_source.get(&id).copied()
    }

    /// The variable of the target that corresponds to one of the source.
    pub fn variable_to_target(&self, id: VariableId) -> Option<VariableId> {
        self.variables.to_target.get(&id).copied()
    }

    /// The variable of the source that corresponds to one of the target.
    pub fn variable_to_source(&self, id: VariableId) -> Option<VariableId> {
        self.variables.to_source.get(&id).copied()
    }
}

fn unlimited_variable_filter() -> VariableFilter {
    VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX }
}

/// Variables with the same name and category.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedVariables {
    /// Bytes over all tiles.
    pub(super) bytes: Bytes,
    /// Number of (variable, tile) pairs.
    pub(super) tiles: u64,
    pub(super) id: Option<VariableId>,
}

/// Variables of a report by category and name; files of other tools have one variable per tile.
pub(super) type VariablesByName = BTreeMap<(MemoryCategory, String), NamedVariables>;

/// The variables that satisfy `wanted`, summed over all tiles.
pub(super) fn variables_by_name(
    report: &Report,
    wanted: impl Fn(&Variable) -> bool,
) -> Result<VariablesByName, ReportError> {
    let mut names = VariablesByName::new();
    let all = report.variables(&unlimited_variable_filter())?.into_iter();
    for (id, variable) in all.filter(|(_, variable)| wanted(variable)) {
        let bytes = variable.tiles.map(|part: &VariablePlacement| part.bytes).total();
        let tiles = u64::from(variable.tiles.tile_count());
        let known = names.entry((variable.category, variable.name)).or_default();
        known.bytes += bytes;
        known.tiles += tiles;
        known.id = known.id.or(Some(id));
    }
    Ok(names)
}

/// Bytes of variables by name, with links into `view`; with a total only if they are live together.
pub(super) fn variable_table(
    title: &'static str,
    view: &'static str,
    [source, target]: [VariablesByName; 2],
    live_together: bool,
) -> ComparisonTable {
    let [source, target] = [source, target].map(|side| {
        let things = side.into_iter().map(|((category, name), of)| {
            let shown = match category {
                MemoryCategory::Variable => name.clone(),
                _ => format!("{name} ({})", category.title()),
            };
            let place = ViewLocation { variable: of.id, ..ViewLocation::view(view) };
            ((category, name), ComparedThing::new(shown, of.bytes).at(place))
        });
        things.collect::<Vec<_>>()
    });
    let table = ComparisonTable::paired(title, "Variable", source, target).by_change();
    if live_together { table.with_sums(TableCell::Bytes(Bytes::ZERO)) } else { table }
}
