//! Tables of the host: rates, calls, inputs and outputs, epochs and waits.

use crate::data_table::{DataTable, TableCell};
use crate::host::{HostSummary, bottleneck_title, part_title, source_title};
use crate::table;

const BEHIND: &str = "Cycles after the first replica at the next common sync";

/// Rates of the loader alone, of synthetic data and of real data.
pub fn rates(host: Option<&HostSummary>) -> DataTable {
    table! { host.into_iter().flat_map(|host| &host.throughput), |of|
        text "Samples from" => source_title(of.rate.source);
        number "Samples per second" => TableCell::Real(of.samples_per_second), "Of all replicas";
        text "Limited by" => bottleneck_title(of.rate.bottleneck), "The resource that is busy \
        longest during a call";
    }
}

/// The parts of a call.
pub fn call(host: Option<&HostSummary>) -> DataTable {
    table! { host.into_iter().flat_map(|host| &host.call), |of|
        text "Part of a call" => part_title(of.kind);
        number "Seconds" => TableCell::Seconds(of.seconds);
        share "Share" => of.share, "Seconds / seconds of the call";
    }
}

/// Inputs and outputs of a call of one instance.
pub fn tensors(host: Option<&HostSummary>) -> DataTable {
    table! { host.into_iter().flat_map(|host| &host.tensors), |tensor|
        text "Tensor" => &tensor.name;
        short "Direction" => tensor.direction;
        text "Shape" => &tensor.shape, "Of one call of one instance: all its micro-batches";
        bytes "Bytes" => tensor.bytes;
    }
}

/// Epochs: the first one, and the later ones.
pub fn epochs(host: Option<&HostSummary>) -> DataTable {
    table! { host.into_iter().flat_map(|host| &host.epochs), |epoch|
        number "Epochs" => epoch.epochs;
        number "Steps" => epoch.calls, "Host calls of one epoch";
        number "Samples" => epoch.samples;
        number "Left out" => epoch.left_out, "Samples that do not fill a call";
        number "Seconds" => TableCell::Seconds(epoch.seconds);
        number "Samples per second" => TableCell::Real(epoch.samples_per_second);
    }
}

/// The waits of replicas, if they differ.
pub fn replica_waits(host: Option<&HostSummary>) -> DataTable {
    table! { host.into_iter().flat_map(|host| &host.replicas), |of|
        text "Replicas" => of.title();
        number "Instance" => u64::from(of.instance), "Host process of these replicas";
        cycles "Loader" => of.loader_cycles, "Cycles until the loader has the samples of the call";
        cycles "Host" => of.host_cycles,
            "Cycles until their own buffers are ready, on all IPUs of a replica";
        cycles "Other replicas" => of.others_cycles,
            "Cycles of waits for later replicas, on all IPUs of a replica";
        cycles "Least behind" => of.behind_least, BEHIND;
        cycles "Most behind" => of.behind_most, BEHIND;
    }
}
