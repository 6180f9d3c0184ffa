//! Costs outside the tiles: links between IPUs, sync, and the host.

use super::{IpuLinkTopology, SystemDef};
use crate::cost_constants::{
    COLLECTIVE_STEP_SECONDS, EXTERNAL_SYNC_CYCLES, GATEWAY_BYTES_PER_SECOND, HostPath,
    LADDER_BYTES_PER_SECOND, MODEL_HOST_BYTES_PER_CYCLE, MODEL_STREAM_BEGIN_CYCLES,
    MODEL_STREAM_END_CYCLES, MODEL_SYNC_SECONDS_PER_HOP, PAIR_BYTES_PER_SECOND,
    REMOTE_BYTES_PER_SECOND, STREAM_END_SHARE, STREAM_HANDSHAKE_SECONDS,
};
use tilescope_report::TargetKind;
use tilescope_report::units::{Bytes, Cycles, Hertz, IpuId};

/// Transfer and sync costs of a system, in cycles and bytes per cycle of its chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemCosts {
    /// Bytes per cycle and direction between the two IPUs of a pair.
    pub pair_bytes_per_cycle: f64,
    /// Bytes per cycle and direction up or down the ladder of pairs.
    pub ladder_bytes_per_cycle: f64,
    /// Bytes per cycle and direction between racks, per IPU.
    pub gateway_bytes_per_cycle: f64,
    /// IPUs that IPU-Links connect. Traffic beyond them goes over GW-Links.
    pub link_domain: u32,
    /// Topology of the IPU-Links.
    pub topology: IpuLinkTopology,
    /// Bytes per cycle between one IPU and streaming memory.
    pub remote_bytes_per_cycle: f64,
    /// Cycles of a sync of several IPUs, counted from the arrival of the last one.
    pub external_sync_cycles: Cycles,
    /// Cycles of a step of a collective, excluding its sync and its bytes.
    pub collective_step_cycles: Cycles,
    /// Bytes per cycle between the host and one IPU.
    pub host_bytes_per_cycle: f64,
    /// Cycles of the handshake before the transfer of a stream copy.
    pub stream_begin_cycles: Cycles,
    /// Cycles after the transfer of a stream copy.
    pub stream_end_cycles: Cycles,
}

/// Rates of links, sync and host of a system that a spec may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SystemRates {
    /// Rate between the two IPUs of a pair, in each direction.
    pub pair_bytes_per_second: f64,
    /// Rate between neighbouring pairs of the ladder, in each direction.
    pub ladder_bytes_per_second: f64,
    /// Rate between racks, per IPU and direction.
    pub gateway_bytes_per_second: f64,
    /// Rate between one IPU and streaming memory.
    pub remote_bytes_per_second: f64,
    /// Rate between the host and one IPU.
    pub host_bytes_per_second: f64,
    /// Seconds of an exchange with the host, excluding its transfers.
    pub host_handshake_seconds: f64,
    /// Cycles of a sync of several IPUs, counted from the arrival of the last one.
    pub external_sync_cycles: Cycles,
}

impl SystemRates {
    /// Rates of a system whose programs run on `ipus` IPUs per replica. If `path` is `None`,
    /// streams read the program's own memory instead of calling back.
    pub(crate) fn of(
        system: &SystemDef,
        kind: TargetKind,
        ipus: u32,
        path: Option<&HostPath>,
    ) -> Self {
        let clock = system.chip.clock.0 as f64;
        let hardware = Self {
            pair_bytes_per_second: PAIR_BYTES_PER_SECOND.ratio(),
            ladder_bytes_per_second: LADDER_BYTES_PER_SECOND.ratio(),
            gateway_bytes_per_second: GATEWAY_BYTES_PER_SECOND.ratio(),
            remote_bytes_per_second: REMOTE_BYTES_PER_SECOND.ratio(),
            host_bytes_per_second: path
                .map_or(&REMOTE_BYTES_PER_SECOND, |path| path.bytes_per_second)
                .ratio(),
            host_handshake_seconds: path
                .map_or(&STREAM_HANDSHAKE_SECONDS, |path| path.handshake_seconds)
                .ratio(),
            external_sync_cycles: EXTERNAL_SYNC_CYCLES.cycles(),
        };
        match kind {
            TargetKind::Ipu => hardware,
            TargetKind::IpuModel => {
                let hops = f64::from(1 + ipus / 2 / 2);
                let sync = (MODEL_SYNC_SECONDS_PER_HOP.ratio() * clock * hops * 2.0).ceil();
                let (begin, end) = model_handshake();
                Self {
                    host_bytes_per_second: MODEL_HOST_BYTES_PER_CYCLE.ratio() * clock,
                    host_handshake_seconds: (begin + end).seconds_at(system.chip.clock),
                    external_sync_cycles: Cycles::from_f64(sync),
                    ..hardware
                }
            }
        }
    }
}

