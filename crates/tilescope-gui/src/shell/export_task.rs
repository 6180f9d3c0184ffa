//! Writing pictures and tables on a thread of its own.

use crate::model::opening::Opened;
use crate::model::saving::{SaveWhat, Saving};
use crate::model::view_id::ViewId;
use crate::shell::picture::{Export, PictureFormat, picture_file};
use crate::widgets::background_task::Pending;
use egui::{Context, Theme};
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{Table, comparison, differences, table_named};
use tilescope_analysis::save::write_whole;
use tilescope_analysis::tables;

/// Where something was saved, or why not in words for people.
pub(crate) type Saved = Result<PathBuf, String>;

/// What is on the screen when something is saved.
pub(crate) struct Shown {
    /// The report.
    pub opened: Opened,
    /// The report it is compared with.
    pub compared: Option<PathBuf>,
    /// The view.
    pub view: ViewId,
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
        let view = view.name();
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
        let Self { size, text_percent, dark, .. } = *self;
        let theme = if dark { Theme::Dark } else { Theme::Light };
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
    Ok(table.as_rows().csv().into_bytes())
}
