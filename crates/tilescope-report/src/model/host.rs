//! What the host does for a run: how long a call takes it, and how fast its parts alone would be.

use crate::units::{Bytes, CycleRange, Cycles};

/// A part of a host call, in the order in which they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostCallPart {
    /// The loader gets the samples ready, as far as the IPUs wait for it.
    Loader,
    /// The framework checks and lays out what it was given.
    Framework,
    /// The program is launched.
    Launch,
    /// Host and IPUs agree on the program to run.
    Handshake,
    /// The program runs.
    Program,
    /// Results are handed back.
    Results,
}

impl HostCallPart {
    /// Every part, in order.
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

    /// The part of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Seconds of a host call that one of its parts takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCallTime {
    pub part: HostCallPart,
    pub seconds: f64,
}

/// Where samples come from when a rate is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostDataSource {
    /// The loader works without any IPU.
    LoaderAlone,
    /// The IPUs make the samples: nothing is copied from or to the host.
    SyntheticData,
    /// The run of the report.
    RealData,
}

impl HostDataSource {
    /// Every source.
    pub const ALL: [HostDataSource; 3] = [Self::LoaderAlone, Self::SyntheticData, Self::RealData];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoaderAlone => "loader_alone",
            Self::SyntheticData => "synthetic_data",
            Self::RealData => "real_data",
        }
    }

    /// The source of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// What is busy longest during a call, and so the first that would have to become faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostBottleneck {
    /// The loader of an instance.
    Loader,
    /// The links of a host, or those between host and one IPU.
    HostLink,
    /// The stream callbacks of an instance.
    Callbacks,
    /// What the framework does before and after the run.
    HostCall,
    /// Copies from and to the host that the IPUs stand still for, though no part of the host is busy
    /// all the time.
    HostCopies,
    /// The IPUs.
    Ipu,
}

impl HostBottleneck {
    /// Every bottleneck.
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

    /// The bottleneck of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bottleneck| bottleneck.name() == name)
    }
}

/// Samples per second of all replicas, and what holds them back.
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
    /// Whether the call takes it; else it returns it.
    pub is_input: bool,
    /// Element type on the way: `float16`.
    pub element_type: String,
    /// Sizes of its dimensions, those of all micro-batches and replicas of the instance in the
    /// first.
    pub shape: Vec<u64>,
    pub bytes: Bytes,
}

/// An epoch: one way through the data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostEpoch {
    /// How many epochs are like this one.
    pub epochs: u64,
    /// Host calls of one of them: its steps.
    pub calls: u64,
    /// Samples of the data set that it works on.
    pub samples: u64,
    /// Samples that it leaves out.
    pub left_out: u64,
    pub seconds: f64,
}

/// What replicas that follow each other in an instance wait for in a run, each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaWait {
    /// The first of them, counted over all instances.
    pub first_replica: u32,
    /// How many they are.
    pub replicas: u32,
    /// Host process that they are of.
    pub instance: u32,
    /// Cycles until the loader has the samples of the call.
    pub loader: Cycles,
    /// Cycles until the host has their own buffers ready, beyond the handshake, on all IPUs of the
    /// replica together.
    pub host: Cycles,
    /// Cycles that they wait for replicas that come later, on all IPUs of the replica together.
    pub others: Cycles,
    /// Least and most cycles that they come behind the first of all, where replicas meet.
    pub behind: CycleRange,
}

/// What the host does for a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReport {
    /// Rates of the parts and of all together.
    pub rates: Vec<HostRate>,
    /// What a call is made of; its seconds add up to those of the run.
    pub call: Vec<HostCallTime>,
    /// What a call takes and returns, per instance.
    pub tensors: Vec<HostTensor>,
    /// The first epoch, then those that follow; empty where the data set is not known.
    pub epochs: Vec<HostEpoch>,
    /// What the replicas wait for, in their order; empty where all are alike.
    pub replicas: Vec<ReplicaWait>,
}
