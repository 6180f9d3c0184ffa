//! What the host does for a run.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_COUNT;
use crate::model::{
    HostBottleneck, HostCallPart, HostCallTime, HostDataSource, HostEpoch, HostRate, HostReport,
    HostTensor,
};
use crate::units::Bytes;

impl Report {
    /// What the host does for the run; `None` where that was not recorded. Rows that cannot be
    /// read are left out.
    pub fn host(&self) -> Result<Option<HostReport>, ReportError> {
        let host = HostReport {
            rates: self.host_rates()?,
            call: self.host_call_parts()?,
            tensors: self.host_tensors()?,
            epochs: self.host_epochs()?,
        };
        Ok((host != HostReport::default()).then_some(host))
    }

    fn host_rates(&self) -> Result<Vec<HostRate>, ReportError> {
        let columns = ["source", "samples_per_second", "bottleneck"];
        let all = SelectQuery::all("host_rates", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(HostRate {
                source: cells.named(0, HostDataSource::from_name)?,
                samples_per_second: cells.real(1)?,
                bottleneck: cells.named(2, HostBottleneck::from_name)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    fn host_call_parts(&self) -> Result<Vec<HostCallTime>, ReportError> {
        let all = SelectQuery::all("host_call_parts", &["part", "seconds"]).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let part = cells.named(0, HostCallPart::from_name)?;
            Some(HostCallTime { part, seconds: cells.real(1)? })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    fn host_tensors(&self) -> Result<Vec<HostTensor>, ReportError> {
        let columns = ["name", "is_input", "element_type", "shape", "bytes"];
        let all = SelectQuery::all("host_tensors", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(HostTensor {
                name: cells.text(0)?,
                is_input: cells.count(1, 1)? == 1,
                element_type: cells.text(2)?,
                shape: serde_json::from_str(&cells.text(3)?).ok()?,
                bytes: Bytes(cells.count(4, MAX_COUNT)?),
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    fn host_epochs(&self) -> Result<Vec<HostEpoch>, ReportError> {
        let columns = ["epochs", "calls", "samples", "left_out", "seconds"];
        let all = SelectQuery::all("host_epochs", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let count = |column| cells.count(column, MAX_COUNT);
            Some(HostEpoch {
                epochs: count(0)?,
                calls: count(1)?,
                samples: count(2)?,
                left_out: count(3)?,
                seconds: cells.real(4)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }
}
