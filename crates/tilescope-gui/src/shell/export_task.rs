//! Saving of pictures and tables on a separate thread.

use crate::GuiError;
use crate::model::export_request::{ExportContent, ExportRequest};
use crate::model::open_report::OpenReport;
use crate::model::view_id::ViewId;
use crate::shell::picture_export::{PictureFormat, PictureOptions, picture_file};
use crate::shell::simulation_process::{ChildProgramError, program};
use crate::views::what_if::spec_keys::said_problem;
use crate::widgets::background_task::{BackgroundTask, PendingStartError};
use egui::{Context, Theme};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tilescope_analysis::compare::{
    ComparisonTable, UnknownDifferencesError, WorkUnit, comparison, differences, table_named,
};
use tilescope_analysis::tables::{self, UnknownTableError};
use tilescope_report::ReportError;
use tilescope_report::atomic_file::{AtomicFileError, write_whole};

/// The path of a saved file, or the error.
pub(crate) type ExportResult = Result<PathBuf, SavingError>;

/// An error from saving a picture or a table.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavingError {
    #[error(transparent)]
    File(#[from] AtomicFileError),
    #[error(transparent)]
    Picture(#[from] GuiError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Table(#[from] UnknownTableError),
    #[error(transparent)]
    Differences(#[from] UnknownDifferencesError),
    #[error(transparent)]
    Program(#[from] ChildProgramError),
    #[error("The comparison has ended.")]
    NothingCompared,
    #[error("This view has no comparison.")]
    NoComparison,
}

/// The state of the screen at the time of saving.
pub(crate) struct ExportSource {
    pub opened: OpenReport,
    /// The report of the comparison, if any.
    pub compared: Option<PathBuf>,
    /// The unit of work for figures of two runs.
    pub unit: WorkUnit,
    /// The view to save.
    pub view: ViewId,
    /// The link to the place in the view.
    pub link: String,
}

impl ExportRequest {
    /// Starts saving. The result arrives later.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(crate) fn start(
        self,
        context: &Context,
        shown: ExportSource,
    ) -> Result<BackgroundTask<ExportResult>, PendingStartError> {
        BackgroundTask::start("save", context, move || {
            if self.what == ExportContent::Page {
                write_page(&shown.opened.path, shown.compared.as_deref(), &self.path)?;
                return Ok(self.path);
            }
            let bytes = self.bytes(shown)?;
            write_whole(&self.path, &bytes)?;
            Ok(self.path)
        })
    }

    fn bytes(&self, shown: ExportSource) -> Result<Vec<u8>, SavingError> {
        let ExportSource { opened, compared, unit, view, link } = shown;
        let view = view.name();
        let format = match self.what {
            ExportContent::Png => PictureFormat::Png,
            // A page has the picture of no view.
            ExportContent::Svg | ExportContent::Page => PictureFormat::Svg,
            ExportContent::Table(name) => {
                let table = tables::named(view, Some(name))?;
                let rows = (table.read)(&opened.report)?;
                return Ok(rows.csv().into_bytes());
            }
            ExportContent::Differences(title) => {
                return difference(&opened, (compared.as_deref(), unit), view, title);
            }
        };
        let Self { size, look, dark, .. } = *self;
        let theme = if dark { Theme::Dark } else { Theme::Light };
        let compare = compared.as_deref();
        let export = PictureOptions { view, compare, at: Some(&link), size, look, theme, format };
        Ok(picture_file(opened, &export)?)
    }
}

/// Writes the page of a report, or of a comparison, with the program itself: `tilescope report`.
///
/// # Errors
/// Returns an error if the program cannot be run, or its message if it writes no page.
fn write_page(report: &Path, compared: Option<&Path>, file: &Path) -> Result<(), SavingError> {
    let mut question = program()?;
    question.arg("report").arg("-o").arg(file).arg("--").arg(report).args(compared);
    let answer = question.stdin(Stdio::null()).output().map_err(ChildProgramError::Question)?;
    if answer.status.success() {
        return Ok(());
    }
    let problem = said_problem(&String::from_utf8_lossy(&answer.stderr));
    Err(ChildProgramError::Refused(problem).into())
}

fn difference(
    opened: &OpenReport,
    (target, unit): (Option<&Path>, WorkUnit),
    view: &str,
    title: &'static str,
) -> Result<Vec<u8>, SavingError> {
    let target = OpenReport::read(target.ok_or(SavingError::NothingCompared)?)?;
    let one = comparison(view).ok_or(SavingError::NoComparison)?;
    let tables = differences(&opened.report, &target.report, one, unit)?;
    let table = table_named(&tables, Some(&ComparisonTable::named(title).name()))?;
    Ok(table.data().csv().into_bytes())
}
