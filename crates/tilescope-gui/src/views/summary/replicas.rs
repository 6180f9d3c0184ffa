//! The picture of the replicas: the data that they exchange, and the IPUs of each that wait for
//! each other.

use super::instances::instances_ui;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CornerRadius, FontId, Label, Painter, Pos2, Rect, RichText, Sense, Shape,
    Stroke, StrokeKind, Ui, pos2, vec2,
};
use tilescope_analysis::host::last_replicas;
use tilescope_analysis::replica_classes::sentence;
use tilescope_analysis::replica_rings::{passed_on_words, ring_words};
use tilescope_analysis::replicas::{ReplicaOverview, gs2_rows};
use tilescope_report::units::{IpuId, grouped};
use tilescope_report::{ReplicaRing, RingOrder, SyncGroupMembers, Target};

/// The size of a replica's box.
const REPLICA: (f32, f32) = (92.0, 40.0);
/// The gap for an arrow between two boxes.
const ARROW: f32 = 30.0;
/// The largest and smallest width of an IPU above its groups.
const IPU: (f32, f32) = (34.0, 3.0);
/// The width from which an IPU shows its number.
const NUMBERED: f32 = 15.0;
/// The height of an IPU, and of a row of groups.
const ROW: f32 = 20.0;
/// The width of the names of groups.
const NAMES: f32 = 44.0;

/// Shows the picture and its description.
pub(super) fn replicas_ui(ui: &mut Ui, of: &ReplicaOverview) {
    let weak = |ui: &mut Ui, text: String| {
        ui.add(Label::new(RichText::new(text).weak()).wrap());
    };
    if of.target.replicas > 1 {
        weak(ui, alike(of));
        instances_ui(ui, of);
        boxes_ui(ui, of);
        for line in collective_lines(ui, of).into_iter().chain(ring_lines(ui, of)) {
            weak(ui, line);
        }
        ui.add_space(spacing::M);
    }
    match &of.groups {
        Some(groups) => {
            let text = "IPUs on one line wait for one another: IPUs of GS1 at copies between \
                        IPUs, IPUs of a part of GS2 at copies from and to the host or streaming memory.";
            weak(ui, text.to_owned());
            if of.target.replicas > 1 {
                weak(ui, joined_words(groups).to_owned());
            }
            ui.add_space(spacing::XS);
            groups_ui(ui, of, groups);
        }
        None if of.target.ipus_per_replica > 1 => {
            weak(ui, "The report does not record sync groups.".to_owned());
        }
        None if of.collectives.is_empty() => {
            weak(ui, "Each replica has one IPU, which waits for no other IPU.".to_owned());
        }
        None => weak(ui, "Copies between replicas join all of them.".to_owned()),
    }
}

/// The description of how the IPUs of all replicas wait for each other before an exchange.
fn joined_words(groups: &SyncGroupMembers) -> &'static str {
    if joins_sides(groups) {
        "Copies between replicas join one side of the ladder, in all replicas."
    } else {
        "Copies between replicas join GS1 of all replicas."
    }
}

/// Returns true for the two sides of a ladder, which copies between replicas join separately.
fn joins_sides(groups: &SyncGroupMembers) -> bool {
    groups.gs2.len() == 2 && groups.gs2.iter().any(|part| part.len() > 1)
}

/// `4 identical replicas. Figures and lanes show one of them.`
fn alike(of: &ReplicaOverview) -> String {
    let replicas = grouped(of.target.replicas.into());
    let last = match last_replicas(&of.waits) {
        Some(last) => format!(" Last: {last}."),
        None => String::new(),
    };
    if let Some(differ) = sentence(&of.classes) {
        return format!(
            "{differ}. The execution trace has lanes for each class; other figures are those of \
             replica 0.{last}"
        );
    }
    if !of.waits.is_empty() {
        return format!("{replicas} replicas with different waits. Lanes show replica 0.{last}");
    }
    let identical = if of.alike { " identical" } else { "" };
    format!("{replicas}{identical} replicas. Figures and lanes show one of them.")
}

fn collective_lines(ui: &Ui, of: &ReplicaOverview) -> Vec<String> {
    if of.collectives.is_empty() {
        return vec!["The report records no exchange between replicas.".to_owned()];
    }
    let numbers = numbers(ui);
    let line = |kind: &tilescope_analysis::replicas::CollectiveTotals| {
        let programs = grouped(kind.programs);
        let runs = grouped(kind.executions);
        let bytes = numbers.bytes(kind.bytes.0);
        format!(
            "{}: {programs} programs, {runs} executions on the IPUs of a replica, {bytes} received \
             and sent",
            kind.kind
        )
    };
    of.collectives.iter().map(line).collect()
}

