//! Tables for agents: columns once, with units and formulas, then rows of values.

use super::super::answer::first;
use serde_json::{Map, Value, json};
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};

/// A table with its first rows.
pub(super) fn table_json(table: &DataTable, limit: usize) -> Value {
    linked_table_json(table, limit, |_| None)
}

/// The same with a link for each row that has one.
pub(super) fn linked_table_json(
    table: &DataTable,
    limit: usize,
    link: impl Fn(usize) -> Option<String>,
) -> Value {
    let mut columns: Vec<Value> = table.columns.iter().map(column).collect();
    let links: Vec<Option<String>> = (0..table.rows.len().min(limit)).map(link).collect();
    let has_links = links.iter().any(Option::is_some);
    if has_links {
        columns.push(json!({ "name": "link" }));
    }
    let row = |(at, cells): (usize, &Vec<TableCell>)| {
        let mut values: Vec<Value> = cells.iter().map(|cell| json!(cell)).collect();
        if has_links {
            values.push(json!(links.get(at)));
        }
        Value::Array(values)
    };
    json!({ "columns": columns, "rows": first(table.rows.iter().enumerate(), limit, row) })
}

fn column(column: &TableColumn) -> Value {
    let mut said = Map::new();
    said.insert("name".to_owned(), column.title.as_str().into());
    if let Some(unit) = column.unit {
        said.insert("unit".to_owned(), unit.into());
    }
    if !column.about.is_empty() {
        said.insert("formula".to_owned(), column.about.into());
    }
    Value::Object(said)
}