/// Cycles of the handshake of the IPU Model's host, before and after a transfer.
fn model_handshake() -> (Cycles, Cycles) {
    (MODEL_STREAM_BEGIN_CYCLES.cycles(), MODEL_STREAM_END_CYCLES.cycles())
}

/// Link from an IPU to a neighbour: the other IPU of its pair, or the next one up or down the
/// ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IpuLink {
    pub from: IpuId,
    pub to: IpuId,
}

impl IpuLink {
    /// Returns the links over which data travel from one IPU to another: along the ladder first,
    /// then across.
    pub(crate) fn path(from: IpuId, to: IpuId) -> Vec<IpuLink> {
        let row = from.0 / 2;
        let last = to.0 / 2;
        let mut rows: Vec<u32> = (row.min(last)..=row.max(last)).collect();
        if row > last {
            rows.reverse();
        }
        let mut stops: Vec<IpuId> =
            rows.into_iter().map(|row| IpuId(2 * row + from.0 % 2)).collect();
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

/// Cores of one host: two processors of 64 (IPU-POD64 data sheet: Dell R6525, dual-socket Epyc2; 64
/// cores is the largest such processor).
pub(crate) const HOST_CORES: u64 = 2 * 64;

impl SystemCosts {
    /// Costs of a replica on chips with the given clock.
    pub(crate) fn new(
        system: &SystemDef,
        rates: &SystemRates,
        kind: TargetKind,
        clock: Hertz,
    ) -> Self {
        let clock = clock.0 as f64;
        let (end_share, step_seconds) = match kind {
            TargetKind::Ipu => (STREAM_END_SHARE.ratio(), COLLECTIVE_STEP_SECONDS.ratio()),
            // The IPU Model counts only the bytes that links carry.
            TargetKind::IpuModel => {
                let (begin, end) = model_handshake();
                (end.as_f64() / (begin + end).max(Cycles(1)).as_f64(), 0.0)
            }
        };
        let handshake = rates.host_handshake_seconds * clock;
        Self {
            pair_bytes_per_cycle: rates.pair_bytes_per_second / clock,
            ladder_bytes_per_cycle: rates.ladder_bytes_per_second / clock,
            gateway_bytes_per_cycle: rates.gateway_bytes_per_second / clock,
            link_domain: system.link_domain,
            topology: system.topology,
            remote_bytes_per_cycle: rates.remote_bytes_per_second / clock,
            external_sync_cycles: rates.external_sync_cycles,
            collective_step_cycles: Cycles::from_f64((step_seconds * clock).round()),
            host_bytes_per_cycle: rates.host_bytes_per_second / clock,
            stream_begin_cycles: Cycles::from_f64((handshake * (1.0 - end_share)).round()),
            stream_end_cycles: Cycles::from_f64((handshake * end_share).round()),
        }
    }

    /// Cycles to move `bytes` over an otherwise idle link between neighbours.
    pub(crate) fn link_cycles(&self, link: IpuLink, bytes: Bytes) -> Cycles {
        let speed =
            if link.is_pair() { self.pair_bytes_per_cycle } else { self.ladder_bytes_per_cycle };
        Cycles::from_f64((bytes.as_f64() / speed).ceil())
    }

    /// Largest number of bytes per cycle into or out of an IPU: over the link of its pair and over
    /// both sides of the ladder.
    pub(crate) fn ipu_bytes_per_cycle(&self) -> f64 {
        self.pair_bytes_per_cycle + 2.0 * self.ladder_bytes_per_cycle
    }

    /// Cycles to move `bytes` between the host and one IPU.
    pub(crate) fn host_cycles(&self, bytes: Bytes) -> Cycles {
        Cycles::from_f64((bytes.as_f64() / self.host_bytes_per_cycle).ceil())
    }
}
