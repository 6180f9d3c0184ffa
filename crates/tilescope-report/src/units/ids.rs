//! Typed positions: of entries in the tables of a report, and of tiles and IPUs.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Rem, Sub};

/// Defines an id: a typed index into one table of the report.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a position in its table.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "no table in memory has 2^32 entries"
            )]
            pub fn from_index(position: usize) -> Self {
                Self(position as u32)
            }
        }
    };
}
id!(/// A compiled program node, in `programs`.
    ProgramId);
id!(/// A compute set, in `compute_sets`.
    ComputeSetId);
id!(/// A vertex type, in `vertex_types`.
    VertexTypeId);
id!(/// A lowered variable, in `vars`.
    VariableId);
id!(/// An operation of the model, in `operations`.
    OperationId);
id!(/// A buffer that programs read and write, in `data_buffers`.
    DataBufferId);
id!(/// An operation or a copy in `data_accesses`.
    DataFlowId);

/// An executed step, counted over all runs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StepId(pub u64);

impl StepId {
    /// The step `count` steps later, if its number is valid.
    pub fn checked_add(self, count: u64) -> Option<Self> {
        self.0.checked_add(count).map(Self)
    }
}

impl Add<u64> for StepId {
    type Output = Self;
    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl AddAssign<u64> for StepId {
    fn add_assign(&mut self, count: u64) {
        self.0 += count;
    }
}

impl Sub for StepId {
    type Output = u64;
    /// The number of steps from `first` up to this one.
    fn sub(self, first: Self) -> u64 {
        self.0 - first.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Defines a position in a sequence: it moves by plain numbers, and the difference of two is one.
macro_rules! position {
    ($(#[$doc:meta])* $name:ident) => {
        id!($(#[$doc])* #[derive(Default)] $name);

        impl $name {
            /// This one and all following ones.
            pub fn onwards(self) -> impl Iterator<Item = Self> + Clone {
                (self.0..).map(Self)
            }

            /// The one `count` places later, if its number is valid.
            pub fn checked_add(self, count: u32) -> Option<Self> {
                self.0.checked_add(count).map(Self)
            }

            /// The one `count` places earlier, if there is one.
            pub fn checked_sub(self, count: u32) -> Option<Self> {
                self.0.checked_sub(count).map(Self)
            }
        }

        impl From<$name> for u64 {
            fn from(at: $name) -> u64 {
                at.0.into()
            }
        }

        impl Add<u32> for $name {
            type Output = Self;
            fn add(self, count: u32) -> Self {
                Self(self.0 + count)
            }
        }

        impl Sub<u32> for $name {
            type Output = Self;
            fn sub(self, count: u32) -> Self {
                Self(self.0 - count)
            }
        }

        impl Sub for $name {
            type Output = u32;
            /// The number of positions from `first` up to this one.
            fn sub(self, first: Self) -> u32 {
                self.0 - first.0
            }
        }

        impl Rem<u32> for $name {
            type Output = Self;
            /// The remainder of its number by `count`.
            fn rem(self, count: u32) -> Self {
                Self(self.0 % count)
            }
        }

        impl fmt::Display for $name {
            /// The plain number, as in the file and the tables.
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}
position!(/// A tile, numbered over all IPUs of a replica: tile `t` of IPU `i` is
    /// `i * tiles_per_ipu + t` in software order.
    TileId);
position!(/// An IPU of a replica, from 0.
    IpuId);
position!(/// Replicas that do the same at the same cycles; replica 0 is in class 0.
    ReplicaClassId);

/// An IPU of the replicas of a class. Its text is just the number of the IPU for the first class,
/// which all reports have.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "ReplicaIpuText", into = "ReplicaIpuText")]
pub struct ReplicaIpu {
    pub class: ReplicaClassId,
    pub ipu: IpuId,
}

impl From<IpuId> for ReplicaIpu {
    fn from(ipu: IpuId) -> Self {
        Self { class: ReplicaClassId(0), ipu }
    }
}

/// The text form of an IPU of some replicas.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ReplicaIpuText {
    OfFirstClass(IpuId),
    OfClass { class: ReplicaClassId, ipu: IpuId },
}

impl From<ReplicaIpuText> for ReplicaIpu {
    fn from(text: ReplicaIpuText) -> Self {
        match text {
            ReplicaIpuText::OfFirstClass(ipu) => ipu.into(),
            ReplicaIpuText::OfClass { class, ipu } => Self { class, ipu },
        }
    }
}

impl From<ReplicaIpu> for ReplicaIpuText {
    fn from(ReplicaIpu { class, ipu }: ReplicaIpu) -> Self {
        match class {
            ReplicaClassId(0) => Self::OfFirstClass(ipu),
            _ => Self::OfClass { class, ipu },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_move_and_differ_by_numbers() {
        for (tile, count) in [(0, 0), (0, 1472), (1471, 1)] {
            let (first, moved) = (TileId(tile), TileId(tile) + count);
            assert_eq!((moved - first, moved - count), (count, first));
            assert_eq!(moved.index(), (tile + count) as usize);
            assert_eq!(format!("{moved:>6}"), format!("{:>6}", tile + count));
        }
        assert!(IpuId(1) < IpuId(2));
    }

    #[test]
    fn an_ipu_of_the_first_replicas_is_written_as_its_number() {
        let others = ReplicaIpu { class: ReplicaClassId(2), ipu: IpuId(3) };
        let written = [ReplicaIpu::from(IpuId(3)), others].map(|at| {
            let text = serde_json::to_string(&at).unwrap();
            assert_eq!(serde_json::from_str::<ReplicaIpu>(&text).unwrap(), at);
            text
        });
        assert_eq!(written, ["3", r#"{"class":2,"ipu":3}"#]);
    }
}
