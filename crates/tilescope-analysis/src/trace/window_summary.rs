//! Sums over a window of the trace, IPU by IPU.

use super::window_totals::WindowTotals;
use crate::summary::{ActivityProportions, WORKING};
use tilescope_report::trace::{LaneInfo, PerActivity, Trace};
use tilescope_report::units::{Bytes, CycleRange, ReplicaIpu};
use tilescope_report::{ReportError, StepActivity};

/// Bytes over a kind of link, received and sent by the tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTraffic {
    pub received: Bytes,
    pub sent: Bytes,
}

/// Totals of one IPU in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct IpuTotals {
    /// The IPU, and the class of its replicas.
    pub at: ReplicaIpu,
    /// Executed steps that overlap the window.
    pub steps: u64,
    /// Shares of the window on the compute tiles.
    pub proportions: ActivityProportions,
    /// Mean share of tiles that work while the IPU is not waiting.
    pub tile_balance: Option<f64>,
    /// Copies with the host.
    pub host: StreamTraffic,
    /// Copies with remote buffers.
    pub remote_buffer: StreamTraffic,
    /// Copies with other IPUs.
    pub global_exchange: StreamTraffic,
}

/// A window of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSummary {
    /// The cycles it covers.
    pub window: CycleRange,
    pub ipus: Vec<IpuTotals>,
}

/// Sums up a window: each lane in O(log steps).
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn window_summary(
    trace: &Trace,
    window: CycleRange,
    ipus: &[ReplicaIpu],
) -> Result<WindowSummary, ReportError> {
    let lanes: Vec<Vec<LaneInfo>> = ipus.iter().map(|at| lanes_of(trace, *at)).collect();
    let ipus: Result<Vec<IpuTotals>, ReportError> =
        ipus.iter().zip(&lanes).map(|(at, own)| ipu_totals(trace, window, *at, own)).collect();
    Ok(WindowSummary { window, ipus: ipus? })
}

/// Sums up the whole run, for every IPU of the trace.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn run_summary(trace: &Trace) -> Result<WindowSummary, ReportError> {
    let lanes = trace.classes().flat_map(|trace| trace.lanes().to_vec());
    let mut ipus: Vec<ReplicaIpu> =
        lanes.map(|LaneInfo { class, ipu, .. }| ReplicaIpu { class, ipu }).collect();
    ipus.dedup();
    window_summary(trace, trace.range(), &ipus)
}

fn lanes_of(trace: &Trace, at: ReplicaIpu) -> Vec<LaneInfo> {
    let Some(of_class) = trace.of_class(at.class) else { return Vec::new() };
    of_class.lanes().iter().filter(|lane| lane.ipu == at.ipu).copied().collect()
}

fn ipu_totals(
    trace: &Trace,
    window: CycleRange,
    at: ReplicaIpu,
    own: &[LaneInfo],
) -> Result<IpuTotals, ReportError> {
    let mut totals = IpuTotals {
        at,
        steps: 0,
        proportions: ActivityProportions::new(&WindowTotals::empty(window)),
        tile_balance: None,
        host: StreamTraffic::default(),
        remote_buffer: StreamTraffic::default(),
        global_exchange: StreamTraffic::default(),
    };
    for info in own {
        let Some(lane) = trace.lane_at(at, info.sub_lane) else { continue };
        let of = WindowTotals::read(lane, window)?;
        let sums = &of.totals;
        totals.steps += sums.steps;
        if info.sub_lane == 0 {
            totals.proportions = ActivityProportions::new(&of);
            totals.tile_balance = sums.tile_balance(&WORKING);
        }
        let add = |traffic: &mut StreamTraffic, activity: StepActivity| {
            traffic.received += bytes(&sums.bytes_in, activity);
            traffic.sent += bytes(&sums.bytes_out, activity);
        };
        add(&mut totals.host, StepActivity::Host);
        add(&mut totals.remote_buffer, StepActivity::RemoteBuffer);
        add(&mut totals.global_exchange, StepActivity::GlobalExchange);
    }
    Ok(totals)
}

fn bytes(values: &PerActivity<Bytes>, activity: StepActivity) -> Bytes {
    values[activity]
}
