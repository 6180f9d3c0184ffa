//! The waterfall: from the peak down to the achieved rate, with every loss by name.

use crate::theme::fonts::strong;
use crate::theme::{spacing, text_size};
use crate::widgets::figure::{FigureLook, figure_ui};
use egui::{Frame, Margin, RichText, Ui};
use tilescope_analysis::limits::{RunLimits, WaterfallCycles, WaterfallStep};
use tilescope_analysis::topics::waterfall_figure;
use tilescope_report::units::{IpuId, fine_percent};

/// Shows the waterfall of an IPU or of all of them.
pub(super) fn waterfall_ui(
    ui: &mut Ui,
    cycles: &WaterfallCycles,
    run: &RunLimits,
    ipu: Option<IpuId>,
) {
    let margin = Margin::symmetric(spacing::M as i8, spacing::XS as i8);
    Frame::new().inner_margin(margin).show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            let whose = ipu.map_or_else(|| "all IPUs".to_owned(), |ipu| format!("IPU {ipu}"));
            let (words, why) = match run.unknown {
                None => {
                    let share = cycles.share(WaterfallStep::Achieved);
                    (format!("{} of the peak of {whose}", fine_percent(share)), "")
                }
                Some(unknown) => {
                    (format!("The utilisation of {whose} is unknown."), unknown.sentence())
                }
            };
            ui.label(strong(words).size(text_size::SMALL));
            ui.label(RichText::new(why).size(text_size::SMALL).weak());
        })
    });
    figure_ui(ui, &waterfall_figure(cycles, run.unknown), FigureLook::default());
}
