//! Writes the host's part of a run as rows.

use crate::error::ReportError;
use crate::limits::MAX_COUNT;
use crate::model::HostReport;
use crate::row_writer::{RowWriter, checked_i64};
use crate::units::Cycles;
use rusqlite::params;

/// Writes all of `host`.
pub(super) fn write(rows: &RowWriter, host: &HostReport) -> Result<(), ReportError> {
    for (id, rate) in host.rates.iter().enumerate() {
        let source = rate.source.name();
        let bottleneck = rate.bottleneck.name();
        rows.insert("host_rates", params![id as i64, source, rate.samples_per_second, bottleneck])?;
    }
    for (id, time) in host.call.iter().enumerate() {
        rows.insert("host_call_parts", params![id as i64, time.part.name(), time.seconds])?;
    }
    let count =
        |value: u64, what: &str| checked_i64(value, MAX_COUNT, || format!("{what} of the host"));
    for (id, tensor) in host.tensors.iter().enumerate() {
        let shape = format!("{:?}", tensor.shape);
        let bytes = count(tensor.bytes.0, "bytes of a tensor")?;
        rows.insert(
            "host_tensors",
            params![id as i64, tensor.name, tensor.is_input, tensor.element_type, shape, bytes],
        )?;
    }
    for (id, epoch) in host.epochs.iter().enumerate() {
        rows.insert(
            "host_epochs",
            params![
                id as i64,
                count(epoch.epochs, "epochs")?,
                count(epoch.calls, "calls of an epoch")?,
                count(epoch.samples, "samples of an epoch")?,
                count(epoch.left_out, "samples that an epoch leaves out")?,
                epoch.seconds,
            ],
        )?;
    }
    for (id, wait) in host.replicas.iter().enumerate() {
        let check_cycles = |cycles: Cycles| count(cycles.0, "cycles of a replica's wait");
        rows.insert(
            "replica_waits",
            params![
                id as i64,
                wait.first_replica,
                wait.replicas,
                wait.instance,
                check_cycles(wait.loader)?,
                check_cycles(wait.host)?,
                check_cycles(wait.others)?,
                check_cycles(wait.behind.start)?,
                check_cycles(wait.behind.end)?,
            ],
        )?;
    }
    Ok(())
}
