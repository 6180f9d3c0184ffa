//! The bytes that tiles send and receive, on the floor plan of the chips: for one exchange or for
//! all.

use crate::theme::{spacing, text_size};
use crate::views::ViewContext;
use crate::views::tile_selection::floor_plan_ui;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::empty_state_ui;
use crate::widgets::floor_plan::{FloorPlanValues, FloorPlanWidget};
use crate::widgets::heat_scale::{HeatScale, scale_ui};
use crate::widgets::query_state::QueryTexts;
use egui::{Label, RichText, Sense, Ui, UiBuilder};
use tilescope_analysis::tile_curves::{TileCurveUnit, spread};
use tilescope_report::units::{ProgramId, exact_bytes};
use tilescope_report::{Report, ReportError};

/// The data of both maps.
struct ExchangeTraffics {
    /// The description of the exchange.
    name: String,
    /// The bytes of each tile, sent and received.
    sides: [Vec<u64>; 2],
}

impl ExchangeTraffics {
    fn read(report: &Report, program: Option<ProgramId>) -> Result<Self, ReportError> {
        let Some(program) = program else {
            let tiles = report.traffic_by_tile()?;
            let sent = tiles.iter().map(|of| of.bytes_out.0).collect();
            let received = tiles.iter().map(|of| of.bytes_in.0).collect();
            let name = "All exchanges and copies, each counted once".to_owned();
            return Ok(Self { name, sides: [sent, received] });
        };
        let tiles = report.target()?.tiles_per_replica() as usize;
        let traffic = report.exchange(program)?.map(|traffic| traffic.tiles).unwrap_or_default();
        let name = report.programs()?.get(program).map_or_else(String::new, |of| of.name.clone());
        let sent = spread(&traffic, tiles, |of| of.bytes_out);
        let received = spread(&traffic, tiles, |of| of.bytes_in);
        Ok(Self { name, sides: [sent, received] })
    }
}

/// Two maps, side by side or stacked.
#[derive(Default)]
pub(super) struct ExchangeFloorPlans {
    found: BackgroundQuery<Option<ProgramId>, ExchangeTraffics>,
    maps: [FloorPlanWidget; 2],
    /// The scale of the last frame.
    heat_scale: Option<HeatScale>,
}

impl ExchangeFloorPlans {
    pub(super) fn heat_scale(&self) -> Option<HeatScale> {
        self.heat_scale
    }

    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        program: Option<ProgramId>,
    ) {
        let texts =
            QueryTexts { waiting: "Reading exchanges…", failed: "Exchanges cannot be read" };
        let found = context.ask(ui, &mut self.found, &program, |report, program| {
            ExchangeTraffics::read(report, *program)
        });
        found.show(ui, texts, |ui, found| self.maps_ui(ui, context, found));
    }

    fn maps_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        found: &Versioned<ExchangeTraffics>,
    ) {
        let own = HeatScale::of(found.sides.iter().flatten(), false);
        self.heat_scale = Some(own);
        if found.sides.iter().flatten().all(|bytes| *bytes == 0) {
            return empty_state_ui(ui, "No traffic", "The selection moves no data between tiles.");
        }
        let scale = context.shared_scale(own);
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let name: String = found.name.chars().take(400).collect();
            ui.add(Label::new(crate::theme::fonts::strong(name)).truncate());
        });
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            scale_ui(ui, &exact_bytes(scale.least()), &exact_bytes(scale.most()));
        });
        let area = ui.available_rect_before_wrap();
        let wide = area.width() > area.height();
        let half = if wide { area.width() } else { area.height() } / 2.0;
        for (side, values) in found.sides.iter().enumerate() {
            let (left, right) = area.split_left_right_at_x(area.left() + half);
            let (upper, lower) = area.split_top_bottom_at_y(area.top() + half);
            let rect = if wide { [left, right][side] } else { [upper, lower][side] };
            let mut ui = ui.new_child(UiBuilder::new().max_rect(rect));
            let title = ["What tiles send", "What tiles receive"][side];
            ui.horizontal(|ui| {
                ui.add_space(spacing::L);
                let title = RichText::new(title).size(text_size::SMALL);
                ui.label(title.weak());
            });
            let generation = (found.version(), side as u64);
            let unit = TileCurveUnit::Bytes;
            let shown = FloorPlanValues { name: title, values, generation, scale, unit };
            floor_plan_ui(&mut ui, context, &mut self.maps[side], shown);
        }
        ui.allocate_rect(area, Sense::hover());
    }
}
