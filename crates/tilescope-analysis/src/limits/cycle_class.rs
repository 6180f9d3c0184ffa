//! Classes of cycles in the analysis of limits.

use serde::Serialize;
use std::ops::{Index, IndexMut};
use tilescope_report::units::Cycles;

/// The class of cycles of an operation's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleClass {
    /// Tiles work in compute sets.
    Compute,
    /// Tiles wait in compute sets for the slowest one, including tiles without vertices.
    Balance,
    /// Tiles of an IPU exchange data.
    Exchange,
    /// Tiles only change the layout of data.
    Rearrangement,
    /// Waits for others, and the start of every compute set and exchange.
    SyncAndStart,
    /// Copies with the host.
    Host,
    /// Waiting for the host.
    HostWait,
    /// Copies from and to remote buffers.
    RemoteBuffers,
    /// Exchanges between IPUs.
    Links,
    /// Steps of unknown kind.
    Other,
}

impl CycleClass {
    /// Every class, in the order in which views show them.
    pub const ALL: [CycleClass; 10] = [
        Self::Compute,
        Self::Balance,
        Self::Exchange,
        Self::Rearrangement,
        Self::SyncAndStart,
        Self::Host,
        Self::HostWait,
        Self::RemoteBuffers,
        Self::Links,
        Self::Other,
    ];

    /// The title of the class.
    pub fn title(self) -> &'static str {
        match self {
            Self::Compute => "Compute",
            Self::Balance => "Balance",
            Self::Exchange => "Exchange",
            Self::Rearrangement => "Rearrangement",
            Self::SyncAndStart => "Sync and start",
            Self::Host => "Host",
            Self::HostWait => "Host wait",
            Self::RemoteBuffers => "Remote buffers",
            Self::Links => "Links",
            Self::Other => "Other",
        }
    }

    /// The definition of the class.
    pub fn about(self) -> &'static str {
        match self {
            Self::Compute => {
                "Cycles in which tiles work in compute sets: of each compute set the sum over its \
                 tiles / tiles of the IPU"
            }
            Self::Balance => {
                "Cycles in which tiles wait in compute sets: cycles of the slowest tile - sum over \
                 tiles / tiles of the IPU; tiles without vertices always wait"
            }
            Self::Exchange => "Cycles of DoExchange on the busiest tile, without its start",
            Self::Rearrangement => {
                "Cycles of compute sets whose vertices only copy, and of exchanges that only \
                 change a layout (PreArrange, Transpose, regroup, …), without their starts"
            }
            Self::SyncAndStart => {
                "Cycles of Sync, and those of each OnTileExecute and DoExchange before its tiles \
                 begin: cycles of the step - cycles of its slowest tile"
            }
            Self::Host => "Cycles of StreamCopyMid and End with the host",
            Self::HostWait => {
                "Cycles of StreamCopyBegin with the host, and of syncs that wait for parts of a host \
                 call"
            }
            Self::RemoteBuffers => "Cycles of StreamCopyBegin, Mid and End with remote buffers",
            Self::Links => "Cycles of GlobalExchange",
            Self::Other => "Cycles of steps of unknown kind",
        }
    }
}

/// Cycles by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCycles([Cycles; CycleClass::ALL.len()]);

impl ClassCycles {
    /// Classes with their cycles, in the order of [`CycleClass::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (CycleClass, Cycles)> {
        CycleClass::ALL.into_iter().zip(self.0)
    }

    /// Sum over all classes.
    pub fn total(&self) -> Cycles {
        self.0.into_iter().fold(Cycles::ZERO, Cycles::saturating_add)
    }

    /// The class with the most cycles, the first if several are equal; `None` without cycles.
    pub fn largest(&self) -> Option<CycleClass> {
        let more = |best: (CycleClass, Cycles), next: (CycleClass, Cycles)| {
            if next.1 > best.1 { next } else { best }
        };
        let (class, cycles) = self.iter().reduce(more)?;
        if cycles.is_zero() { None } else { Some(class) }
    }

    pub(super) fn of(class: CycleClass, cycles: Cycles) -> Self {
        let mut all = Self::default();
        all[class] = cycles;
        all
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Index<CycleClass> for ClassCycles {
    type Output = Cycles;

    fn index(&self, class: CycleClass) -> &Cycles {
        &self.0[class as usize]
    }
}

impl IndexMut<CycleClass> for ClassCycles {
    fn index_mut(&mut self, class: CycleClass) -> &mut Cycles {
        &mut self.0[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_declaration_order() {
        for (at, class) in CycleClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
            let alone = ClassCycles::of(class, Cycles(7));
            assert_eq!((alone.total(), alone.largest()), (Cycles(7), Some(class)));
        }
        assert_eq!(ClassCycles::default().largest(), None);
    }
}
