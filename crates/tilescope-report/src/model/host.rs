//! The host's part of a run: the time it takes for a call, and the rates of its parts alone.

use crate::units::{Bytes, CycleRange, Cycles};

/// A part of a host call, in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostCallPart {
    /// The loader prepares the samples, as far as the IPUs wait for it.
    Loader,
    /// The framework checks its inputs and lays them out.
    Framework,
    /// The program is launched.
    Launch,
    /// Host and IPUs agree on the next program.
    Handshake,
    /// The program runs.
    Program,
    /// Results are returned.
    Results,
}

impl HostCallPart {
    /// All parts, in order.
    pub const ALL: [HostCallPart; 6] = [
        Self::Loader,
        Self::Framework,
        Self::Launch,
        Self::Handshake,
        Self::Program,
        Self::Results,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loader => "loader",
            Self::Framework => "framework",
            Self::Launch => "launch",
            Self::Handshake => "handshake",
            Self::Program => "program",
            Self::Results => "return",
        }
    }

    /// Name of the sync in which the IPUs wait for this part.
    pub fn sync_name(self) -> String {
        format!("hostCall/{}", self.name())
    }

    /// The part that IPUs wait for in a sync of this name.
    pub fn of_sync(name: &str) -> Option<Self> {
        name.strip_prefix("hostCall/").and_then(Self::from_name)
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Seconds of a host call spent in one of its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCallTime {
    pub part: HostCallPart,
    pub seconds: f64,
}

/// The source of the samples while a rate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostDataSource {
    /// The loader works without any IPU.
    LoaderAlone,
    /// The IPUs generate the samples: no data are copied from or to the host.
    SyntheticData,
    /// The samples of the reported run.
    RealData,
}

impl HostDataSource {
    /// All sources.
    pub const ALL: [HostDataSource; 3] = [Self::LoaderAlone, Self::SyntheticData, Self::RealData];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoaderAlone => "loader_alone",
            Self::SyntheticData => "synthetic_data",
            Self::RealData => "real_data",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// The resource that is busy longest during a call, and so limits the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostBottleneck {
    /// The loader of an instance.
    Loader,
    /// The links of a host, or those between host and one IPU.
    HostLink,
    /// The stream callbacks of an instance.
    Callbacks,
    /// The framework's work before and after the run.
    HostCall,
    /// Copies from and to the host that stall the IPUs although no part of the host is busy all the
    /// time.
    HostCopies,
    /// The IPUs.
    Ipu,
}

impl HostBottleneck {
    /// All bottlenecks.
    pub const ALL: [HostBottleneck; 6] = [
        Self::Loader,
        Self::HostLink,
        Self::Callbacks,
        Self::HostCall,
        Self::HostCopies,
        Self::Ipu,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loader => "loader",
            Self::HostLink => "host_link",
            Self::Callbacks => "callbacks",
            Self::HostCall => "host_call",
            Self::HostCopies => "host_copies",
            Self::Ipu => "ipu",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bottleneck| bottleneck.name() == name)
    }
}

/// Samples per second of all replicas, and the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostRate {
    pub source: HostDataSource,
    pub samples_per_second: f64,
    pub bottleneck: HostBottleneck,
}

/// A tensor that one call of one instance takes or returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    pub name: String,
    /// True if the call takes it, false if the call returns it.
    pub is_input: bool,
    /// Element type during the transfer: `float16`.
    pub element_type: String,
    /// Sizes of its dimensions; the first one covers all micro-batches and replicas of the
    /// instance.
    pub shape: Vec<u64>,
    pub bytes: Bytes,
}

/// An epoch: one pass over the data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostEpoch {
    /// Number of epochs like this one.
    pub epochs: u64,
    /// Number of host calls in one of them: its steps.
    pub calls: u64,
    /// Number of samples of the data set that it processes.
    pub samples: u64,
    /// Number of samples that it leaves out.
    pub left_out: u64,
    pub seconds: f64,
}

/// The cycles that consecutive replicas of an instance each wait in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaWait {
    /// The first of these replicas, counted over all instances.
    pub first_replica: u32,
    /// Number of these replicas.
    pub replicas: u32,
    /// The host process that they belong to.
    pub instance: u32,
    /// Cycles until the loader has the samples of the call.
    pub loader: Cycles,
    /// Cycles until the host has their own buffers ready, beyond the handshake, summed over all
    /// IPUs of the replica.
    pub host: Cycles,
    /// Cycles that they wait for later replicas, summed over all IPUs of the replica.
    pub others: Cycles,
    /// Least and most cycles by which they arrive after the first replica at the points where
    /// replicas meet.
    pub behind: CycleRange,
}

/// The host's part of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReport {
    /// Rates of the parts and of all together.
    pub rates: Vec<HostRate>,
    /// The parts of a call; their seconds add up to those of the run.
    pub call: Vec<HostCallTime>,
    /// Inputs and outputs of a call, per instance.
    pub tensors: Vec<HostTensor>,
    /// The first epoch, then the following ones; empty if the data set is not known.
    pub epochs: Vec<HostEpoch>,
    /// Waits of the replicas, in their order; empty if all are alike.
    pub replicas: Vec<ReplicaWait>,
}
