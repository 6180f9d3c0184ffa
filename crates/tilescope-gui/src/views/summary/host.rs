//! The host in the summary: the loader alone, synthetic data and real data side by side, the parts
//! of a call, and its inputs and outputs.

use super::{SummaryFactRow, SummaryPageData, derived, row, rows_ui};
use crate::theme::{numbers, spacing};
use egui::Ui;
use tilescope_analysis::host::{
    HostSummary, ReplicaWaitSummary, bottleneck_title, held_up, part_title, source_title,
};
use tilescope_report::units::{grouped, percent, seconds};

/// The reason for an empty panel.
const ABSENT: &str = "Host activity is not recorded: the report comes from another tool or an \
                      earlier version, the program did not run, or it has no samples.";

pub(super) fn host_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let Some(host) = &facts.summary.host else {
        ui.weak(ABSENT);
        return;
    };
    let numbers = numbers(ui);
    let tensors = host.tensors.iter().map(|tensor| {
        let value = format!("{}, {}", tensor.shape, numbers.bytes(tensor.bytes.0));
        let formula = "micro-batches of all replicas of an instance, in sequence";
        derived(&format!("{} {}", tensor.direction, tensor.name), value, formula)
    });
    let parts = [
        ("Samples per second", rates(host)),
        ("One call", call(host)),
        ("The data set", epochs(host)),
        ("Waits of the replicas", replicas(host)),
        ("Input and output of a call of one instance", tensors.collect()),
    ];
    for (title, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
        ui.weak(*title);
        rows_ui(ui, title, rows);
        ui.add_space(spacing::XS);
    }
}

fn rates(host: &HostSummary) -> Vec<SummaryFactRow> {
    let rate = |of: &tilescope_analysis::host::HostRateSummary| {
        let rate = grouped(of.samples_per_second.round() as u64);
        let limit = bottleneck_title(of.rate.bottleneck);
        let value = format!("{rate}, limited by {limit}");
        derived(source_title(of.rate.source), value, "samples of a call / seconds of the call")
    };
    host.throughput.iter().map(rate).collect()
}

fn call(host: &HostSummary) -> Vec<SummaryFactRow> {
    let parts = host.call.iter().map(|of| {
        let value = format!("{}, {} of the call", seconds(of.seconds), percent(of.share));
        row(part_title(of.kind), value)
    });
    parts.collect()
}

fn replicas(host: &HostSummary) -> Vec<SummaryFactRow> {
    let formula = "cycles of the run; those for host and other replicas on all IPUs of a replica";
    let waits = joined(&host.replicas);
    let waits = waits.iter().map(|of| derived(&of.title(), of.words(), formula));
    let who = held_up(&host.replicas).map(|who| row("Limited by", who));
    waits.chain(who).collect()
}

/// The waits with consecutive replicas on one line if they wait alike.
fn joined(waits: &[ReplicaWaitSummary]) -> Vec<ReplicaWaitSummary> {
    let mut joined: Vec<ReplicaWaitSummary> = Vec::new();
    for wait in waits {
        match joined.last_mut() {
            Some(last)
                if last.words() == wait.words()
                    && last.first_replica + last.replicas == wait.first_replica =>
            {
                last.replicas += wait.replicas;
            }
            _ => joined.push(*wait),
        }
    }
    joined
}

fn epochs(host: &HostSummary) -> Vec<SummaryFactRow> {
    let mut rows = Vec::new();
    for (at, epoch) in host.epochs.iter().enumerate() {
        if at == 0 {
            rows.push(row("Steps per epoch", grouped(epoch.calls)));
            rows.push(row("Samples of an epoch", grouped(epoch.samples)));
            rows.push(row("Samples left out", grouped(epoch.left_out)));
        }
        let name = if at == 0 { "First epoch" } else { "Each later epoch" };
        let rate = grouped(epoch.samples_per_second.round() as u64);
        let value = format!("{}, {rate} samples per second", seconds(epoch.seconds));
        rows.push(derived(name, value, "start of the loader + steps x seconds of a call"));
    }
    rows
}
