//! What the steps of a program read and write: by this, a trace is checked for causality.

use crate::units::{DataBufferId, DataFlowId, IpuId, ProgramId};

/// Where the data of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataPlace {
    /// In tile memory: what is written replaces what was there.
    Tiles,
    /// In tile memory, several micro-batches one behind the other: what was written first is read
    /// first, and once.
    Stash,
    /// In streaming memory: what is written replaces what was there.
    RemoteBuffer,
    /// In streaming memory, several micro-batches as in a stash.
    RemoteStash,
    /// On the host: every read brings the next micro-batch.
    Host,
}

impl DataPlace {
    /// Every place.
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

    /// The place of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.name() == name)
    }
}

/// A tensor in one place: what steps read and write as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBuffer {
    /// The tensor.
    pub name: String,
    pub place: DataPlace,
    /// The IPU whose steps read and write it.
    pub ipu: IpuId,
    /// How many micro-batches a stash holds; 1 elsewhere.
    pub entries: u64,
    /// Whether its data are of no micro-batch: weights, optimiser state, accumulators.
    pub persistent: bool,
    /// Whether it has data before the run.
    pub filled: bool,
}

/// What a step does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataAccessKind {
    Read,
    Write,
    /// Reads for a copy between stages, which is made whether or not there are data yet.
    Send,
    /// Writes what the copy brings, if there are data yet.
    Receive,
    /// Gives the memory to others: the data are gone.
    Free,
}

impl DataAccessKind {
    /// Every kind.
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

    /// The kind of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One access of a program to a buffer, each time that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// The operation or copy it belongs to: what this writes is made of what it reads.
    pub flow: DataFlowId,
    pub program: ProgramId,
    pub buffer: DataBufferId,
    pub kind: DataAccessKind,
}

/// Everything that the programs of a report read and write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataFlows {
    /// [`DataBufferId`] counts into this.
    pub buffers: Vec<DataBuffer>,
    /// Flow by flow, in the order of the program.
    pub accesses: Vec<DataAccess>,
}
