//! The labels of the rows of a table, for each key that they can be grouped by.

use super::operation_index::{OperationIndex, RowSubject, ipu_label};
use super::{GROUPED_ABOVE, GroupKey, NO_LABEL};
use crate::data_table::{ColumnSubject, DataTable, TableCell};
use std::collections::{BTreeMap, HashMap};
use tilescope_report::units::{IpuId, ProgramId};

/// Labels of rows by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowKeys {
    keys: BTreeMap<GroupKey, KeyLabels>,
}

/// The labels of a key, and which of them each row has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KeyLabels {
    labels: Vec<String>,
    of_rows: Vec<u32>,
}

impl RowKeys {
    pub(super) fn new(table: &DataTable, index: &OperationIndex) -> Self {
        let column =
            |subject| table.columns.iter().position(|column| column.subject == Some(subject));
        let names = column(ColumnSubject::Operation);
        let programs = column(ColumnSubject::Program);
        let ipus = column(ColumnSubject::Key(GroupKey::Ipu));
        let own = GroupKey::ALL.map(|key| column(ColumnSubject::Key(key)));
        let mut found = GroupKey::ALL.map(|_| KeyLabels::default());
        let mut known = GroupKey::ALL.map(|_| HashMap::new());
        for row in &table.rows {
            let resolved = index.resolve(RowSubject {
                name: names.map_or("", |at| words(&row[at])),
                program: programs.and_then(|at| number(&row[at])).map(ProgramId),
                ipu: ipus.and_then(|at| number(&row[at])).map(IpuId),
            });
            for (at, key) in GroupKey::ALL.into_iter().enumerate() {
                let label = own[at]
                    .and_then(|column| label_of_cell(key, &row[column]))
                    .or_else(|| index.label(key, &resolved).map(|label| label.into_owned()))
                    .unwrap_or_else(|| NO_LABEL.to_owned());
                let labels = &mut found[at].labels;
                let next = labels.len() as u32;
                let place = *known[at].entry(label).or_insert_with_key(|label: &String| {
                    labels.push(label.clone());
                    next
                });
                found[at].of_rows.push(place);
            }
        }
        Self { keys: GroupKey::ALL.into_iter().zip(found).collect() }
    }

    /// The label of a row.
    pub fn label(&self, key: GroupKey, row: usize) -> &str {
        let of = self.keys.get(&key);
        let label = of.and_then(|of| of.labels.get(*of.of_rows.get(row)? as usize));
        label.map_or(NO_LABEL, String::as_str)
    }

    /// Number of groups.
    pub fn count(&self, key: GroupKey) -> usize {
        self.keys.get(&key).map_or(0, |of| of.labels.len())
    }

    /// Keys that tell rows apart.
    pub fn useful(&self) -> impl Iterator<Item = GroupKey> + use<'_> {
        GroupKey::ALL.into_iter().filter(|key| self.count(*key) > 1)
    }

    /// The key that a long table is grouped by at first: kinds of layers, if they are few beside its
    /// rows; `None` for a short table.
    pub fn at_first(&self, rows: usize) -> Option<GroupKey> {
        if rows <= GROUPED_ABOVE {
            return None;
        }
        let order =
            [GroupKey::Layer, GroupKey::Part, GroupKey::Operator, GroupKey::Block, GroupKey::Ipu];
        let few = |key: &GroupKey| (2..=rows / 3).contains(&self.count(*key));
        order.into_iter().find(few)
    }
}

fn words(cell: &TableCell) -> &str {
    match cell {
        TableCell::Text(text) => text,
        _ => "",
    }
}

fn number(cell: &TableCell) -> Option<u32> {
    u32::try_from(cell.whole()?).ok()
}

/// The label that a cell of the table gives.
fn label_of_cell(key: GroupKey, cell: &TableCell) -> Option<String> {
    match (key, number(cell)) {
        (GroupKey::Ipu, Some(ipu)) => Some(ipu_label(IpuId(ipu))),
        (GroupKey::Ipu, None) if !words(cell).is_empty() => Some(format!("IPU {}", words(cell))),
        _ => Some(words(cell).to_owned()).filter(|text| !text.is_empty()),
    }
}
