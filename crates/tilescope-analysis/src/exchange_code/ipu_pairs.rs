//! Traffic of each pair of IPUs in the run.
//!
//! A report states the bytes that an exchange moves from IPU to IPU in one execution, and its steps
//! give the number of executions. Sent bytes without a named receiver are kept apart.

use crate::trace::InterIpuTransfers;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId, ProgramId};
use tilescope_report::{ProgramKind, Report, ReportError};

/// The traffic from one IPU to another in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpuPair {
    pub from: IpuId,
    /// `None` if the report does not name the receiver.
    pub to: Option<IpuId>,
    /// Executions of the exchanges, summed.
    pub executions: u64,
    pub bytes: Bytes,
}

/// Executions of an exchange on an IPU, and the bytes that all of them send.
#[derive(Clone, Copy, Default)]
struct SentByIpu {
    executions: u64,
    bytes: Bytes,
}

/// Pairs of IPUs of a replica by sender and receiver, with unnamed receivers last for each sender;
/// empty without a run.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn ipu_pairs(report: &Report) -> Result<Vec<IpuPair>, ReportError> {
    let Some(trace) = report.trace()? else { return Ok(Vec::new()) };
    let mut sent: BTreeMap<(IpuId, ProgramId), SentByIpu> = BTreeMap::new();
    for info in trace.lanes() {
        let Some(lane) = trace.lane_of(info.ipu, info.sub_lane) else { continue };
        for totals in lane.program_totals(0..info.steps)? {
            let Some(program) = totals.program else { continue };
            if totals.kind() == ProgramKind::GlobalExchange {
                let own = sent.entry((info.ipu, program)).or_default();
                // Groups of tiles of an IPU run it at the same time.
                own.executions = own.executions.max(totals.steps);
                own.bytes = own.bytes.saturating_add(totals.bytes_out);
            }
        }
    }
    let transfers = InterIpuTransfers::read(report)?;
    let mut pairs: BTreeMap<(IpuId, bool, Option<IpuId>), (u64, Bytes)> = BTreeMap::new();
    let mut add = |from: IpuId, to: Option<IpuId>, executions: u64, bytes: Bytes| {
        let (times, sum) = pairs.entry((from, to.is_none(), to)).or_default();
        *times += executions;
        *sum = sum.saturating_add(bytes);
    };
    for ((from, program), SentByIpu { executions, bytes }) in sent {
        let mut named = Bytes::ZERO;
        let own = transfers.transfers_of_program(program).iter();
        for transfer in own.filter(|transfer| transfer.from == from) {
            let Some(once) = transfer.bytes else { continue };
            let moved = Bytes(once.0.saturating_mul(executions));
            named = named.saturating_add(moved);
            add(from, Some(transfer.to), executions, moved);
        }
        // Data for several receivers is sent once, so the named bytes may exceed the sent ones.
        if bytes > named {
            add(from, None, executions, bytes - named);
        }
    }
    let mut rows = Vec::new();
    for ((from, _, to), (executions, bytes)) in pairs {
        rows.push(IpuPair { from, to, executions, bytes });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::ExchangeRoute;
    use tilescope_report::units::{TileId, TileRange, TileRuns};

    /// IPU 0 sends 100 bytes to IPU 1 each time, and 20 more bytes to an unnamed receiver.
    #[test]
    fn sent_bytes_have_a_receiver_or_none() {
        let mut builder = ReportBuilder::new(3, 4);
        let copy = builder.program(ProgramKind::GlobalExchange, "copy");
        let silent = builder.program(ProgramKind::GlobalExchange, "silent");
        builder.root(ProgramKind::Sequence, "main", &[copy, silent]);
        let on_tiles = |first: u32| {
            TileRuns::uniform(TileRange::new(TileId(first), TileId(first + 4)), Bytes(25))
        };
        let route = ExchangeRoute::in_order(copy, &on_tiles(0), &on_tiles(4));
        builder.parts.routes.push(route);
        for at in 0..5 {
            builder.run(copy, at * 100..at * 100 + 50).run(silent, at * 100 + 50..at * 100 + 60);
            let steps = builder.steps.len();
            builder.steps[steps - 2].ipus[0].bytes_out = Bytes(120);
            builder.steps[steps - 1].ipus[0].bytes_out = Bytes(7);
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let pair = |from: u32, to: Option<u32>, executions: u64, bytes: u64| IpuPair {
            from: IpuId(from),
            to: to.map(IpuId),
            executions,
            bytes: Bytes(bytes),
        };
        let found = ipu_pairs(&report).unwrap();
        assert_eq!(found, [pair(0, Some(1), 5, 500), pair(0, None, 10, 135)]);
    }
}
