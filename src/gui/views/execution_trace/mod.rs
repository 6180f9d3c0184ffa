//! Trace.
use super::{View, ViewContext, ViewInfo};
use crate::gui::icons::Icon;
pub const VIEW: ViewInfo = ViewInfo { name: "execution-trace", title: "Execution trace", icon: Icon::Trace, create: || Box::new(Trace) };
struct Trace;
impl View for Trace { fn ui(&mut self, ui: &mut egui::Ui, _: &mut ViewContext<'_>) { ui.label("trace"); } }
