//! What-if panels: one edited spec per report.

use crate::model::message::StatusMessage;
use crate::model::navigation::ReportNotes;
use crate::model::open_report::OpenReport;
use crate::shell::report_locations::notes_files;
use crate::shell::session::simulation_places::{SimulationPlaces, free_place};
use crate::shell::simulation_process::{ChildProgramError, SimulationProcess};
use crate::shell::spec_queries::write_spec;
use crate::views::what_if::WhatIfPanel;
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::temporary_directory::TemporaryDirectoryError;

/// The last visible panel, and the panels of other reports until those are visible again.
#[derive(Default)]
pub(crate) struct WhatIfPanels {
    current: Option<Box<WhatIfPanel>>,
    others: Vec<WhatIfPanel>,
    /// True if the panel is visible.
    open: bool,
}

impl WhatIfPanels {
    /// The last visible panel.
    pub(crate) fn current(&self) -> Option<&WhatIfPanel> {
        self.current.as_deref()
    }

    /// The last visible panel, for changes.
    pub(crate) fn current_mut(&mut self) -> Option<&mut WhatIfPanel> {
        self.current.as_deref_mut()
    }

    /// The panel, while it is visible.
    pub(crate) fn open(&self) -> Option<&WhatIfPanel> {
        self.current.as_deref().filter(|_| self.open)
    }

    /// The panel for changes, while it is visible.
    pub(crate) fn open_mut(&mut self) -> Option<&mut WhatIfPanel> {
        self.current.as_deref_mut().filter(|_| self.open)
    }

    /// Opens the panel of a report with its earlier variants, or closes it.
    ///
    /// # Errors
    /// Returns an error if the temporary directory cannot be created.
    pub(super) fn toggle(
        &mut self,
        opened: &OpenReport,
        places: &mut SimulationPlaces,
    ) -> Result<(), TemporaryDirectoryError> {
        let checks = places.checks()?;
        let variants = places.variants()?;
        let is_about = |panel: &WhatIfPanel| panel.is_about(&opened.path);
        self.open = !self.open || !self.current().is_some_and(is_about);
        // The edits and variants of another report wait until that report is visible again.
        self.others.extend(self.current.take().map(|panel| *panel));
        let known = self.others.iter().position(is_about);
        self.current = Some(Box::new(match known {
            Some(at) => self.others.remove(at),
            None => {
                // An unreadable file was reported when the report was opened.
                let (notes, _) = ReportNotes::read(notes_files(opened.report.path()));
                WhatIfPanel::new(opened, notes, variants, checks)
            }
        }));
        Ok(())
    }

    /// Returns the panel of a report, visible or not.
    ///
    /// # Errors
    /// Returns an error if the temporary directory cannot be created.
    pub(super) fn of_report(
        &mut self,
        opened: &OpenReport,
        places: &mut SimulationPlaces,
    ) -> Result<Option<&WhatIfPanel>, TemporaryDirectoryError> {
        let was_open = self.open;
        if !self.current().is_some_and(|panel| panel.is_about(&opened.path)) {
            self.toggle(opened, places)?;
        }
        self.open = was_open;
        Ok(self.current())
    }

    /// Opens the panel of a report and calls a function on it.
    ///
    /// # Errors
    /// Returns an error if the temporary directory cannot be created.
    pub(super) fn open_with(
        &mut self,
        opened: &OpenReport,
        places: &mut SimulationPlaces,
        then: impl FnOnce(&mut WhatIfPanel),
    ) -> Result<(), TemporaryDirectoryError> {
        if !self.open().is_some_and(|panel| panel.is_about(&opened.path)) {
            self.toggle(opened, places)?;
        }
        if let Some(panel) = &mut self.current {
            then(panel);
        }
        Ok(())
    }

    /// Saves the simulated variants. Returns messages for the user.
    pub(super) fn save(&mut self) -> Vec<StatusMessage> {
        self.all_mut().filter_map(WhatIfPanel::save_variants).collect()
    }

    /// The names of reports whose spec has changes that were not simulated.
    pub(super) fn unsimulated(&self) -> impl Iterator<Item = String> {
        let all = self.current.as_deref().into_iter().chain(&self.others);
        all.filter(|panel| panel.is_unsimulated()).map(WhatIfPanel::report_name)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut WhatIfPanel> {
        self.current.as_deref_mut().into_iter().chain(&mut self.others)
    }

    /// Records a simulation that ended with a report. Returns the report to compare it with if it
    /// was a variant.
    pub(super) fn finished(&mut self, path: &Path) -> Option<PathBuf> {
        self.all_mut().find_map(|panel| panel.finished(path))
    }

    /// Records a simulation that ended without a report.
    pub(super) fn stopped(&mut self) {
        self.all_mut().for_each(WhatIfPanel::stopped);
    }
}

/// Starts to simulate the current text of a panel.
///
/// # Errors
/// Returns an error if the spec cannot be written or the simulator cannot be started.
pub(super) fn simulate(
    panel: &mut WhatIfPanel,
    context: &Context,
) -> Result<SimulationProcess, ChildProgramError> {
    let (name, directory) = panel.next_variant();
    let place = free_place(directory, &name);
    let spec = place.with_extension("toml");
    std::fs::create_dir_all(directory).map_err(|error| ChildProgramError::spec(error, &spec))?;
    write_spec(&spec, panel.text())?;
    let mut simulation =
        SimulationProcess::start(&spec.display().to_string(), place.clone(), context)?;
    simulation.spec.clone_from(&name);
    panel.started(name, place);
    Ok(simulation)
}
