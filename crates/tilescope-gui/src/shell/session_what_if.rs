//! What-if state of a session: one changed spec per report.

use crate::model::command::CommandQueue;
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportNotes;
use crate::shell::report_locations::{notes_files, simulated_report_directory};
use crate::shell::session::AppSession;
use crate::shell::simulation_process::{ChildProgramError, SimulationProcess};
use crate::shell::spec_queries::{SPEC_QUERIES, write_spec};
use crate::theme::ThemePalette;
use crate::views::what_if::WhatIfPanel;
use crate::views::what_if::spec_text::with_value;
use egui::{Context, Frame, Margin, Panel, ScrollArea, Ui};
use std::path::{Path, PathBuf};

/// Below the directory of simulated reports: what was tried.
const DIRECTORY: &str = "what-if";

impl AppSession {
    /// Opens the spec of the report that is shown, with what was tried before if it is about that.
    pub(crate) fn toggle_what_if(&mut self) {
        let passing = match self.temp_directory.directory() {
            Ok(passing) => passing,
            Err(error) => return self.messages.push(StatusMessage::error(error.to_string())),
        };
        let Some(page) = &self.page else { return };
        let opened = &page.opened;
        let is_about = |of: &WhatIfPanel| of.is_about(&opened.path);
        self.what_if_open = !self.what_if_open || !self.what_if.iter().any(|of| is_about(of));
        // What was typed and tried for another report waits until that is shown again.
        self.other_what_ifs.extend(self.what_if.take().map(|of| *of));
        let known = self.other_what_ifs.iter().position(is_about);
        self.what_if = Some(Box::new(match known {
            Some(at) => self.other_what_ifs.remove(at),
            None => {
                let directory = self.variants_directory.clone().unwrap_or_else(|| passing.clone());
                // What cannot be read there was told when the report was opened.
                let (notes, _) = ReportNotes::read(notes_files(opened.report.path()));
                WhatIfPanel::new(opened, notes, directory, passing)
            }
        }));
    }

    /// Opens the spec of the report that is shown, with a key changed to a value.
    pub(crate) fn what_if_with(&mut self, key: &str, value: &str) {
        let shown = self.page.as_ref().map(|page| page.opened.path.clone());
        let about = self.what_if.iter().zip(&shown).any(|(of, path)| of.is_about(path));
        if !self.what_if_open || !about {
            self.toggle_what_if();
        }
        if let Some(what_if) = &mut self.what_if {
            what_if.set_text(with_value(what_if.text(), key, value));
        }
    }

    /// Keeps what was tried, if its reports are kept.
    pub(crate) fn save_variants(&mut self) {
        if self.variants_directory.is_none() {
            return;
        }
        let told: Vec<StatusMessage> =
            self.what_ifs().filter_map(WhatIfPanel::save_variants).collect();
        self.messages.extend(told);
    }

    pub(crate) fn what_ifs(&mut self) -> impl Iterator<Item = &mut WhatIfPanel> {
        self.what_if.as_deref_mut().into_iter().chain(&mut self.other_what_ifs)
    }

    pub(crate) fn simulate_variant(&mut self, context: &Context) {
        let Some(what_if) = &mut self.what_if else { return };
        if self.simulation.is_some() {
            self.messages.push(StatusMessage::warning("A simulation is running already."));
            return;
        }
        match start(what_if, context) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }
}

/// Starts to simulate the text as it is.
///
/// # Errors
/// The spec cannot be written, or the simulator not be started.
fn start(
    what_if: &mut WhatIfPanel,
    context: &Context,
) -> Result<SimulationProcess, ChildProgramError> {
    let (name, directory) = what_if.next_variant();
    let place = free_place(directory, &name);
    let spec = place.with_extension("toml");
    std::fs::create_dir_all(directory).map_err(|error| ChildProgramError::spec(error, &spec))?;
    write_spec(&spec, what_if.text())?;
    let mut simulation =
        SimulationProcess::start(&spec.display().to_string(), place.clone(), context)?;
    simulation.spec.clone_from(&name);
    what_if.started(name, place);
    Ok(simulation)
}

/// The first place for a variant that is not taken.
fn free_place(directory: &Path, name: &str) -> PathBuf {
    let numbered = (1..).map(|number: u32| directory.join(format!("{name}-{number}")));
    let free = |place: &PathBuf| !place.exists();
    let plain = directory.join(name);
    std::iter::once(plain.clone()).chain(numbered).take(100_000).find(free).unwrap_or(plain)
}

/// Where variants of the user's session are kept.
pub(crate) fn variants_directory() -> PathBuf {
    simulated_report_directory(DIRECTORY)
}

/// The panel beside the view, if it is open.
pub(crate) fn what_if_panel_ui(ui: &mut Ui, session: &mut AppSession, commands: &CommandQueue) {
    if !session.what_if_open {
        return;
    }
    let busy = session.simulation.is_some();
    let workers = session.workers.clone();
    let (Some(what_if), Some(_)) = (&mut session.what_if, &session.page) else { return };
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.page).inner_margin(Margin::symmetric(14, 10));
    let most = (ui.available_width() - 320.0).max(261.0);
    Panel::right("what if")
        .resizable(true)
        .default_size(400.0_f32.min(most))
        .size_range(260.0..=most)
        .frame(frame)
        .show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).id_salt("what if").show(ui, |ui| {
                what_if.ui(ui, (&workers, SPEC_QUERIES), busy, commands);
            });
        });
}
