//! Tables of the host.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::host::{HostSummary, bottleneck_title, part_title, source_title};
use tilescope_report::units::Cycles;

/// Rates of the loader alone, of synthetic data and of real data.
pub fn rates(host: Option<&HostSummary>) -> DataTable {
    let columns = vec![
        TableColumn::text("Samples from"),
        TableColumn::number("Samples per second").about("Of all replicas"),
        TableColumn::text("Held back by").about("What is busy longest during a call"),
    ];
    let rows = host.into_iter().flat_map(|host| &host.rates).map(|of| {
        vec![
            source_title(of.rate.source).into(),
            TableCell::Real(of.samples_per_second),
            bottleneck_title(of.rate.bottleneck).into(),
        ]
    });
    DataTable::new(columns, rows.collect())
}

/// What a call is made of.
pub fn call(host: Option<&HostSummary>) -> DataTable {
    let columns = vec![
        TableColumn::text("Part of a call"),
        TableColumn::number("Seconds"),
        TableColumn::number("Share").about("Seconds / seconds of the call"),
    ];
    let rows = host.into_iter().flat_map(|host| &host.call).map(|of| {
        vec![part_title(of.kind).into(), TableCell::Real(of.seconds), TableCell::Share(of.share)]
    });
    DataTable::new(columns, rows.collect())
}

/// What a call of one instance takes and returns.
pub fn tensors(host: Option<&HostSummary>) -> DataTable {
    let columns = vec![
        TableColumn::text("Tensor"),
        TableColumn::short("Direction"),
        TableColumn::text("Shape").about("Of one call of one instance: all its micro-batches"),
        TableColumn::bytes("Bytes"),
    ];
    let rows = host.into_iter().flat_map(|host| &host.tensors).map(|tensor| {
        vec![
            tensor.name.as_str().into(),
            tensor.direction.into(),
            tensor.shape.as_str().into(),
            TableCell::Bytes(tensor.bytes),
        ]
    });
    DataTable::new(columns, rows.collect())
}

/// Epochs: the first one, and those that follow.
pub fn epochs(host: Option<&HostSummary>) -> DataTable {
    let columns = vec![
        TableColumn::number("Epochs"),
        TableColumn::number("Steps").about("Host calls of one epoch"),
        TableColumn::number("Samples"),
        TableColumn::number("Left out").about("Samples that do not fill a call"),
        TableColumn::number("Seconds"),
        TableColumn::number("Samples per second"),
    ];
    let rows = host.into_iter().flat_map(|host| &host.epochs).map(|epoch| {
        vec![
            TableCell::Count(epoch.epochs),
            TableCell::Count(epoch.calls),
            TableCell::Count(epoch.samples),
            TableCell::Count(epoch.left_out),
            TableCell::Real(epoch.seconds),
            TableCell::Real(epoch.samples_per_second),
        ]
    });
    DataTable::new(columns, rows.collect())
}

/// What the replicas wait for, where they are not alike.
pub fn replica_waits(host: Option<&HostSummary>) -> DataTable {
    let columns = vec![
        TableColumn::text("Replicas"),
        TableColumn::number("Instance").about("Host process that they are of"),
        TableColumn::number("Loader").about("Cycles until it has the samples of the call"),
        TableColumn::number("Host")
            .about("Cycles until their own buffers are ready, on all IPUs of a replica"),
        TableColumn::number("Other replicas")
            .about("Cycles for replicas that come later, on all IPUs of a replica"),
        TableColumn::number("Least behind").about("Cycles behind the first, where all meet"),
        TableColumn::number("Most behind").about("Cycles behind the first, where all meet"),
    ];
    let cycles = |cycles: Cycles| TableCell::Count(cycles.0);
    let rows = host.into_iter().flat_map(|host| &host.replicas).map(|of| {
        vec![
            TableCell::from(of.title().as_str()),
            TableCell::Count(of.instance.into()),
            cycles(of.loader_cycles),
            cycles(of.host_cycles),
            cycles(of.others_cycles),
            cycles(of.behind_least),
            cycles(of.behind_most),
        ]
    });
    DataTable::new(columns, rows.collect())
}
