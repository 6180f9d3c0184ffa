//! Sums over a window of the trace, IPU by IPU.

use crate::summary::{ActivityProportions, WORKING};
use tilescope_report::trace::{PerActivity, Trace};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId};
use tilescope_report::{ReportError, StepActivity};

/// Bytes over a kind of link, received and sent by the tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTraffic {
    pub received: Bytes,
    pub sent: Bytes,
}

/// One IPU in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct IpuTotals {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// Executed steps that touch the window.
    pub steps: u64,
    /// Shares of the window on the compute tiles.
    pub proportions: ActivityProportions,
    /// Mean share of tiles that work while the IPU does not wait.
    pub tile_balance: Option<f64>,
    /// Copies from and to the host.
    pub host: StreamTraffic,
    /// Copies from and to remote buffers.
    pub remote_buffer: StreamTraffic,
    /// Copies from and to other IPUs.
    pub global_exchange: StreamTraffic,
}

/// A window of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSummary {
    /// The cycles it covers.
    pub window: CycleRange,
    pub ipus: Vec<IpuTotals>,
}

/// Sums a window up: every lane in O(log steps).
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn window_summary(
    trace: &Trace,
    window: CycleRange,
    ipus: &[IpuId],
) -> Result<WindowSummary, ReportError> {
    let ipus: Result<Vec<IpuTotals>, ReportError> =
        ipus.iter().map(|ipu| ipu_totals(trace, window, *ipu)).collect();
    Ok(WindowSummary { window, ipus: ipus? })
}

fn ipu_totals(trace: &Trace, window: CycleRange, ipu: IpuId) -> Result<IpuTotals, ReportError> {
    let mut totals = IpuTotals {
        ipu,
        steps: 0,
        proportions: ActivityProportions::new(|_| Cycles::ZERO, window),
        tile_balance: None,
        host: StreamTraffic::default(),
        remote_buffer: StreamTraffic::default(),
        global_exchange: StreamTraffic::default(),
    };
    for info in trace.lanes().iter().filter(|lane| lane.ipu == ipu) {
        let Some(lane) = trace.lane_of(ipu, info.sub_lane) else { continue };
        let sums = lane.totals(window)?;
        totals.steps += sums.steps;
        if info.sub_lane == 0 {
            totals.proportions = ActivityProportions::new(|activity| sums.cycles[activity], window);
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
