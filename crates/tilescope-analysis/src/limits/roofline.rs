//! Roofline model: operations as points below the roofs of an IPU.
//!
//! The height of a point is the compute rate of an operation, and its horizontal position the
//! operations per byte that it moves, over the interface that would take longest. So the point is
//! below the roof of that interface, and no point is above any of its own roofs.

use super::{LimitsRow, Machine, OperationLimits};
use tilescope_report::units::IpuId;
use tilescope_report::{ComputeRate, MachineInterface};

/// An upper bound of the compute rate of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoofKind {
    /// An engine: floating point operations of an IPU per cycle.
    Engine(ComputeRate),
    /// An interface: bytes of an IPU per cycle.
    Interface(MachineInterface),
}

/// A roof of the diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    pub kind: RoofKind,
    pub title: String,
    /// Floating point operations, or bytes, of an IPU per cycle.
    pub per_cycle: f64,
}

impl Roof {
    /// Floating point operations per cycle that the roof allows for a given number of operations
    /// per byte.
    pub fn flops_per_cycle(&self, flops_per_byte: f64) -> f64 {
        match self.kind {
            RoofKind::Engine(_) => self.per_cycle,
            RoofKind::Interface(_) => self.per_cycle * flops_per_byte,
        }
    }
}

/// An operation in the diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RooflinePoint {
    /// Its index among the rows.
    pub row: usize,
    /// The interface with the longest transfer; `None` if the operation moves nothing.
    pub interface: Option<MachineInterface>,
    /// Floating point operations per byte over that interface; infinite if the operation moves
    /// nothing.
    pub flops_per_byte: f64,
    pub flops_per_cycle: f64,
}

/// All roofs and points of one IPU, or of all IPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofline {
    /// Engines that operations compute on, the fastest first, then interfaces.
    pub roofs: Vec<Roof>,
    pub points: Vec<RooflinePoint>,
    /// Number of rows without floating point operations, which have no points.
    pub without_flops: usize,
    /// Number of rows with unknown floating point operations.
    pub unknown: usize,
}

/// Interfaces with roofs, and their titles.
const INTERFACES: [(MachineInterface, &str); 4] = [
    (MachineInterface::TileSend, "Exchange"),
    (MachineInterface::IpuLinks, "Links"),
    (MachineInterface::RemoteBuffer, "Remote buffers"),
    (MachineInterface::Host, "Host"),
];

/// The title of an interface.
pub fn interface_title(interface: MachineInterface) -> &'static str {
    INTERFACES.iter().find(|(known, _)| *known == interface).map_or("", |(_, title)| title)
}

/// The roofline of the operations on one IPU, or of all operations.
pub fn roofline(machine: &Machine, rows: &[LimitsRow], ipu: Option<IpuId>) -> Roofline {
    let mut found = Roofline::default();
    let own = rows.iter().enumerate();
    for (at, row) in own.filter(|(_, row)| ipu.is_none() || row.ipu == ipu) {
        match row.limits.flops {
            None => found.unknown += 1,
            Some(0) => found.without_flops += 1,
            Some(flops) => {
                let Some(flops_per_cycle) = row.limits.flops_per_cycle() else { continue };
                let moved = tightest(&row.limits, machine);
                found.points.push(RooflinePoint {
                    row: at,
                    interface: moved.map(|(interface, _)| interface),
                    flops_per_byte: moved.map_or(f64::INFINITY, |(_, bytes)| flops as f64 / bytes),
                    flops_per_cycle,
                });
            }
        }
        if let Some(engine) = row.limits.engine.filter(|_| row.limits.flops > Some(0)) {
            found.add_engine(engine.rate, machine);
        }
    }
    found.roofs.sort_by(|one, other| other.per_cycle.total_cmp(&one.per_cycle));
    found.roofs.extend(INTERFACES.into_iter().filter_map(|(interface, title)| {
        let per_cycle = machine.ipu_bytes_per_cycle(interface)?;
        Some(Roof { kind: RoofKind::Interface(interface), title: title.to_owned(), per_cycle })
    }));
    found
}

impl Roofline {
    fn add_engine(&mut self, rate: ComputeRate, machine: &Machine) {
        let kind = RoofKind::Engine(rate);
        if self.roofs.iter().all(|roof| roof.kind != kind) {
            let title = engine_title(rate);
            let per_cycle = machine.ipu_flops_per_cycle(rate.flops_per_cycle);
            self.roofs.push(Roof { kind, title, per_cycle });
        }
    }
}

/// The title of an engine with its types: `AMP half`, `AMP half, float sums`.
pub fn engine_title(rate: ComputeRate) -> String {
    let engine = rate.engine.title();
    let input = rate.input.name();
    if rate.partials == rate.input {
        format!("{engine} {input}")
    } else {
        format!("{engine} {input}, {} sums", rate.partials.name())
    }
}

/// The interface that needs the most cycles for an operation's bytes, with those bytes.
fn tightest(limits: &OperationLimits, machine: &Machine) -> Option<(MachineInterface, f64)> {
    let bytes = [
        (MachineInterface::TileSend, limits.exchange.map(|of| of.bytes)),
        (MachineInterface::IpuLinks, limits.links.map(|of| of.bytes.as_f64())),
        (MachineInterface::RemoteBuffer, limits.remote_buffers.map(|of| of.bytes.as_f64())),
        (MachineInterface::Host, limits.host.map(|of| of.bytes.as_f64())),
    ];
    let cycles = bytes.into_iter().filter_map(|(interface, bytes)| {
        let bytes = bytes.filter(|bytes| *bytes > 0.0)?;
        Some((interface, bytes, bytes / machine.ipu_bytes_per_cycle(interface)?))
    });
    let longest = cycles.max_by(|one, other| one.2.total_cmp(&other.2))?;
    Some((longest.0, longest.1))
}
