//! What an operation costs, what it could cost at least, and where the rest goes.

use super::cycle_class::{ClassCycles, CycleClass};
use super::machine::{EnginePeak, Machine};
use super::program_limits::ProgramLimits;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{
    ArithmeticType, ComputeEngine, MachineInterface, ModelOperation, VertexWork,
};

/// The limits of an operation over all of its executions in the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationLimits {
    /// Cycles of all its steps by what they go into: they add up to all of them.
    pub cycles: ClassCycles,
    /// Floating point operations that its results need; `None` where they are not known.
    pub flops: Option<u64>,
    /// Those that its vertices do, on padding included; `None` where they are not counted.
    pub vertex_flops: Option<u64>,
    /// What it computes on; `None` where it computes nothing, or that is not known.
    pub engine: Option<EnginePeak>,
    /// Share of the peak of that engine, over all its cycles and all tiles of the IPU.
    pub of_peak: Option<f64>,
    /// What its compute cycles are made of; `None` where its FLOPs or engine are not known.
    pub compute: Option<ComputeSplit>,
    /// Tiles that take part in its compute sets, as a mean over their cycles.
    pub tiles_in_use: Option<f64>,
    /// Share of the time of all tiles that is used while its compute sets run.
    pub tile_balance: Option<f64>,
    pub exchange: Option<ExchangeUse>,
    pub links: Option<InterfaceUse>,
    pub host: Option<InterfaceUse>,
    pub remote_buffers: Option<InterfaceUse>,
    /// The fewest cycles that it could take, and what would take them; `None` where that is not
    /// known.
    pub ideal: Option<IdealCycles>,
}

/// What the cycles are made of in which tiles work in compute sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeSplit {
    /// Its floating point operations at the peak of its engine on all tiles.
    pub at_peak: Cycles,
    /// Those on padding, at the same peak.
    pub padding: Cycles,
    /// The rest: engines work below their peak, or do what is no floating point operation.
    pub below_peak: Cycles,
    /// Its floating point operations at the peak of the matrix engine, which is not slower.
    pub at_amp_peak: Cycles,
}

/// What exchanges between tiles use of what they could move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeUse {
    /// Bytes that count against what tiles send.
    pub bytes: f64,
    /// Share of what all tiles could send in the cycles of the exchanges.
    pub of_fabric: Option<f64>,
    /// Share of what one tile could: the busiest of each exchange.
    pub of_tile: Option<f64>,
}

/// What copies use of an interface of their IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterfaceUse {
    pub bytes: Bytes,
    /// Share of what the interface could move in the cycles of the copies.
    pub of_limit: Option<f64>,
}

/// A bound from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdealCycles {
    pub cycles: Cycles,
    /// What is busy all that time: compute, exchange, host, remote buffers or links.
    pub bound: CycleClass,
}

/// What is known of the arithmetic of an operation besides its programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownFlops<'a> {
    /// An operation of the model.
    Of(&'a ModelOperation),
    /// Programs that belong to no operation, and do no arithmetic for the model.
    None,
    /// Parts of operations, or programs of a report without operations.
    Unknown,
}

impl OperationLimits {
    /// Cycles of all its steps.
    pub fn total(&self) -> Cycles {
        self.cycles.total()
    }

    /// Cycles beyond the fewest that it could take.
    pub fn wasted(&self) -> Option<Cycles> {
        Some(self.total().saturating_sub(self.ideal?.cycles))
    }

    /// The same of one class: what bounds the operation is only wasted beyond the bound.
    pub fn wasted_on(&self, class: CycleClass) -> Option<Cycles> {
        let ideal = self.ideal?;
        let own = if ideal.bound == class { ideal.cycles } else { Cycles::ZERO };
        Some(self.cycles[class].saturating_sub(own))
    }

    /// The class with most of its cycles.
    pub fn bound(&self) -> Option<CycleClass> {
        self.cycles.largest()
    }

    /// Share of what its vertices compute that is padding.
    pub fn padded(&self) -> Option<f64> {
        let (flops, done) = (self.flops?, self.vertex_flops.filter(|done| *done > 0)?);
        Some(1.0 - (flops as f64 / done as f64).min(1.0))
    }

    /// Floating point operations per cycle of its steps.
    pub fn flops_per_cycle(&self) -> Option<f64> {
        let (flops, total) = (self.flops.filter(|flops| *flops > 0)?, self.total());
        (!total.is_zero()).then(|| flops as f64 / total.as_f64())
    }

    /// Of the sums over the programs of an operation.
    pub(crate) fn new(sums: &ProgramLimits, known: KnownFlops, machine: &Machine) -> Self {
        let mut limits =
            Self { cycles: sums.cycles, vertex_flops: sums.vertex_flops, ..Self::default() };
        if !sums.unknown_bytes {
            limits.add_moved(sums, machine);
        }
        if sums.computing > 0.0 {
            limits.tiles_in_use = Some(sums.computing_on_tiles / sums.computing);
            let working = limits.cycles[CycleClass::Compute].as_f64();
            let waiting = limits.cycles[CycleClass::Balance].as_f64();
            limits.tile_balance = Some(working / (working + waiting));
        }
        limits.add_compute(sums, known, machine);
        limits.ideal = limits.ideal_cycles(sums, machine);
        limits
    }

