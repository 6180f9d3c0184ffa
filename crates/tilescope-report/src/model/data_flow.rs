//! The data that the steps of a program read and write. Traces are checked for causality against
//! it.

use crate::units::{DataBufferId, DataFlowId, IpuId, ProgramId};

/// The place where the data of a buffer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataPlace {
    /// In tile memory. A write replaces the previous data.
    Tiles,
    /// In tile memory, several micro-batches as a queue: the oldest is read first, and once.
    Stash,
    /// In streaming memory. A write replaces the previous data.
    RemoteBuffer,
    /// In streaming memory, several micro-batches as in a stash.
    RemoteStash,
    /// On the host: every read brings the next micro-batch.
    Host,
}

impl DataPlace {
    /// All places.
    pub const ALL: [DataPlace; 5] =
        [Self::Tiles, Self::Stash, Self::RemoteBuffer, Self::RemoteStash, Self::Host];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiles => "tiles",
            Self::Stash => "stash",
            Self::RemoteBuffer => "remote_buffer",
            Self::RemoteStash => "remote_stash",
            Self::Host => "host",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.name() == name)
    }
}

/// A tensor in one place, which steps read and write as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBuffer {
    /// The tensor.
    pub name: String,
    pub place: DataPlace,
    /// The IPU whose steps read and write it.
    pub ipu: IpuId,
    /// The number of micro-batches in a stash; 1 elsewhere.
    pub entries: u64,
    /// True for data of no micro-batch: weights, optimiser state, accumulators.
    pub persistent: bool,
    /// True if it has data before the run.
    pub filled: bool,
}

/// The kind of access of a step to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataAccessKind {
    Read,
    Write,
    /// Reads for a copy between stages, which is made even if there are no data yet.
    Send,
    /// Writes the data of the copy, if there are any yet.
    Receive,
    /// Frees the memory: the data are gone.
    Free,
}

impl DataAccessKind {
    /// All kinds.
    pub const ALL: [DataAccessKind; 5] =
        [Self::Read, Self::Write, Self::Send, Self::Receive, Self::Free];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Free => "free",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One access of a program to a buffer, at each run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// The operation or copy it belongs to, whose writes depend on its reads.
    pub flow: DataFlowId,
    pub program: ProgramId,
    pub buffer: DataBufferId,
    pub kind: DataAccessKind,
}

/// Everything that the programs of a report read and write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataFlows {
    /// The buffers, indexed by [`DataBufferId`].
    pub buffers: Vec<DataBuffer>,
    /// Flow by flow, in the order of the program.
    pub accesses: Vec<DataAccess>,
}
