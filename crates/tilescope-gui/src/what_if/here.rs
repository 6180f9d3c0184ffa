//! What-if state of a session: one changed spec per report.

use super::WhatIfPanel;
use super::spec_text::with_value;
use crate::message::StatusMessage;
use crate::session::AppSession;
use egui::Context;

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
                WhatIfPanel::new(opened, directory, passing)
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
            what_if.text = with_value(&what_if.text, key, value);
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
        match what_if.start(context) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }
}
