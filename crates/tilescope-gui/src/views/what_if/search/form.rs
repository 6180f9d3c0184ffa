//! The form of a search: keys and values of a sweep, or the objective of a guided search.

use crate::theme::{spacing, text_size};
use crate::widgets::{choice_ui, tabs_ui};
use egui::{RichText, TextEdit, Ui};

/// The kinds of searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SearchKind {
    /// `tilescope tune`
    #[default]
    Guided,
    /// `tilescope sweep`
    Sweep,
}

/// The objectives of a guided search, as named on the command line, and as text.
const OBJECTIVES: [(&str, &str); 6] = [
    ("throughput", "Samples per second"),
    ("latency", "Time of a host call"),
    ("memory", "Memory of the fullest tile"),
    ("ipus", "Number of IPUs"),
    ("energy", "Energy per sample"),
    ("cost", "Cost per sample"),
];

/// An example of a condition.
const CONDITIONS_HINT: &str = "for example memory < 600 KiB";

/// The input of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchForm {
    pub kind: SearchKind,
    /// The keys and their values, one per line.
    pub vary: String,
    /// The conditions, one per line.
    pub conditions: String,
    pub objective: &'static str,
    /// The budget, as a number of simulations or a time.
    pub budget: String,
    /// The keys that may change although they affect the computed result, one per line.
    pub free: String,
}

impl Default for SearchForm {
    fn default() -> Self {
        Self {
            kind: SearchKind::default(),
            vary: String::new(),
            conditions: String::new(),
            objective: OBJECTIVES[0].0,
            budget: "60".to_owned(),
            free: String::new(),
        }
    }
}

impl SearchForm {
    /// The arguments of `tilescope`, without the spec and the file of results.
    pub(crate) fn arguments(&self) -> Vec<String> {
        // One argument each: typed text may begin like an option.
        let each = |option: &str, text: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(|line| format!("--{option}={line}")).collect()
        };
        let conditions = each("where", &self.conditions);
        match self.kind {
            SearchKind::Sweep => {
                let own = [each("vary", &self.vary), conditions];
                let format = ["--format", "json"].map(str::to_owned);
                own.into_iter().flatten().chain(format).collect()
            }
            SearchKind::Guided => {
                let objective = format!("--objective={}", self.objective);
                let budget = format!("--budget={}", self.budget.trim());
                let own = [vec![objective, budget], conditions, each("free", &self.free)];
                own.into_iter().flatten().chain(["--json".to_owned()]).collect()
            }
        }
    }

    /// Returns true if there is something to try.
    pub(crate) fn is_complete(&self) -> bool {
        self.kind == SearchKind::Guided || !self.vary.trim().is_empty()
    }

    pub(super) fn ui(&mut self, ui: &mut Ui) {
        let kinds =
            [(SearchKind::Guided, "Guided search"), (SearchKind::Sweep, "Every combination")];
        tabs_ui(ui, "search kinds", &kinds, &mut self.kind);
        ui.add_space(spacing::XS);
        let weak = |ui: &mut Ui, words: &str| {
            ui.label(RichText::new(words).weak().size(text_size::SMALL));
        };
        match self.kind {
            SearchKind::Guided => {
                weak(ui, "Tests the proposals of Insights, and continues from those that gain.");
                ui.horizontal_wrapped(|ui| {
                    if let Some(chosen) = choice_ui(ui, "Improve", &OBJECTIVES, self.objective) {
                        self.objective = chosen;
                    }
                    ui.label("with at most");
                    let hint = "Simulations (200) or time (90s, 10m, 2h)";
                    let budget = TextEdit::singleline(&mut self.budget).desired_width(64.0);
                    ui.add(budget).on_hover_text(hint).accessible_name("Budget");
                    weak(ui, "simulations, or minutes: 10m");
                });
                weak(ui, "Conditions, one per line");
                lines_ui(ui, &mut self.conditions, ("Conditions", CONDITIONS_HINT), 2);
                weak(ui, "Also allow changes to (affects the result), one key per line");
                lines_ui(
                    ui,
                    &mut self.free,
                    ("Keys that may change", "for example model.batch_size"),
                    2,
                );
            }
            SearchKind::Sweep => {
                weak(ui, "Keys and their values, one key per line");
                let hint = "for example\noptions.num_io_tiles=32,64,128\noptions.gradient_accumulation=8..64:x2";
                lines_ui(ui, &mut self.vary, ("Keys and values", hint), 3);
                weak(ui, "Only points that satisfy these conditions, one per line");
                lines_ui(ui, &mut self.conditions, ("Conditions", CONDITIONS_HINT), 2);
            }
        }
    }
}

fn lines_ui(ui: &mut Ui, text: &mut String, (name, hint): (&str, &str), rows: usize) {
    let edit = TextEdit::multiline(text).code_editor().lock_focus(false).desired_rows(rows);
    let edit = edit.desired_width(f32::INFINITY).hint_text(hint);
    ui.add(edit).accessible_name(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_argument() {
        let mut form = SearchForm {
            kind: SearchKind::Sweep,
            vary: "a.b=1,2\n\n  c=x \n".to_owned(),
            conditions: "memory < 1 KiB".to_owned(),
            ..SearchForm::default()
        };
        let words = ["--vary=a.b=1,2", "--vary=c=x", "--where=memory < 1 KiB", "--format", "json"];
        assert_eq!(form.arguments(), words);
        form.kind = SearchKind::Guided;
        form.free = "model".to_owned();
        let words = [
            "--objective=throughput",
            "--budget=60",
            "--where=memory < 1 KiB",
            "--free=model",
            "--json",
        ];
        assert_eq!(form.arguments(), words);
    }
}
