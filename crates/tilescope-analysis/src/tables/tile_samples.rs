//! Tables of samples of measured tiles, grouped by what they are of.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::tile_samples::{
    SampleFilter, SampleGroup, SampleGrouping, SampleKey, metadata_names, sample_groups,
};
use tilescope_report::units::Cycles;
use tilescope_report::{Report, ReportError};

const TILES: &str = "Tiles that the samples are of";
const PHASES: &str = "Phases that the samples are of, those of each epoch counted";
const WORK: &str = "Cycles of all samples";
const MEAN: &str = "Cycles of all samples / samples";
const MEDIAN: &str = "Cycles that half of the samples do not exceed";
const PERCENTILE: &str = "Cycles that 95 of a hundred samples do not exceed";
const BY_KIND: &str = "Cycles of the samples of this kind";

/// Samples that pass a filter, grouped; no rows where tiles were not measured.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn samples(
    report: &Report,
    by: &SampleGrouping,
    filter: &SampleFilter,
) -> Result<DataTable, ReportError> {
    let rows = sample_groups(report, by, filter)?.into_iter();
    let rows = rows.map(|group| [vec![key(&group.key)], cells(&group)].concat());
    let mut letters = by.name().chars();
    let first = letters.next().map(char::to_uppercase);
    let title: String = first.into_iter().flatten().chain(letters).collect();
    Ok(DataTable::new([vec![TableColumn::text(title)], columns()].concat(), rows.collect()))
}

/// Samples grouped by each name of the metadata in turn; those without it are left out.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn samples_by_metadata(report: &Report) -> Result<DataTable, ReportError> {
    let mut rows = Vec::new();
    for name in metadata_names(report)? {
        let by = SampleGrouping::Metadata(name.clone());
        let groups = sample_groups(report, &by, &SampleFilter::new())?.into_iter();
        let with_value = groups.filter(|group| group.key != SampleKey::None);
        rows.extend(
            with_value
                .map(|group| [vec![name.as_str().into(), key(&group.key)], cells(&group)].concat()),
        );
    }
    let own = vec![TableColumn::text("Name"), TableColumn::text("Value")];
    Ok(DataTable::new([own, columns()].concat(), rows))
}

fn key(key: &SampleKey) -> TableCell {
    match key {
        SampleKey::Text(text) => text.as_str().into(),
        SampleKey::Number(number) => TableCell::Id((*number).into()),
        SampleKey::Tile(tile) => TableCell::Tile(*tile),
        SampleKey::None => TableCell::Missing,
    }
}

fn cells(group: &SampleGroup) -> Vec<TableCell> {
    let cycles = |cycles: Cycles| TableCell::Count(cycles.0);
    let mut cells = vec![
        TableCell::Count(group.samples),
        TableCell::Count(group.tiles),
        TableCell::Count(group.phases),
        cycles(group.work),
        TableCell::Real(group.mean),
        cycles(group.median),
        cycles(group.percentile_95),
        cycles(group.most),
    ];
    cells.extend(group.work_by_kind.map(cycles));
    cells
}

fn columns() -> Vec<TableColumn> {
    let mut columns = vec![
        TableColumn::number("Samples"),
        TableColumn::number("Tiles").about(TILES),
        TableColumn::number("Phases").about(PHASES),
        TableColumn::number("Work").about(WORK),
        TableColumn::number("Mean").about(MEAN),
        TableColumn::number("Median").about(MEDIAN),
        TableColumn::number("95th percentile").about(PERCENTILE),
        TableColumn::number("Most"),
    ];
    let kinds = ["Exchange", "Compute", "Synchronization", "Idle"];
    columns.extend(kinds.map(|title| TableColumn::number(title).about(BY_KIND)));
    columns
}
