//! The files of a report.

use super::{SummaryFactRow, SummaryPageData, row, rows_ui};
use crate::model::open_report::OpenReport;
use crate::theme::{ThemePalette, spacing};
use egui::{Grid, Label, RichText, Ui, vec2};
use std::time::UNIX_EPOCH;
use tilescope_report::units::{exact_bytes, format_timestamp};

/// The report and the files beside it, each with a tick or a question mark.
pub(crate) fn files_ui(ui: &mut Ui, opened: &OpenReport, facts: &SummaryPageData) {
    let path = opened.report.path();
    let directory = path.parent().map_or(String::new(), |parent| parent.display().to_string());
    ui.add(Label::new(RichText::new(directory).weak()).wrap().selectable(true));
    ui.add_space(spacing::XS);
    Grid::new("files").num_columns(4).min_row_height(18.0).spacing(vec2(14.0, 6.0)).show(
        ui,
        |ui| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let size = written_size(opened, facts);
            file_ui(ui, true, &name.unwrap_or_default(), "The report", &size);
            for file in &facts.files {
                let old = facts.written.is_some_and(|written| file.is_older_than(written));
                let mut size = file.found.map(|(size, _)| exact_bytes(size.0));
                if let Some(size) = &mut size
                    && old
                {
                    size.push_str(", left over from an earlier run");
                }
                let found = size.is_some();
                file_ui(ui, found, file.name, file.about, size.as_deref().unwrap_or("missing"));
            }
        },
    );
    if !facts.meta.is_empty() {
        ui.add_space(spacing::S);
        // The spec has its own block.
        let meta = facts.meta.iter().filter(|(key, _)| !["spec", "onnx"].contains(&key.as_str()));
        let rows: Vec<SummaryFactRow> = meta.map(|(key, value)| row(key, value)).collect();
        rows_ui(ui, "meta", &rows);
    }
}

/// The bytes of the report, and its time of writing if the disk knows it. Reports hold no time
/// themselves, so that equal programs give equal files.
fn written_size(opened: &OpenReport, facts: &SummaryPageData) -> String {
    let size = exact_bytes(opened.report.file_size().0);
    let since = facts.written.and_then(|written| written.duration_since(UNIX_EPOCH).ok());
    match since {
        Some(since) => format!("{size}, written {}", format_timestamp(since.as_secs())),
        None => size,
    }
}

fn file_ui(ui: &mut Ui, found: bool, name: &str, about: &str, size: &str) {
    let palette = ThemePalette::for_ui(ui);
    let (mark, colour, text) = if found {
        ("✓", palette.good, palette.text)
    } else {
        ("?", palette.weak_text, palette.weak_text)
    };
    ui.label(RichText::new(mark).color(colour).family(crate::theme::fonts::strong_family()));
    ui.label(RichText::new(name).color(text));
    ui.weak(about);
    ui.weak(size);
    ui.end_row();
}
