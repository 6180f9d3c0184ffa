//! A request to write a picture or a table.

use crate::model::preferences::AppearancePrefs;
use std::path::PathBuf;
use tilescope_analysis::compare::ComparisonTable;

/// The content of a view that can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportContent {
    /// The view as pixels.
    Png,
    /// The view as shapes and text.
    Svg,
    /// The report, or the comparison, as one HTML page to send.
    Page,
    /// A table of the view, by its name.
    Table(&'static str),
    /// A table of differences of the view, by its title.
    Differences(&'static str),
}

impl ExportContent {
    /// The title for menus and dialogs.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Png => "PNG picture".to_owned(),
            Self::Svg => "SVG drawing".to_owned(),
            Self::Page => "HTML page of the report".to_owned(),
            Self::Table(name) => format!("CSV table: {name}"),
            Self::Differences(title) => format!("CSV table of differences: {title}"),
        }
    }

    /// The default name for the file.
    pub(crate) fn file_name(&self, report: &str, view: &str) -> String {
        match self {
            Self::Png => format!("{report}-{view}.png"),
            Self::Svg => format!("{report}-{view}.svg"),
            Self::Page => format!("{report}.html"),
            Self::Table(name) => format!("{report}-{view}-{name}.csv"),
            Self::Differences(title) => {
                format!("{report}-{view}-{}-compared.csv", ComparisonTable::named(title).name())
            }
        }
    }
}

/// A request to save content to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    /// The content to save.
    pub what: ExportContent,
    /// The path of the file.
    pub path: PathBuf,
    /// Width and height of pictures in pixels.
    pub size: (u32, u32),
    /// Units, colours and the size of text in pictures.
    pub look: AppearancePrefs,
    /// True for pictures with light text on a dark background.
    pub dark: bool,
}
