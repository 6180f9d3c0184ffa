//! The user's selection.

use crate::model::command::{AppCommand, SelectedStep};
use serde::{Deserialize, Serialize};
use tilescope_report::Target;
use tilescope_report::units::{CycleRange, IpuId, OperationId, ProgramId, TileId, VariableId};

/// What the user has chosen; shared by all tabs and kept when a report is read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Tiles of the replica, in the order in which they were chosen.
    pub tiles: Vec<TileId>,
    /// A step of the trace.
    pub step: Option<SelectedStep>,
    /// Cycles that the trace is to show next; it takes them off once it does.
    pub cycles: Option<CycleRange>,
    /// A node of the compiled program.
    pub program: Option<ProgramId>,
    /// An operation of the model.
    pub operation: Option<OperationId>,
    pub variable: Option<VariableId>,
    /// An IPU of the replica.
    pub ipu: Option<IpuId>,
}

impl Selection {
    /// What is left of it in a report that was just opened. Ids of another report mean other
    /// things; tiles and IPUs mean the same where they exist.
    pub(crate) fn retain_existing(self, target: &Target) -> Self {
        let mut tiles = self.tiles;
        tiles.retain(|tile| target.has_tile(*tile));
        let ipu = self.ipu.filter(|ipu| target.has_ipu(*ipu));
        Self { tiles, ipu, ..Self::default() }
    }

    /// Chooses what a command says; others say nothing about what is chosen.
    pub(crate) fn apply(&mut self, command: AppCommand) {
        match command {
            AppCommand::SelectTiles(tiles) => self.tiles = tiles,
            AppCommand::SelectStep(step) => self.step = step,
            AppCommand::ZoomToCycles(cycles) => self.cycles = cycles,
            AppCommand::SelectProgram(program) => self.program = program,
            AppCommand::SelectOperation(operation) => self.operation = operation,
            AppCommand::SelectVariable(variable) => self.variable = variable,
            AppCommand::SelectIpu(ipu) => self.ipu = ipu,
            _ => {}
        }
    }
}
