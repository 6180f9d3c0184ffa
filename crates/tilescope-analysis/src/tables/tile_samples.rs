//! Tables of grouped samples of measured tiles.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::table;
use crate::tile_samples::{
    SampleFilter, SampleGroup, SampleGrouping, SampleKey, metadata_names, sample_groups,
};
use tilescope_report::{Report, ReportError};

const BY_KIND: &str = "Cycles of the samples of this kind";

/// Groups of the samples that pass a filter; empty if tiles were not measured.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn samples(
    report: &Report,
    by: &SampleGrouping,
    filter: &SampleFilter,
) -> Result<DataTable, ReportError> {
    let groups = sample_groups(report, by, filter)?.into_iter();
    let mut letters = by.name().chars();
    let first = letters.next().map(char::to_uppercase);
    let title: String = first.into_iter().flatten().chain(letters).collect();
    Ok(table(&[&title], groups.map(|group| (Vec::new(), group)).collect()))
}

/// Samples grouped by each name of the metadata in turn; samples without the name are left out.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn samples_by_metadata(report: &Report) -> Result<DataTable, ReportError> {
    let mut rows = Vec::new();
    for name in metadata_names(report)? {
        let by = SampleGrouping::Metadata(name.clone());
        for group in sample_groups(report, &by, &SampleFilter::new())? {
            if group.key != SampleKey::None {
                rows.push((vec![TableCell::from(&name)], group));
            }
        }
    }
    Ok(table(&["Name", "Value"], rows))
}

fn key(key: &SampleKey) -> TableCell {
    match key {
        SampleKey::Text(text) => text.into(),
        SampleKey::Number(number) => TableCell::id(*number),
        SampleKey::Tile(tile) => (*tile).into(),
        SampleKey::None => TableCell::Missing,
    }
}

/// A table of groups under titles: leading texts of each group, then its key.
fn table(titles: &[&str], groups: Vec<(Vec<TableCell>, SampleGroup)>) -> DataTable {
    let kinds = ["Exchange", "Compute", "Synchronization", "Idle"];
    table! { groups, |(words, group)|
        all titles.iter().copied().map(TableColumn::text) => words.into_iter().chain([key(&group.key)]);
        number "Samples" => group.samples;
        number "Tiles" => group.tiles, "Tiles with samples";
        number "Phases" => group.phases, "Phases with samples; those of each epoch count separately";
        cycles "Work" => group.work, "Cycles of all samples";
        number "Mean" => TableCell::Real(group.mean), "Cycles of all samples / samples";
        cycles "Median" => group.median, "Median of these cycles";
        cycles "95th percentile" => group.percentile_95, "95th percentile of these cycles";
        cycles "Most" => group.most;
        all kinds.map(|title| TableColumn::cycles(title).about(BY_KIND)) => group.work_by_kind;
    }
}
