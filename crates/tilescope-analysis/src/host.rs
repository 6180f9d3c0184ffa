//! The host beside the IPUs: rates of the loader alone, of synthetic data and of real data, the
//! parts of a call, and its inputs and outputs.

use serde::Serialize;
use tilescope_report::units::{Bytes, Cycles, grouped};
use tilescope_report::{
    HostBottleneck, HostCallPart, HostDataSource, HostRate, HostReport, ReplicaWait, Report,
    ReportError,
};

/// The host part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostSummary {
    /// The bottleneck of the run; `None` if it has no rate.
    pub bottleneck: Option<&'static str>,
    /// The loader alone, synthetic data and real data, as available.
    pub throughput: Vec<HostRateSummary>,
    /// The parts of a call, in order.
    pub call: Vec<HostCallPartSummary>,
    /// Inputs and outputs of a call of one instance.
    pub tensors: Vec<HostTensorSummary>,
    /// The first epoch, then the later ones.
    pub epochs: Vec<HostEpochSummary>,
    /// The waits of replicas; empty if all are equal.
    pub replicas: Vec<ReplicaWaitSummary>,
}

/// The waits of each of several consecutive replicas in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaWaitSummary {
    /// The first of these replicas, counted over all instances.
    pub first_replica: u32,
    pub replicas: u32,
    /// Host process of the replicas.
    pub instance: u32,
    /// Cycles until the loader has prepared the samples of the call.
    pub loader_cycles: Cycles,
    /// Cycles until the host has prepared their own buffers, on all IPUs of a replica.
    pub host_cycles: Cycles,
    /// Cycles of waiting for later replicas, on all IPUs of a replica.
    pub others_cycles: Cycles,
    /// The least and most cycles by which they arrive after the first replica at common syncs.
    pub behind_least: Cycles,
    pub behind_most: Cycles,
}

impl ReplicaWaitSummary {
    fn new(wait: &ReplicaWait) -> Self {
        Self {
            first_replica: wait.first_replica,
            replicas: wait.replicas,
            instance: wait.instance,
            loader_cycles: wait.loader,
            host_cycles: wait.host,
            others_cycles: wait.others,
            behind_least: wait.behind.start,
            behind_most: wait.behind.end,
        }
    }

    /// `Replica 4`, `Replicas 4 - 7`
    pub fn title(&self) -> String {
        match self.replicas {
            0 | 1 => format!("Replica {}", self.first_replica),
            count => {
                let last = self.first_replica.saturating_add(count - 1);
                format!("Replicas {} - {last}", self.first_replica)
            }
        }
    }

    /// `loader 1,200 cycles, host 0, other replicas 3,400; up to 500 behind the first`
    pub fn words(&self) -> String {
        format!(
            "loader {} cycles, host {}, other replicas {}; up to {} behind the first",
            grouped(self.loader_cycles.0),
            grouped(self.host_cycles.0),
            grouped(self.others_cycles.0),
            grouped(self.behind_most.0)
        )
    }
}

/// The replicas that hold up the others, after the word `last`.
pub fn held_up(replicas: &[ReplicaWaitSummary]) -> Option<String> {
    Some(format!("last: {}", last_replicas(replicas)?))
}

/// The replicas that hold up the others: those that wait least for others, if any wait at all.
pub fn last_replicas(replicas: &[ReplicaWaitSummary]) -> Option<String> {
    let slowest = replicas.iter().min_by_key(|of| of.others_cycles)?;
    let most = replicas.iter().max_by_key(|of| of.others_cycles)?;
    if slowest.others_cycles == most.others_cycles {
        return None;
    }
    Some(format!(
        "{} (instance {}); longest wait for others: {} (instance {}), {} cycles",
        slowest.title(),
        slowest.instance,
        most.title(),
        most.instance,
        grouped(most.others_cycles.0)
    ))
}

/// Samples per second of all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostRateSummary {
    /// `loader_alone`, `synthetic_data` or `real_data`.
    pub source: &'static str,
    pub samples_per_second: f64,
    /// `loader`, `host_link`, `callbacks`, `host_call` or `ipu`.
    pub bottleneck: &'static str,
    #[serde(skip)]
    pub rate: HostRate,
}

