//! Reads and writes of programs.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_COUNT;
use crate::model::{DataAccess, DataAccessKind, DataBuffer, DataFlows, DataPlace};
use crate::units::{DataBufferId, DataFlowId, IpuId, ProgramId};

impl Report {
    /// The data that programs read and write; empty if they were not recorded.
    pub fn data_flows(&self) -> Result<DataFlows, ReportError> {
        let columns = ["name", "place", "ipu", "entries", "persistent", "filled"];
        let buffers = self.db.list(
            SelectQuery::all("data_buffers", &columns).clauses("ORDER BY id"),
            |cells| {
                Some(DataBuffer {
                    name: cells.text(0)?,
                    place: cells.named(1, DataPlace::from_name)?,
                    ipu: IpuId(cells.small(2)?),
                    entries: cells.count(3, MAX_COUNT)?,
                    persistent: cells.int(4)? != 0,
                    filled: cells.int(5)? != 0,
                })
            },
        )?;
        let columns = ["flow", "program", "buffer", "access"];
        let accesses = self.db.list(
            SelectQuery::all("data_accesses", &columns).clauses("ORDER BY id"),
            |cells| {
                let access = DataAccess {
                    flow: DataFlowId(cells.small(0)?),
                    program: ProgramId(cells.small(1)?),
                    buffer: DataBufferId(cells.small(2)?),
                    kind: cells.named(3, DataAccessKind::from_name)?,
                };
                if access.buffer.index() < buffers.len() { Some(access) } else { None }
            },
        )?;
        let all = buffers.len() + accesses.len();
        let flows = DataFlows {
            buffers: buffers.into_iter().flatten().collect(),
            accesses: accesses.into_iter().flatten().collect(),
        };
        if flows.buffers.len() + flows.accesses.len() < all {
            self.warnings.add("data_buffers or data_accesses have unknown values".to_owned());
            return Ok(DataFlows::default());
        }
        Ok(flows)
    }
}