/// Describes the path of the data around the ring, and the amounts that pass through the replicas.
fn ring_lines(ui: &Ui, of: &ReplicaOverview) -> Vec<String> {
    let numbers = numbers(ui);
    let ring = |ring: &ReplicaRing| format!("Data travels {}.", ring_words(ring, &of.target));
    let mut lines: Vec<String> = of.rings.iter().map(ring).collect();
    lines.dedup();
    lines.extend(passed_on_words(&of.links, |bytes| numbers.bytes(bytes)));
    lines
}

/// The replicas side by side, as many as fit.
fn boxes_ui(ui: &mut Ui, of: &ReplicaOverview) {
    let (width, height) = REPLICA;
    let fit = ((ui.available_width() + ARROW) / (width + ARROW)).max(2.0) as u32;
    let all = of.target.replicas;
    let places = places(all, fit);
    let arch = if of.collectives.is_empty() { 0.0 } else { 16.0 };
    let goes_down =
        of.rings.first().is_some_and(|ring| ring.order == RingOrder::Interleaved && ring.ranks > 3);
    let below = if goes_down { 16.0 } else { 0.0 };
    let total = places.len() as f32 * (width + ARROW) - ARROW;
    let size = vec2(total, height + arch + below + spacing::S);
    let (area, _) = ui.allocate_exact_size(size, Sense::hover());
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(area.expand(2.0));
    let mut centres = Vec::new();
    for (at, replica) in places.iter().enumerate() {
        let left = area.left() + at as f32 * (width + ARROW);
        let rect = Rect::from_min_size(pos2(left, area.top() + arch), vec2(width, height));
        centres.push(rect);
        let Some(replica) = replica else {
            let text = more((all + 1).saturating_sub(fit));
            words(&painter, rect.center(), &text, palette.weak_text);
            continue;
        };
        let corner = CornerRadius::same(4);
        painter.rect(
            rect,
            corner,
            palette.lane,
            Stroke::new(1.0, palette.outline),
            StrokeKind::Inside,
        );
        let name = format!("Replica {replica}");
        words(&painter, rect.center() - vec2(0.0, 8.0), &name, palette.text);
        let waits = of.waits.iter().rfind(|waits| waits.first_replica <= *replica);
        let ipus = match waits {
            Some(waits) => format!("+{} cycles", grouped(waits.behind_most.0)),
            None => ipus_of(&of.target, *replica),
        };
        words(&painter, rect.center() + vec2(0.0, 9.0), &ipus, palette.weak_text);
        let node = ui.scope_id().with(("replica", *replica));
        node_ui(ui, node, rect, Role::Cell, || (name, ipus));
    }
    if !of.collectives.is_empty() {
        let boxes: Vec<(u32, Rect)> =
            places.iter().zip(&centres).filter_map(|(at, rect)| Some(((*at)?, *rect))).collect();
        let stroke = Stroke::new(1.5, palette.global_exchange);
        match of.rings.first() {
            Some(ring) => ring_ui(&painter, ring, (&boxes, area), stroke),
            None => neighbours_ui(&painter, (&centres, area), stroke),
        }
    }
}

/// The arrows of a ring between visible replicas: horizontal ones between neighbours, the others
/// above the boxes, and the return path of an open ladder below them.
fn ring_ui(
    painter: &Painter,
    ring: &ReplicaRing,
    (boxes, area): (&[(u32, Rect)], Rect),
    stroke: Stroke,
) {
    let place = |replica: u32| boxes.iter().position(|(of, _)| *of == replica);
    let both = ring.clockwise < 1.0;
    let members = ring.members(0);
    for (from, to) in members.iter().zip(members.iter().cycle().skip(1)) {
        let (Some(from), Some(to)) = (place(*from), place(*to)) else { continue };
        let one = boxes[from].1;
        let other = boxes[to].1;
        if from.abs_diff(to) == 1 {
            let ends = if from < to {
                (one.right_center(), other.left_center())
            } else {
                (one.left_center(), other.right_center())
            };
            level_arrow(painter, ends, both, stroke);
            continue;
        }
        let below = ring.order == RingOrder::Interleaved && to < from;
        let (y, edge, into) = if below {
            (area.bottom() - 4.0, Rect::center_bottom as fn(&Rect) -> Pos2, -1.0)
        } else {
            (area.top() + 4.0, Rect::center_top as fn(&Rect) -> Pos2, 1.0)
        };
        // Beside the middle: one arrow ends where the next one begins.
        let aside = vec2(if from < to { 10.0 } else { -10.0 }, 0.0);
        let start = edge(&one) + aside;
        let end = edge(&other) - aside;
        let corners = vec![start, pos2(start.x, y), pos2(end.x, y), end];
        painter.add(Shape::line(corners, stroke));
        head(painter, end, vec2(0.0, into), stroke.color);
        if both {
            head(painter, start, vec2(0.0, into), stroke.color);
        }
    }
}

