//! What the machine of a report does at most.

use tilescope_report::units::{Bytes, Cycles, Hertz};
use tilescope_report::{
    ArithmeticType, ComputeEngine, ComputeRate, MachineInterface, MachineLimits, Report,
    ReportError, VertexWork,
};

/// The limits of a machine, and the tiles of its IPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub limits: MachineLimits,
    /// Tiles of one IPU, those set aside for I/O among them.
    pub tiles: u32,
    /// Tile clock; `None` where it was not recorded.
    pub clock: Option<Hertz>,
}

/// What an operation computes on, and how fast that is at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnginePeak {
    /// The fastest engine of its vertices, with its types.
    pub rate: ComputeRate,
    /// Floating point operations of a tile's matrix engine per cycle at most with its operands,
    /// whatever the sums are: what the run is measured against.
    pub amp_flops_per_cycle: u64,
}

impl Machine {
    pub(crate) fn read(report: &Report) -> Result<Self, ReportError> {
        let target = report.target()?;
        let clock = Some(target.clock).filter(|clock| clock.0 > 0);
        Ok(Self { limits: report.machine_limits()?, tiles: target.tiles_per_ipu.max(1), clock })
    }

    /// The rate of the engine that vertices compute on, where it is known.
    pub(super) fn rate_of(&self, work: VertexWork) -> Option<ComputeRate> {
        let VertexWork::Arithmetic { engine, input, partials } = work else { return None };
        let known = |input, partials| {
            let flops_per_cycle = self.limits.flops_per_cycle(engine, input, partials)?;
            Some(ComputeRate { engine, input, partials, flops_per_cycle })
        };
        // 8-bit floats become halves before vector units take them.
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

    /// Whole cycles in which all tiles of an IPU do so many floating point operations.
    pub(super) fn cycles_for(&self, flops: u64, flops_per_cycle: u64) -> Cycles {
        let all_tiles = flops_per_cycle.saturating_mul(self.tiles.into()).max(1);
        Cycles(flops / all_tiles)
    }

    /// Bytes per cycle that an IPU moves over an interface at most, where that is known. All tiles
    /// of it take part in an exchange.
    pub fn ipu_bytes_per_cycle(&self, interface: MachineInterface) -> Option<f64> {
        let one = self.limits.bytes_per_cycle(interface)?;
        let tiles = match interface {
            MachineInterface::Tile | MachineInterface::TileSend => f64::from(self.tiles),
            _ => 1.0,
        };
        Some(one * tiles)
    }

    /// Floating point operations of an IPU per cycle at most on engines of this rate.
    pub fn ipu_flops_per_cycle(&self, flops_per_cycle: u64) -> f64 {
        flops_per_cycle as f64 * f64::from(self.tiles)
    }

    /// Bytes that count against what tiles send: those sent, or those received as far as two tiles
    /// on a bus can receive the same.
    pub(super) fn sent_bytes(&self, sent: Bytes, received: Bytes) -> f64 {
        let rate = |interface| self.limits.bytes_per_cycle(interface);
        let both = rate(MachineInterface::TileSend).zip(rate(MachineInterface::Tile));
        let share = both.map_or(1.0, |(send, receive)| (send / receive).min(1.0));
        sent.as_f64().max(received.as_f64() * share)
    }
}