    /// Works out what is used of exchange, links, host and remote buffers.
    fn add_moved(&mut self, sums: &ProgramLimits, machine: &Machine) {
        let used =
            |bytes, class, interface| interface_use(bytes, sums.cycles[class], interface, machine);
        self.exchange = exchange_use(sums, machine);
        self.links = used(sums.link_bytes, CycleClass::Links, MachineInterface::IpuLinks);
        self.host = used(sums.host_bytes, CycleClass::Host, MachineInterface::Host);
        self.remote_buffers =
            used(sums.remote_bytes, CycleClass::RemoteBuffers, MachineInterface::RemoteBuffer);
    }

    /// Works out FLOPs, engine and what compute cycles are made of, as far as that is known.
    fn add_compute(&mut self, sums: &ProgramLimits, known: KnownFlops, machine: &Machine) {
        self.flops = match known {
            KnownFlops::Of(operation) => run_flops(operation, sums.executions),
            KnownFlops::None => Some(0),
            KnownFlops::Unknown => None,
        };
        let rate = sums.rate.or_else(|| match known {
            // Codelets of applications do not say in their names what they compute in; they are
            // written for the vector units.
            KnownFlops::Of(ModelOperation { flops: 1.., element_type, .. }) => {
                let input: ArithmeticType = (*element_type)?;
                let engine = ComputeEngine::Vector;
                machine.rate_of(VertexWork::Arithmetic { engine, input, partials: input })
            }
            _ => None,
        });
        self.engine = rate.and_then(|rate| machine.peak(rate));
        let peak = self.engine.map_or(0.0, |engine| {
            machine.ipu_flops_per_cycle(engine.rate.flops_per_cycle) * self.total().as_f64()
        });
        self.of_peak = self.flops.filter(|_| peak > 0.0).map(|flops| flops as f64 / peak);
        let working = self.cycles[CycleClass::Compute];
        self.compute = match (self.flops, self.engine) {
            (Some(0), _) => Some(ComputeSplit { below_peak: working, ..ComputeSplit::default() }),
            (Some(flops), Some(engine)) => {
                let peak = engine.rate.flops_per_cycle;
                let on_padding = self.vertex_flops.map_or(0, |done| done.saturating_sub(flops));
                let at_peak = machine.cycles_for(flops, peak).min(working);
                let rest = working.saturating_sub(at_peak);
                let padding = machine.cycles_for(on_padding, peak).min(rest);
                let below_peak = rest.saturating_sub(padding);
                let at_amp_peak = machine.cycles_for(flops, engine.amp_flops_per_cycle);
                let at_amp_peak = at_amp_peak.min(at_peak);
                Some(ComputeSplit { at_peak, padding, below_peak, at_amp_peak })
            }
            _ => None,
        };
    }

    /// The largest bound from below of all that it uses; `None` where one of them is not known. What
    /// only changes a layout needs nothing.
    fn ideal_cycles(&self, sums: &ProgramLimits, machine: &Machine) -> Option<IdealCycles> {
        let compute = match (self.compute, self.cycles[CycleClass::Compute]) {
            (Some(split), _) => split.at_peak,
            (None, Cycles::ZERO) => Cycles::ZERO,
            (None, _) => return None,
        };
        let moved = [
            (CycleClass::Exchange, sums.exchange.needed_bytes, MachineInterface::TileSend),
            (CycleClass::Host, sums.host_bytes.as_f64(), MachineInterface::Host),
            (CycleClass::RemoteBuffers, sums.remote_bytes.as_f64(), MachineInterface::RemoteBuffer),
            (CycleClass::Links, sums.link_bytes.as_f64(), MachineInterface::IpuLinks),
        ];
        let mut best = IdealCycles { cycles: compute, bound: CycleClass::Compute };
        for (bound, bytes, interface) in moved {
            if self.cycles[bound].is_zero() {
                continue;
            }
            let rate = machine.ipu_bytes_per_cycle(interface).filter(|_| !sums.unknown_bytes)?;
            // Files of other tools may say that they moved more than they could.
            let cycles = Cycles::from_f64((bytes / rate).floor()).min(self.cycles[bound]);
            if cycles > best.cycles {
                best = IdealCycles { cycles, bound };
            }
        }
        Some(best)
    }
}

/// Floating point operations of all executions, where both are known.
fn run_flops(operation: &ModelOperation, runs: u64) -> Option<u64> {
    if operation.flops == 0 {
        return Some(0);
    }
    // Its most frequent program may run several times in one execution.
    Some(operation.flops.saturating_mul(runs / operation.inner_runs?))
}

fn exchange_use(sums: &ProgramLimits, machine: &Machine) -> Option<ExchangeUse> {
    let exchange = &sums.exchange;
    let cycles = exchange.cycles.as_f64();
    let rate = machine.ipu_bytes_per_cycle(MachineInterface::TileSend);
    (cycles > 0.0).then(|| ExchangeUse {
        bytes: exchange.bytes,
        of_fabric: rate.map(|rate| exchange.bytes / rate / cycles),
        of_tile: (exchange.tile_cycles > 0.0).then(|| exchange.tile_cycles / cycles),
    })
}

fn interface_use(
    bytes: Bytes,
    cycles: Cycles,
    interface: MachineInterface,
    machine: &Machine,
) -> Option<InterfaceUse> {
    let rate = machine.ipu_bytes_per_cycle(interface);
    (!cycles.is_zero()).then(|| InterfaceUse {
        bytes,
        of_limit: rate.map(|rate| bytes.as_f64() / rate / cycles.as_f64()),
    })
}
