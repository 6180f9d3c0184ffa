//! Actual cost of an operation, its lower bound, and the classes of the difference.

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
    /// Cycles of all its steps by class.
    pub cycles: ClassCycles,
    /// Floating point operations that its results need; `None` if not known.
    pub flops: Option<u64>,
    /// Floating point operations of its vertices, including those on padding; `None` if they are
    /// not counted.
    pub vertex_flops: Option<u64>,
    /// The engine that it computes on; `None` if it computes nothing, or the engine is not known.
    pub engine: Option<EnginePeak>,
    /// Share of the peak of that engine, over all its cycles and all tiles of the IPU.
    pub of_peak: Option<f64>,
    /// The parts of its compute cycles; `None` if its FLOPs or engine are not known.
    pub compute: Option<ComputeSplit>,
    /// Tiles that take part in its compute sets, as a mean over their cycles.
    pub tiles_in_use: Option<f64>,
    /// Share of the time of all tiles that is used while its compute sets are executed.
    pub tile_balance: Option<f64>,
    pub exchange: Option<ExchangeUse>,
    pub links: Option<InterfaceUse>,
    pub host: Option<InterfaceUse>,
    pub remote_buffers: Option<InterfaceUse>,
    /// The lower bound of its cycles with the resource that determines it; `None` if not known.
    pub ideal: Option<IdealCycles>,
}

/// The parts of the cycles in which tiles work in compute sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeSplit {
    /// Its floating point operations at the peak of its engine on all tiles.
    pub at_peak: Cycles,
    /// Floating point operations on padding at the same peak.
    pub padding: Cycles,
    /// The remainder: engines below their peak, and work other than floating point operations.
    pub below_peak: Cycles,
    /// Its floating point operations at the peak of the matrix engine, which is not slower.
    pub at_amp_peak: Cycles,
}

/// Use of the exchange fabric by exchanges between tiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeUse {
    /// Bytes to compare with the send rate of tiles.
    pub bytes: f64,
    /// Share of the capacity of all tiles in the cycles of the exchanges.
    pub of_fabric: Option<f64>,
    /// Share of the capacity of one tile: the busiest of each exchange.
    pub of_tile: Option<f64>,
}

/// Use of an interface of the IPU by copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterfaceUse {
    pub bytes: Bytes,
    /// Share of the capacity of the interface in the cycles of the copies.
    pub of_limit: Option<f64>,
}

/// A lower bound of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdealCycles {
    pub cycles: Cycles,
    /// The resource that is busy all that time: compute, exchange, host, remote buffers or links.
    pub bound: CycleClass,
}

/// The known arithmetic of an operation, besides its programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownFlops<'a> {
    /// An operation of the model.
    Of(&'a ModelOperation),
    /// Programs without an operation, which do no arithmetic for the model.
    None,
    /// Parts of operations, or programs of a report without operations.
    Unknown,
}

impl OperationLimits {
    /// Cycles of all its steps.
    pub fn total(&self) -> Cycles {
        self.cycles.total()
    }

    /// Cycles beyond the lower bound.
    pub fn wasted(&self) -> Option<Cycles> {
        Some(self.total().saturating_sub(self.ideal?.cycles))
    }

    /// The same of one class: the class of the bound wastes only the cycles beyond it.
    pub fn wasted_on(&self, class: CycleClass) -> Option<Cycles> {
        let ideal = self.ideal?;
        let own = if ideal.bound == class { ideal.cycles } else { Cycles::ZERO };
        Some(self.cycles[class].saturating_sub(own))
    }

    /// The class with most of its cycles.
    pub fn bound(&self) -> Option<CycleClass> {
        self.cycles.largest()
    }

    /// Share of the arithmetic of its vertices that is padding.
    pub fn padded(&self) -> Option<f64> {
        let flops = self.flops?;
        let done = self.vertex_flops.filter(|done| *done > 0)?;
        Some(1.0 - (flops as f64 / done as f64).min(1.0))
    }

    /// Floating point operations per cycle of its steps.
    pub fn flops_per_cycle(&self) -> Option<f64> {
        let flops = self.flops.filter(|flops| *flops > 0)?;
        let total = self.total();
        if total.is_zero() { None } else { Some(flops as f64 / total.as_f64()) }
    }

    /// The limits from the sums over the programs of an operation.
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

    /// Computes the use of exchange, links, host and remote buffers.
    fn add_moved(&mut self, sums: &ProgramLimits, machine: &Machine) {
        let used =
            |bytes, class, interface| interface_use(bytes, sums.cycles[class], interface, machine);
        self.exchange = exchange_use(sums, machine);
        self.links = used(sums.link_bytes, CycleClass::Links, MachineInterface::IpuLinks);
        self.host = used(sums.host_bytes, CycleClass::Host, MachineInterface::Host);
        self.remote_buffers =
            used(sums.remote_bytes, CycleClass::RemoteBuffers, MachineInterface::RemoteBuffer);
    }

    /// Computes FLOPs, engine and the parts of compute cycles, if known.
    fn add_compute(&mut self, sums: &ProgramLimits, known: KnownFlops, machine: &Machine) {
        self.flops = match known {
            KnownFlops::Of(operation) => run_flops(operation, sums.executions),
            KnownFlops::None => Some(0),
            KnownFlops::Unknown => None,
        };
        let rate = sums.rate.or_else(|| match known {
            // Names of application codelets do not reveal their types; they are written for the
            // vector units.
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

    /// The largest lower bound of all used resources; `None` if one of them is not known. Changes
    /// of layout do not count.
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
            // Files of other tools may state transfers faster than the bound.
            let cycles = Cycles::from_f64((bytes / rate).floor()).min(self.cycles[bound]);
            if cycles > best.cycles {
                best = IdealCycles { cycles, bound };
            }
        }
        Some(best)
    }
}

/// Floating point operations of all executions, if both are known.
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
    if cycles <= 0.0 {
        return None;
    }
    let has_tile_cycles = exchange.tile_cycles > 0.0;
    Some(ExchangeUse {
        bytes: exchange.bytes,
        of_fabric: rate.map(|rate| exchange.bytes / rate / cycles),
        of_tile: if has_tile_cycles { Some(exchange.tile_cycles / cycles) } else { None },
    })
}

fn interface_use(
    bytes: Bytes,
    cycles: Cycles,
    interface: MachineInterface,
    machine: &Machine,
) -> Option<InterfaceUse> {
    let rate = machine.ipu_bytes_per_cycle(interface);
    if cycles.is_zero() {
        return None;
    }
    Some(InterfaceUse { bytes, of_limit: rate.map(|rate| bytes.as_f64() / rate / cycles.as_f64()) })
}