/// The arrows between neighbours, and from the last one to the first, for reports that do not
/// record the ring.
fn neighbours_ui(painter: &Painter, (boxes, area): (&[Rect], Rect), stroke: Stroke) {
    for pair in boxes.windows(2) {
        level_arrow(painter, (pair[0].right_center(), pair[1].left_center()), true, stroke);
    }
    if let ([first, .., last], true) = (boxes, boxes.len() > 2) {
        let from = first.center_top();
        let to = last.center_top();
        let y = area.top() + 4.0;
        let corners = vec![from, pos2(from.x, y), pos2(to.x, y), to];
        painter.add(Shape::line(corners, stroke));
        head(painter, from, vec2(0.0, 1.0), stroke.color);
        head(painter, to, vec2(0.0, 1.0), stroke.color);
    }
}

/// The IPUs of a replica in the numbering of the system: replicas follow each other.
fn ipus_of(target: &Target, replica: u32) -> String {
    let each = target.ipus_per_replica * target.identical_ipus();
    let first = replica * each;
    match each {
        1 => format!("IPU {first}"),
        each => format!("IPUs {first} - {}", first + each - 1),
    }
}

/// The visible replicas, as many as fit. One place stands for those left out.
fn places(all: u32, fit: u32) -> Vec<Option<u32>> {
    if all <= fit {
        return (0..all).map(Some).collect();
    }
    (0..fit.saturating_sub(2)).map(Some).chain([None, Some(all - 1)]).collect()
}

/// The positions of the IPUs of all visible replicas.
struct GroupColumns {
    places: Vec<Option<u32>>,
    /// The width of an IPU.
    ipu: f32,
    /// The width of a replica.
    replica: f32,
}

impl GroupColumns {
    /// Columns with this many IPUs each in `width`. Replicas are left out if IPUs would be too
    /// narrow for numbers.
    fn new(width: f32, replicas: u32, ipus: u32) -> Self {
        let ipus = ipus as f32;
        let width = width - NAMES;
        let fit = ((width + spacing::M) / (ipus * NUMBERED + spacing::M)).max(3.0) as u32;
        let places = places(replicas, fit);
        let gaps = (places.len() - 1) as f32 * spacing::M;
        let ipu = (width - gaps) / (places.len() as f32 * ipus);
        // The place for the replicas left out must hold text.
        let most = if places.contains(&None) { f32::INFINITY } else { IPU.0 };
        let ipu = ipu.clamp(IPU.1, most);
        Self { places, ipu, replica: ipu * ipus }
    }

    fn left(&self, place: usize) -> f32 {
        NAMES + place as f32 * (self.replica + spacing::M)
    }

    fn width(&self) -> f32 {
        self.left(self.places.len()) - spacing::M
    }
}

