//! What surrounds the tiles: links between IPUs, sync, and the host.

use super::{IpuLinkTopology, SystemDef};
use crate::cost_constants::{
    EXTERNAL_SYNC_CYCLES, GATEWAY_BYTES_PER_SECOND, HOST_BYTES_PER_SECOND, LADDER_BYTES_PER_SECOND,
    MODEL_HOST_BYTES_PER_CYCLE, MODEL_STREAM_BEGIN_CYCLES, MODEL_STREAM_END_CYCLES,
    MODEL_SYNC_SECONDS_PER_HOP, PAIR_BYTES_PER_SECOND, REMOTE_BYTES_PER_SECOND, STREAM_END_SHARE,
    STREAM_HANDSHAKE_SECONDS,
};
use tilescope_report::TargetKind;
use tilescope_report::units::{Bytes, Cycles, IpuId};

/// Transfer and sync costs of a system, in cycles and bytes per cycle of its chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemCosts {
    /// Bytes per cycle and direction between the two IPUs of a pair.
    pub pair_bytes_per_cycle: f64,
    /// Bytes per cycle and direction up or down the ladder of pairs.
    pub ladder_bytes_per_cycle: f64,
    /// Bytes per cycle and direction between racks, per IPU.
    pub gateway_bytes_per_cycle: f64,
    /// IPUs that IPU-Links join; beyond them traffic goes over GW-Links.
    pub link_domain: u32,
    /// How the IPUs are joined.
    pub topology: IpuLinkTopology,
    /// Bytes per cycle between one IPU and streaming memory.
    pub remote_bytes_per_cycle: f64,
    /// Cycles of a sync of several IPUs, after the last one has arrived.
    pub external_sync_cycles: Cycles,
    /// Bytes per cycle between the host and one IPU.
    pub host_bytes_per_cycle: f64,
    /// Cycles of the handshake before the transfer of a stream copy.
    pub stream_begin_cycles: Cycles,
    /// Cycles after the transfer of a stream copy.
    pub stream_end_cycles: Cycles,
}

/// How the host is joined to one IPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostConnection {
    /// Bytes per second, where the spec sets them.
    pub bytes_per_second: Option<f64>,
    /// Whether streams take from the program's own memory, without callbacks of a framework.
    pub raw: bool,
}

/// A link from an IPU to its neighbour: the other one of its pair, or one up or down the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IpuLink {
    pub from: IpuId,
    pub to: IpuId,
}

impl IpuLink {
    /// The links over which data go from one IPU to another: along the ladder first, then across.
    pub(crate) fn path(from: IpuId, to: IpuId) -> Vec<IpuLink> {
        let (row, last) = (from.0 / 2, to.0 / 2);
        let on_row = |row: u32| IpuId(2 * row + from.0 % 2);
        let mut rows: Vec<u32> = (row.min(last)..=row.max(last)).collect();
        if row > last {
            rows.reverse();
        }
        let mut stops: Vec<IpuId> = rows.into_iter().map(on_row).collect();
        if stops.last() != Some(&to) {
            stops.push(to);
        }
        stops.windows(2).map(|ends| IpuLink { from: ends[0], to: ends[1] }).collect()
    }

    fn is_pair(self) -> bool {
        self.from.0 ^ 1 == self.to.0
    }
}

/// Bytes per second of one host's links: the two 100 GbE ports of its network card (IPU-M2000 and
/// IPU-POD64 data sheets: one dual-port RoCE card in a server, two such ports on an IPU-Machine).
pub(crate) const HOST_LINK_BYTES_PER_SECOND: f64 = 2.0 * 100e9 / 8.0;

/// Cores of one host: two processors of 64 (IPU-POD64 data sheet: Dell R6525, dual-socket Epyc2, of
/// which these have most cores).
pub(crate) const HOST_CORES: u64 = 2 * 64;

impl SystemCosts {
    /// The part of a system that surrounds `ipus` IPUs of one replica.
    ///
    pub(crate) fn new(
        system: &SystemDef,
        kind: TargetKind,
        ipus: u32,
        connection: HostConnection,
    ) -> Self {
        let clock = system.chip.clock.0 as f64;
        let stream = match connection.raw {
            true => REMOTE_BYTES_PER_SECOND.ratio(),
            false => HOST_BYTES_PER_SECOND.ratio(),
        };
        let handshake = STREAM_HANDSHAKE_SECONDS.ratio() * clock;
        let end_share = STREAM_END_SHARE.ratio();
        let (sync, begin, end, default_host) = match kind {
            TargetKind::Ipu => (
                EXTERNAL_SYNC_CYCLES.cycles(),
                Cycles::from_f64((handshake * (1.0 - end_share)).round()),
                Cycles::from_f64((handshake * end_share).round()),
                stream / clock,
            ),
            TargetKind::IpuModel => {
                let hops = f64::from(1 + ipus / 2 / 2);
                let sync = (MODEL_SYNC_SECONDS_PER_HOP.ratio() * clock * hops * 2.0).ceil();
                (
                    Cycles::from_f64(sync),
                    MODEL_STREAM_BEGIN_CYCLES.cycles(),
                    MODEL_STREAM_END_CYCLES.cycles(),
                    MODEL_HOST_BYTES_PER_CYCLE.ratio(),
                )
            }
        };
        Self {
            pair_bytes_per_cycle: PAIR_BYTES_PER_SECOND.ratio() / clock,
            ladder_bytes_per_cycle: LADDER_BYTES_PER_SECOND.ratio() / clock,
            gateway_bytes_per_cycle: GATEWAY_BYTES_PER_SECOND.ratio() / clock,
            link_domain: system.link_domain,
            topology: system.topology,
            remote_bytes_per_cycle: REMOTE_BYTES_PER_SECOND.ratio() / clock,
            external_sync_cycles: sync,
            host_bytes_per_cycle: connection
                .bytes_per_second
                .map_or(default_host, |rate| rate / clock),
            stream_begin_cycles: begin,
            stream_end_cycles: end,
        }
    }

    /// Cycles to move `bytes` over a link between neighbours that nobody else uses.
    pub(crate) fn link_cycles(&self, link: IpuLink, bytes: Bytes) -> Cycles {
        let speed =
            if link.is_pair() { self.pair_bytes_per_cycle } else { self.ladder_bytes_per_cycle };
        Cycles::from_f64((bytes.as_f64() / speed).ceil())
    }

    /// Most bytes per cycle that go into an IPU, or out of it: from the other one of its pair, and
    /// from both sides of the ladder.
    pub(crate) fn ipu_bytes_per_cycle(&self) -> f64 {
        self.pair_bytes_per_cycle + 2.0 * self.ladder_bytes_per_cycle
    }

    /// Cycles to move `bytes` between the host and one IPU.
    pub(crate) fn host_cycles(&self, bytes: Bytes) -> Cycles {
        Cycles::from_f64((bytes.as_f64() / self.host_bytes_per_cycle).ceil())
    }
}
