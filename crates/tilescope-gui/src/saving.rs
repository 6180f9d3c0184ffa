//! Writing pictures and tables on a thread of its own.

use super::opening::{Opened, Pending};
use super::picture::{Export, PictureFormat, picture_file};
use egui::{Context, Theme};
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{Table, comparison, differences, table_named};
use tilescope_analysis::save::write_whole;
use tilescope_analysis::tables;

/// Where something was saved, or why not in words for people.
pub(crate) type Saved = Result<PathBuf, String>;

/// What can be saved of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveWhat {
    /// The view as pixels.
    Png,
    /// The view as shapes and text.
    Svg,
    /// A table of the view, by its name.
    Table(&'static str),
    /// A table of differences of the view, by its title.
    Differences(&'static str),
}

impl SaveWhat {
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
                format!("{report}-{view}-{}-compared.csv", Table::named(title).name())
            }
        }
    }
}

/// What is to be saved where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saving {
    /// What.
    pub what: SaveWhat,
    /// Where.
    pub path: PathBuf,
    /// Width and height of pictures in pixels.
    pub size: (u32, u32),
    /// Size of text in pictures, in percent.
    pub text_percent: u16,
    /// Colours of pictures.
    pub theme: Theme,
}

/// What is on the screen when something is saved.
pub(crate) struct Shown {
    /// The report.
    pub opened: Opened,
    /// The report it is compared with.
    pub compared: Option<PathBuf>,
    /// Name of the view.
    pub view: &'static str,
    /// A link to the place in it.
    pub link: String,
}

impl Saving {
    /// Starts to write; words about how it went come later.
    ///
    /// # Errors
    /// In words for people, if there is no thread for it.
    pub(crate) fn start(self, context: &Context, shown: Shown) -> Result<Pending<Saved>, String> {
        Pending::start("save", context, move || {
            let bytes = self.bytes(shown)?;
            write_whole(&self.path, &bytes).map(|()| self.path)
        })
    }

    fn bytes(&self, shown: Shown) -> Result<Vec<u8>, String> {
        let Shown { opened, compared, view, link } = shown;
        let format = match self.what {
            SaveWhat::Png => PictureFormat::Png,
            SaveWhat::Svg => PictureFormat::Svg,
            SaveWhat::Table(name) => {
                let table = tables::named(view, Some(name))?;
                let rows = (table.read)(&opened.report).map_err(|error| error.to_string())?;
                return Ok(rows.csv().into_bytes());
            }
            SaveWhat::Differences(title) => {
                return difference(&opened, compared.as_deref(), view, title);
            }
        };
        let Self { size, text_percent, theme, .. } = *self;
        let compare = compared.as_deref();
        let export = Export { view, compare, at: Some(&link), size, text_percent, theme, format };
        picture_file(opened, &export).map_err(|error| error.to_string())
    }
}

fn difference(
    opened: &Opened,
    target: Option<&Path>,
    view: &str,
    title: &'static str,
) -> Result<Vec<u8>, String> {
    let target = Opened::read(target.ok_or("Nothing is compared any more.")?)?;
    let one = comparison(view).ok_or("This view compares nothing.")?;
    let tables = differences(&opened.report, &target.report, one);
    let tables = tables.map_err(|error| error.to_string())?;
    let table = table_named(&tables, Some(&Table::named(title).name()))?;
    Ok(table.data().csv().into_bytes())
}
