//! The host's part of a run.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_COUNT;
use crate::model::{
    HostBottleneck, HostCallPart, HostCallTime, HostDataSource, HostEpoch, HostRate, HostReport,
    HostTensor, ReplicaWait,
};
use crate::units::{Bytes, CycleRange, Cycles};

impl Report {
    /// The host's part of the run; `None` if it was not recorded. Unreadable rows are left out.
    pub fn host(&self) -> Result<Option<HostReport>, ReportError> {
        let host = HostReport {
            rates: self.host_rates()?,
            call: self.host_call_parts()?,
            tensors: self.host_tensors()?,
            epochs: self.host_epochs()?,
            replicas: self.replica_waits()?,
        };
        Ok(if host != HostReport::default() { Some(host) } else { None })
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

    /// The tensors of a host call; none if they were not recorded.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn host_tensors(&self) -> Result<Vec<HostTensor>, ReportError> {
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
            let read_count = |column| cells.count(column, MAX_COUNT);
            Some(HostEpoch {
                epochs: read_count(0)?,
                calls: read_count(1)?,
                samples: read_count(2)?,
                left_out: read_count(3)?,
                seconds: cells.real(4)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    fn replica_waits(&self) -> Result<Vec<ReplicaWait>, ReportError> {
        let columns = [
            "first_replica",
            "replicas",
            "instance",
            "loader_cycles",
            "host_cycles",
            "others_cycles",
            "behind_least",
            "behind_most",
        ];
        let all = SelectQuery::all("replica_waits", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let read_small = |column| u32::try_from(cells.count(column, MAX_COUNT)?).ok();
            let read_cycles = |column| cells.count(column, MAX_COUNT).map(Cycles);
            let least = read_cycles(6)?;
            let most = read_cycles(7)?;
            Some(ReplicaWait {
                first_replica: read_small(0)?,
                replicas: read_small(1)?,
                instance: read_small(2)?,
                loader: read_cycles(3)?,
                host: read_cycles(4)?,
                others: read_cycles(5)?,
                behind: CycleRange::new(least, most.max(least)),
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }
}
