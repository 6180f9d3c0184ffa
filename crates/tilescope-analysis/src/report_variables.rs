//! Access to the variables of files that may have millions of them: one by one, or the first ones
//! with a flag for more.

use tilescope_report::units::{TileRange, VariableId};
use tilescope_report::{Report, ReportError, Variable, VariableFilter};

/// The number of variables per read.
const PAGE: usize = 1 << 15;

/// The first items of a list that may be longer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstOf<T> {
    pub(crate) found: Vec<T>,
    /// True if the list has further items.
    pub(crate) more: bool,
}

/// The first `most` variables, limited to those on the given tiles if any.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn first_variables(
    report: &Report,
    tiles: Option<TileRange>,
    most: usize,
) -> Result<FirstOf<(VariableId, Variable)>, ReportError> {
    let limit = most.saturating_add(1);
    let mut found =
        report.variables(&VariableFilter { tiles, category: None, after: None, limit })?;
    let more = found.len() > most;
    found.truncate(most);
    Ok(FirstOf { found, more })
}

/// Calls `each` for every variable.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn for_each_variable(
    report: &Report,
    each: impl FnMut(VariableId, &Variable),
) -> Result<(), ReportError> {
    for_each_in_pages(report, PAGE, each)
}

fn for_each_in_pages(
    report: &Report,
    page_size: usize,
    mut each: impl FnMut(VariableId, &Variable),
) -> Result<(), ReportError> {
    let mut filter = VariableFilter { tiles: None, category: None, after: None, limit: page_size };
    loop {
        let page = report.variables(&filter)?;
        page.iter().for_each(|(id, variable)| each(*id, variable));
        match page.last() {
            Some((last, _)) if page.len() == page_size => filter.after = Some(*last),
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::MemoryCategory;
    use tilescope_report::units::TileId;

    #[test]
    fn all_variables_are_visited_and_partial_lists_are_marked() {
        let mut builder = ReportBuilder::new(1, 4);
        let count = 43;
        for at in 0..count {
            let tile = (at % 4) as u32;
            builder.variable("v", MemoryCategory::Variable, tile..tile + 1, 8, None);
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        for page_size in [1, 10, 42, 43, 44] {
            let mut seen = Vec::new();
            for_each_in_pages(&report, page_size, |id, _| seen.push(id)).unwrap();
            assert_eq!(seen, (0..count).map(VariableId::from_index).collect::<Vec<_>>());
        }
        let first = |tiles, most| first_variables(&report, tiles, most).unwrap();
        for (most, more) in [(count - 1, true), (count, false), (count + 1, false)] {
            let found = first(None, most);
            assert_eq!((found.found.len(), found.more), (most.min(count), more));
        }
        let tile = first(Some(TileRange::single(TileId(1))), 5);
        assert!(tile.more && tile.found.iter().all(|(id, _)| id.0 % 4 == 1));
    }
}
