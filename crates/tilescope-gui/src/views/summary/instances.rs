//! The picture of hosts, their processes and the replicas that each process serves.

use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use egui::{CornerRadius, Frame, Margin, RichText, Stroke, Ui, Vec2};
use std::ops::Range;
use tilescope_analysis::replicas::ReplicaOverview;
use tilescope_report::units::grouped;

/// The largest number of processes in the picture.
const MOST_INSTANCES: u32 = 12;
/// The width of the box of a process.
const INSTANCE: f32 = 112.0;
/// The margin of a box at the left and right.
const MARGIN: f32 = 8.0;

/// A process of a host, and the replicas that it serves.
#[derive(Debug, PartialEq)]
struct HostInstance {
    host: u32,
    number: u32,
    replicas: Range<u32>,
}

/// The processes of all hosts, in order; `None` if they cannot have equal parts.
fn instances(replicas: u32, instances: u32, hosts: u32) -> Option<Vec<HostInstance>> {
    let each = replicas.checked_div(instances).filter(|each| each * instances == replicas)?;
    let per_host = instances.checked_div(hosts).filter(|of| *of > 0 && of * hosts == instances)?;
    let mut all = Vec::new();
    for number in 0..instances {
        let replicas = number * each..(number + 1) * each;
        all.push(HostInstance { host: number / per_host, number, replicas });
    }
    Some(all)
}

/// Shows the picture, if the report states the processes.
pub(super) fn instances_ui(ui: &mut Ui, of: &ReplicaOverview) {
    let Some(count) = of.instances else { return };
    let Some(all) = instances(of.target.replicas, count, of.hosts) else { return };
    let shown = &all[..all.len().min(MOST_INSTANCES as usize)];
    for host in shown.chunk_by(|a, b| a.host == b.host) {
        let Some(first) = host.first() else { continue };
        box_ui(ui, |ui| {
            ui.vertical(|ui| {
                ui.spacing_mut().item_spacing = Vec2::splat(spacing::XS);
                ui.label(strong(format!("Host {}", first.host)).size(text_size::SMALL));
                let across = (ui.available_width() / (INSTANCE + spacing::XS)) as usize;
                for row in host.chunks(across.max(1)) {
                    ui.horizontal(|ui| {
                        row.iter().for_each(|instance| box_ui(ui, |ui| instance_ui(ui, instance)));
                    });
                }
            });
        });
        ui.add_space(spacing::XS);
    }
    let more = all.len() - shown.len();
    if more > 0 {
        ui.weak(format!("{} more instances", grouped(more as u64)));
    }
    ui.add_space(spacing::S);
}

fn instance_ui(ui: &mut Ui, instance: &HostInstance) {
    let Range { start, end } = instance.replicas;
    let replicas = match end - start {
        1 => format!("replica {start}"),
        _ => format!("replicas {start} - {}", end - 1),
    };
    ui.vertical(|ui| {
        ui.set_width(INSTANCE - 2.0 * MARGIN);
        ui.label(RichText::new(format!("Instance {}", instance.number)).size(text_size::SMALL));
        ui.label(RichText::new(replicas).weak().size(text_size::SMALL));
    });
}

fn box_ui(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new()
        .fill(palette.raised)
        .stroke(Stroke::new(1.0, palette.outline))
        .corner_radius(CornerRadius::same(4))
        .inner_margin(Margin::symmetric(MARGIN as i8, 5));
    frame.show(ui, contents);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_divided_among_processes_and_hosts() {
        let all = instances(8, 4, 2).unwrap();
        let parts: Vec<_> = all.iter().map(|of| (of.host, of.replicas.clone())).collect();
        assert_eq!(parts, [(0, 0..2), (0, 2..4), (1, 4..6), (1, 6..8)]);
        assert_eq!(instances(6, 4, 1), None);
        assert_eq!(instances(4, 2, 4), None);
        assert_eq!(instances(4, 0, 1), None);
    }
}
