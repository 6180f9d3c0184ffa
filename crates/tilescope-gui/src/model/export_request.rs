//! A picture or a table that is to be written.

use crate::model::preferences::AppearancePrefs;
use std::path::PathBuf;
use tilescope_analysis::compare::ComparisonTable;

/// What can be saved of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportContent {
    /// The view as pixels.
    Png,
    /// The view as shapes and text.
    Svg,
    /// A table of the view, by its name.
    Table(&'static str),
    /// A table of differences of the view, by its title.
    Differences(&'static str),
}

impl ExportContent {
    /// Words for people.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Png => "PNG picture".to_owned(),
            Self::Svg => "SVG drawing".to_owned(),
            Self::Table(name) => format!("CSV table: {name}"),
            Self::Differences(title) => format!("CSV table of differences: {title}"),
        }
    }

    /// A name for the file.
    pub(crate) fn file_name(&self, report: &str, view: &str) -> String {
        match self {
            Self::Png => format!("{report}-{view}.png"),
            Self::Svg => format!("{report}-{view}.svg"),
            Self::Table(name) => format!("{report}-{view}-{name}.csv"),
            Self::Differences(title) => {
                format!("{report}-{view}-{}-compared.csv", ComparisonTable::named(title).name())
            }
        }
    }
}

/// What is to be saved where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    /// What.
    pub what: ExportContent,
    /// Where.
    pub path: PathBuf,
    /// Width and height of pictures in pixels.
    pub size: (u32, u32),
    /// Units, colours and the size of text in pictures.
    pub look: AppearancePrefs,
    /// Whether pictures are light on dark.
    pub dark: bool,
}
