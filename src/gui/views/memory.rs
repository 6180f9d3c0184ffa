//! Memory.
use super::{View, ViewContext, ViewInfo};
use crate::gui::icons::Icon;
pub const VIEW: ViewInfo = ViewInfo { name: "memory", title: "Memory", icon: Icon::Chip, create: || Box::new(Memory) };
struct Memory;
impl View for Memory { fn ui(&mut self, ui: &mut egui::Ui, _: &mut ViewContext<'_>) { ui.label("memory"); } }
