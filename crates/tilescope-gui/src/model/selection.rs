//! The user's selection.

use crate::model::command::{AppCommand, SelectedStep};
use serde::{Deserialize, Serialize};
use tilescope_report::Target;
use tilescope_report::units::{CycleRange, IpuId, OperationId, ProgramId, TileId, VariableId};

/// The objects that the user has selected. All tabs share them, and they stay when a report is read
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The tiles of the replica, in the order of selection.
    pub tiles: Vec<TileId>,
    /// The step of the trace.
    pub step: Option<SelectedStep>,
    /// The cycles that the trace shows next. The trace clears the field once it shows them.
    pub cycles: Option<CycleRange>,
    /// The node of the compiled program.
    pub program: Option<ProgramId>,
    /// The operation of the model.
    pub operation: Option<OperationId>,
    pub variable: Option<VariableId>,
    /// The IPU of the replica.
    pub ipu: Option<IpuId>,
}

impl Selection {
    /// Keeps the parts that are valid in a newly opened report. Ids of another report refer to
    /// other objects; tiles and IPUs keep their meaning if they exist.
    pub(crate) fn retain_existing(self, target: &Target) -> Self {
        let mut tiles = self.tiles;
        tiles.retain(|tile| target.has_tile(*tile));
        let ipu = self.ipu.filter(|ipu| target.has_ipu(*ipu));
        Self { tiles, ipu, ..Self::default() }
    }

    /// Applies a command that changes the selection; others have no effect.
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
