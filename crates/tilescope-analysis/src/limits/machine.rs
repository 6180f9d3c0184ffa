//! Limits of the machine of a report.

use tilescope_report::units::{Bytes, Cycles, Hertz};
use tilescope_report::{
    ArithmeticType, ComputeEngine, ComputeRate, MachineInterface, MachineLimits, Report,
    ReportError, VertexWork,
};

/// The limits of a machine, and the tiles of its IPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub limits: MachineLimits,
    /// Tiles of one IPU, including those reserved for I/O.
    pub tiles: u32,
    /// Tile clock; `None` if it was not recorded.
    pub clock: Option<Hertz>,
}

/// The engine that an operation computes on, and its peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnginePeak {
    /// The fastest engine of its vertices, with its types.
    pub rate: ComputeRate,
    /// Peak floating point operations of a tile's matrix engine per cycle with these operands, for
    /// any type of sums: the reference for the run.
    pub amp_flops_per_cycle: u64,
}

impl Machine {
    pub(crate) fn read(report: &Report) -> Result<Self, ReportError> {
        let target = report.target()?;
        let clock = Some(target.clock).filter(|clock| clock.0 > 0);
        Ok(Self { limits: report.machine_limits()?, tiles: target.tiles_per_ipu.max(1), clock })
    }

    /// The rate of the engine that vertices compute on, if known.
    pub(super) fn rate_of(&self, work: VertexWork) -> Option<ComputeRate> {
        let VertexWork::Arithmetic { engine, input, partials } = work else { return None };
        let known = |input, partials| {
            let flops_per_cycle = self.limits.flops_per_cycle(engine, input, partials)?;
            Some(ComputeRate { engine, input, partials, flops_per_cycle })
        };
        // Vector units convert 8-bit floats to halves first.
        known(input, partials).or_else(|| match (engine, input) {
            (ComputeEngine::Vector, ArithmeticType::Quarter) => {
                known(ArithmeticType::Half, ArithmeticType::Half)
            }
            _ => None,
        })
    }

    /// The peak for operands of a type on an engine of this rate.
    pub(super) fn peak(&self, rate: ComputeRate) -> Option<EnginePeak> {
        let amp_flops_per_cycle =
            self.limits.peak_flops_per_cycle(ComputeEngine::Amp, rate.input)?;
        Some(EnginePeak { rate, amp_flops_per_cycle })
    }

    /// Whole cycles that all tiles of an IPU need for `flops` floating point operations.
    pub(super) fn cycles_for(&self, flops: u64, flops_per_cycle: u64) -> Cycles {
        let all_tiles = flops_per_cycle.saturating_mul(self.tiles.into()).max(1);
        Cycles(flops / all_tiles)
    }

    /// Peak bytes per cycle of an IPU over an interface, if known. All of its tiles take part in an
    /// exchange.
    pub fn ipu_bytes_per_cycle(&self, interface: MachineInterface) -> Option<f64> {
        let one = self.limits.bytes_per_cycle(interface)?;
        let tiles = match interface {
            MachineInterface::Tile | MachineInterface::TileSend => f64::from(self.tiles),
            _ => 1.0,
        };
        Some(one * tiles)
    }

    /// Peak floating point operations per cycle of an IPU on engines of this rate.
    pub fn ipu_flops_per_cycle(&self, flops_per_cycle: u64) -> f64 {
        flops_per_cycle as f64 * f64::from(self.tiles)
    }

    /// Bytes to compare with the send rate of tiles: the sent ones, or the received ones reduced by
    /// the share that two tiles on a bus can receive together.
    pub(super) fn sent_bytes(&self, sent: Bytes, received: Bytes) -> f64 {
        let send = self.limits.bytes_per_cycle(MachineInterface::TileSend);
        let receive = self.limits.bytes_per_cycle(MachineInterface::Tile);
        let share = match (send, receive) {
            (Some(send), Some(receive)) => (send / receive).min(1.0),
            _ => 1.0,
        };
        sent.as_f64().max(received.as_f64() * share)
    }
}