/// The IPUs of all replicas, and a row for each group of them.
fn groups_ui(ui: &mut Ui, of: &ReplicaOverview, groups: &SyncGroupMembers) {
    let count = of.target.ipus_per_replica.max(1);
    let replicas = of.target.replicas.max(1);
    let columns = GroupColumns::new(ui.available_width(), replicas, count);
    let gs2 = gs2_rows(groups);
    let height = (2 + gs2.len()) as f32 * ROW + spacing::S;
    let (area, _) = ui.allocate_exact_size(vec2(columns.width(), height), Sense::hover());
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(area);
    let y =
        |row: usize| area.top() + (row as f32 + 0.5) * ROW + if row > 0 { spacing::S } else { 0.0 };
    let middle = |place: usize, ipu: IpuId, row: usize| {
        let x = columns.left(place) + (ipu.0 as f32 + 0.5) * columns.ipu;
        pos2(area.left() + x, y(row))
    };
    let name = |row: usize, text: &str| {
        let font = FontId::proportional(text_size::SMALL);
        let at = pos2(area.left(), y(row));
        painter.text(at, Align2::LEFT_CENTER, text, font, palette.weak_text);
    };
    let line = |place: usize, row: usize, ipus: &[IpuId], colour: Color32| {
        let (Some(first), Some(last)) = (ipus.iter().min(), ipus.iter().max()) else { return };
        let ends = [middle(place, *first, row), middle(place, *last, row)];
        painter.line_segment(ends, Stroke::new(2.0, colour));
        let radius = (columns.ipu * 0.3).clamp(1.0, 4.5);
        for ipu in ipus {
            painter.circle_filled(middle(place, *ipu, row), radius, colour);
        }
    };
    name(0, "IPU");
    name(1, "GS1");
    (0..gs2.len()).for_each(|row| name(row + 2, "GS2"));
    // The rows that span all replicas.
    let joined = if joins_sides(groups) { 2..2 + gs2.len() } else { 1..2 };
    for row in joined.filter(|_| replicas > 1) {
        let ends = [pos2(area.left() + NAMES, y(row)), pos2(area.right(), y(row))];
        let stroke = Stroke::new(1.0, palette.weak_text);
        painter.extend(Shape::dashed_line(&ends, stroke, 2.0, 3.0));
    }
    let each = count * of.target.identical_ipus();
    let alike = of.target.identical_ipus();
    for (place, replica) in columns.places.iter().enumerate() {
        let Some(replica) = replica else {
            let left = (replicas as usize + 1 - columns.places.len()) as u32;
            let x = area.left() + columns.left(place) + columns.replica / 2.0;
            words(&painter, pos2(x, y(0)), &more(left), palette.weak_text);
            continue;
        };
        for ipu in (0..count).map(IpuId) {
            let size = vec2((columns.ipu - 2.0).max(1.0), ROW - 2.0);
            let rect = Rect::from_center_size(middle(place, ipu, 0), size);
            painter.rect_filled(rect, CornerRadius::same(2), palette.mark);
            if columns.ipu >= NUMBERED {
                let number = (replica * each + ipu.0 * alike).to_string();
                words(&painter, rect.center(), &number, palette.label_text_on(palette.mark));
            }
        }
        line(place, 1, &groups.gs1, palette.accent);
        for (row, parts) in gs2.iter().enumerate() {
            parts.iter().for_each(|part| line(place, row + 2, part, palette.selection));
        }
    }
    let node = ui.scope_id().with("sync groups");
    let words = group_words(groups, replicas);
    node_ui(ui, node, area, Role::Image, || ("Sync groups".to_owned(), words));
}

/// `12 more`
fn more(replicas: u32) -> String {
    format!("{} more", grouped(replicas.into()))
}

/// `GS1: 0, 1, 2, 3; GS2: 0, 2 and 1, 3; in each of 4 replicas`
fn group_words(groups: &SyncGroupMembers, replicas: u32) -> String {
    let set = |ipus: &[IpuId]| {
        let ipus: Vec<String> = ipus.iter().map(IpuId::to_string).collect();
        ipus.join(", ")
    };
    let parts: Vec<String> = groups.gs2.iter().map(|part| set(part)).collect();
    let words = format!("GS1: {}; GS2: {}", set(&groups.gs1), parts.join(" and "));
    if replicas > 1 { format!("{words}; in each of {replicas} replicas") } else { words }
}

fn words(painter: &Painter, at: Pos2, text: &str, colour: Color32) {
    let font = FontId::proportional(text_size::CAPTION);
    painter.text(at, Align2::CENTER_CENTER, text, font, colour);
}

/// A horizontal arrow with a head at its end, or at both ends.
fn level_arrow(painter: &Painter, (from, to): (Pos2, Pos2), both: bool, stroke: Stroke) {
    let along = vec2((to.x - from.x).signum(), 0.0);
    let from = from + along * 2.0;
    let to = to - along * 2.0;
    painter.line_segment([from + along * 5.0, to - along * 5.0], stroke);
    head(painter, to, along, stroke.color);
    if both {
        head(painter, from, -along, stroke.color);
    }
}

/// The head of an arrow that ends at `tip`.
fn head(painter: &Painter, tip: Pos2, along: egui::Vec2, colour: Color32) {
    let back = along * -7.0;
    let side = along.rot90() * 3.5;
    let points = vec![tip, tip + back + side, tip + back - side];
    painter.add(Shape::convex_polygon(points, colour, Stroke::NONE));
}
