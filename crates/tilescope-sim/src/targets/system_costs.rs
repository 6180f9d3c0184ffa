//! What surrounds the tiles: links between IPUs, sync, and the host.

use super::{IpuLinkTopology, SystemDef};
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

/// Bytes per second between paired IPUs: four links of 128 Gibit/s at 85 %
/// (poplibs lib/poplibs_test/Util.cpp, addGlobalExchangeConstraints).
const PAIR_BYTES_PER_SECOND: f64 = 58.4e9;

/// Bytes per second up or down the ladder: two of those links.
const LADDER_BYTES_PER_SECOND: f64 = 29.2e9;

/// Bytes per second over GW-Links of one IPU's share: 2 x 100 Gbit/s for the four of a machine
/// (Bow-2000 data sheet).
const GATEWAY_BYTES_PER_SECOND: f64 = 2.0 * 100e9 / 8.0 / 4.0;

/// Bytes per second between one IPU and the host, of a plain program that connected its memory to
/// a stream on a Mk2 (graphcore/examples tut6 on hardware: 40.04 MB in 2,641,488 cycles).
const RAW_STREAM_BYTES_PER_SECOND: f64 = 20.1e9;

/// Bytes per second between streaming memory and one IPU: those of a plain stream, since both go
/// through the gateway's eight PCIe lanes of the IPU. No measured remote buffer is public.
const REMOTE_BYTES_PER_SECOND: f64 = RAW_STREAM_BYTES_PER_SECOND;

/// Cycles of a sync between IPUs (Target::getGlobalSyncCycles, IPU21).
const EXTERNAL_SYNC_CYCLES: Cycles = Cycles(600);

/// Bytes per second from the host to one IPU of a PopTorch program; fitted on the single-replica
/// row of the PopTorch data-loading tutorial.
const HOST_BYTES_PER_SECOND: f64 = 5.3e9;

/// Bytes per second of one host's links: the two 100 GbE ports of its network card (IPU-M2000 and
/// IPU-POD64 data sheets: one dual-port RoCE card in a server, two such ports on an IPU-Machine).
/// That all of it is reached is assumed.
pub(crate) const HOST_LINK_BYTES_PER_SECOND: f64 = 2.0 * 100e9 / 8.0;

/// Cores of one host: two processors of 64 (IPU-POD64 data sheet: Dell R6525, dual-socket Epyc2;
/// the processors with most cores are assumed).
pub(crate) const HOST_CORES: u64 = 2 * 64;

/// Seconds of one stream copy besides its transfer; fitted on the trace of the PopTorch pipelining
/// tutorial, where 40 copies leave 8,100 cycles each.
const STREAM_HANDSHAKE_SECONDS: f64 = 8_100.0 / 1.33e9;

/// Share of that handshake that comes after the transfer. Assumed.
const STREAM_END_SHARE: f64 = 0.1;

/// Bytes per cycle of the IPU Model's host (graphcore/examples tut6: 40.04 MB in 6,663,551 cycles).
const MODEL_HOST_BYTES_PER_CYCLE: f64 = 6.0;

/// Cycles before a transfer on the IPU Model. Assumed, like those after it, from the two control
/// copies of the matmul tutorial, which leave about 300 cycles each besides the exchange that
/// follows them.
const MODEL_STREAM_BEGIN_CYCLES: Cycles = Cycles(200);

/// Cycles after a transfer on the IPU Model.
const MODEL_STREAM_END_CYCLES: Cycles = Cycles(60);

/// Seconds a sync signal of the IPU Model takes per hop, there and back counted apart
/// (poplibs lib/poplibs_test/Util.cpp, setGlobalSyncLatency).
const MODEL_SYNC_SECONDS_PER_HOP: f64 = 15e-9;

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
        let stream =
            if connection.raw { RAW_STREAM_BYTES_PER_SECOND } else { HOST_BYTES_PER_SECOND };
        let handshake = STREAM_HANDSHAKE_SECONDS * clock;
        let (sync, begin, end, default_host) = match kind {
            TargetKind::Ipu => (
                EXTERNAL_SYNC_CYCLES,
                Cycles::from_f64((handshake * (1.0 - STREAM_END_SHARE)).round()),
                Cycles::from_f64((handshake * STREAM_END_SHARE).round()),
                stream / clock,
            ),
            TargetKind::IpuModel => {
                let hops = f64::from(1 + ipus / 2 / 2);
                let sync = (MODEL_SYNC_SECONDS_PER_HOP * clock * hops * 2.0).ceil();
                (
                    Cycles::from_f64(sync),
                    MODEL_STREAM_BEGIN_CYCLES,
                    MODEL_STREAM_END_CYCLES,
                    MODEL_HOST_BYTES_PER_CYCLE,
                )
            }
        };
        Self {
            pair_bytes_per_cycle: PAIR_BYTES_PER_SECOND / clock,
            ladder_bytes_per_cycle: LADDER_BYTES_PER_SECOND / clock,
            gateway_bytes_per_cycle: GATEWAY_BYTES_PER_SECOND / clock,
            link_domain: system.link_domain,
            topology: system.topology,
            remote_bytes_per_cycle: REMOTE_BYTES_PER_SECOND / clock,
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
