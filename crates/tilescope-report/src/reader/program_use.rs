//! Resources of programs: control code and variables.

use super::Report;
use super::tile_patterns::{ALL_IDS, TileRunSource};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_TILE_BYTES;
use crate::model::{ControlCode, VariableUse};
use crate::units::{Bytes, ProgramId, VariableId};

const CONTROL_CODE: TileRunSource<1> = TileRunSource {
    owners: "control_code",
    id: "program",
    rows: "control_code",
    rows_id: "program",
    values: [("bytes", MAX_TILE_BYTES.0)],
};

impl Report {
    /// Control code of each program that has its own, in the order of programs; `None` if it was
    /// not recorded, as before version 2.3.
    pub fn control_code(&self) -> Result<Option<Vec<ControlCode>>, ReportError> {
        if !self.db.has(CONTROL_CODE.owners, CONTROL_CODE.id) {
            return Ok(None);
        }
        let programs = self.programs()?;
        let runs = self.tile_runs(&CONTROL_CODE, ALL_IDS, |[bytes]| Bytes(bytes))?;
        let code = runs.into_iter().map(|(program, tiles)| (ProgramId(program), tiles));
        let known = code.filter(|(program, _)| programs.get(*program).is_some());
        Ok(Some(known.map(|(program, tiles)| ControlCode { program, tiles }).collect()))
    }

    /// Liveness steps that use variables, in the order of the file. A variable with a lifetime that
    /// is not listed is in use during all of it. `None` if uses were not recorded, as before
    /// version 2.3.
    pub fn variable_uses(&self) -> Result<Option<Vec<VariableUse>>, ReportError> {
        if !self.db.has("variable_uses", "var") {
            return Ok(None);
        }
        let columns = ["var", "first_step", "end_step"];
        let select = SelectQuery::all("variable_uses", &columns).clauses("ORDER BY id");
        let uses = self.db.list(select, |cells| {
            let first = cells.small(1)?;
            let end = cells.small(2)?;
            let variable = VariableId(cells.small(0)?);
            if first < end { Some(VariableUse { variable, steps: first..end }) } else { None }
        })?;
        Ok(Some(uses.into_iter().flatten().collect()))
    }
}
