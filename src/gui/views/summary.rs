//! Summary.
use super::{View, ViewContext, ViewInfo};
use crate::gui::icons::Icon;
pub const VIEW: ViewInfo = ViewInfo { name: "summary", title: "Summary", icon: Icon::List, create: || Box::new(Summary) };
struct Summary;
impl View for Summary { fn ui(&mut self, ui: &mut egui::Ui, _: &mut ViewContext<'_>) { ui.label("summary"); } }