/// A part of a host call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostCallPartSummary {
    /// `loader`, `framework`, `launch`, `handshake`, `program` or `return`.
    pub part: &'static str,
    pub seconds: f64,
    /// Share of the call.
    pub share: f64,
    #[serde(skip)]
    pub kind: HostCallPart,
}

/// An input or output of one call of one instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostTensorSummary {
    pub name: String,
    /// `input` or `output`.
    pub direction: &'static str,
    /// The element type with the shape: `float32[800, 1, 128, 128]`.
    pub shape: String,
    pub bytes: Bytes,
}

/// Epochs with equal figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostEpochSummary {
    /// Number of these epochs.
    pub epochs: u64,
    /// Host calls, or steps, of one epoch.
    pub calls: u64,
    pub samples: u64,
    /// Samples of the data set that remain after the last full call.
    pub left_out: u64,
    pub seconds: f64,
    pub samples_per_second: f64,
}

/// Reads the host part of a report; `None` if it was not recorded, as in files of other tools and
/// for programs without samples.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn host(report: &Report) -> Result<Option<HostSummary>, ReportError> {
    Ok(report.host()?.map(|host| of_report(&host)))
}

fn of_report(host: &HostReport) -> HostSummary {
    let real = host.rates.iter().find(|rate| rate.source == HostDataSource::RealData);
    let running = real.or(host.rates.last());
    let whole: f64 = host.call.iter().map(|time| time.seconds).sum();
    let throughput = host.rates.iter().map(|rate| HostRateSummary {
        source: rate.source.name(),
        samples_per_second: rate.samples_per_second,
        bottleneck: rate.bottleneck.name(),
        rate: *rate,
    });
    let call = host.call.iter().map(|time| HostCallPartSummary {
        part: time.part.name(),
        seconds: time.seconds,
        share: time.seconds / whole.max(f64::MIN_POSITIVE),
        kind: time.part,
    });
    let tensors = host.tensors.iter().map(|tensor| HostTensorSummary {
        name: tensor.name.clone(),
        direction: if tensor.is_input { "input" } else { "output" },
        shape: format!("{}{:?}", tensor.element_type, tensor.shape),
        bytes: tensor.bytes,
    });
    let epochs = host.epochs.iter().map(|epoch| HostEpochSummary {
        epochs: epoch.epochs,
        calls: epoch.calls,
        samples: epoch.samples,
        left_out: epoch.left_out,
        seconds: epoch.seconds,
        samples_per_second: epoch.samples as f64 / epoch.seconds.max(f64::MIN_POSITIVE),
    });
    HostSummary {
        bottleneck: running.map(|rate| rate.bottleneck.name()),
        throughput: throughput.collect(),
        call: call.collect(),
        tensors: tensors.collect(),
        epochs: epochs.collect(),
        replicas: host.replicas.iter().map(ReplicaWaitSummary::new).collect(),
    }
}

/// The title of a source of samples.
pub fn source_title(source: HostDataSource) -> &'static str {
    match source {
        HostDataSource::LoaderAlone => "Loader alone",
        HostDataSource::SyntheticData => "Synthetic data",
        HostDataSource::RealData => "Real data",
    }
}

/// The title of a bottleneck.
pub fn bottleneck_title(bottleneck: HostBottleneck) -> &'static str {
    match bottleneck {
        HostBottleneck::Loader => "the loader",
        HostBottleneck::HostLink => "the host's links",
        HostBottleneck::Callbacks => "stream callbacks",
        HostBottleneck::HostCall => "the framework around each call",
        HostBottleneck::HostCopies => "host copies that IPUs wait for",
        HostBottleneck::Ipu => "the IPUs",
    }
}

/// The title of a part of a host call.
pub fn part_title(part: HostCallPart) -> &'static str {
    match part {
        HostCallPart::Loader => "Wait for the loader",
        HostCallPart::Framework => "Framework before the launch",
        HostCallPart::Launch => "Launch",
        HostCallPart::Handshake => "Handshake",
        HostCallPart::Program => "Program",
        HostCallPart::Results => "Return of results",
    }
}
