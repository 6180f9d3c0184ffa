//! The lanes of the IPUs, one below the other: as high as lets all of them be seen at once, down to
//! a least height, below which the list scrolls. An enlarged IPU has all of its rows, high enough for
//! names. Many replicas are small multiples: a strip each, with a thin lane for each IPU.

use super::regions::MARK_HEIGHT;
use crate::model::preferences::TracePrefs;
use crate::views::execution_trace::layers::links::LINKS_HEIGHT;
use crate::views::execution_trace::loaded_trace::{IpuLanes, LoadedTrace, are_thin, rows_of};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_analysis::trace::TraceLaneStyle;
use tilescope_report::MarkKind;
use tilescope_report::units::IpuId;

/// The height of a flame row in an enlarged IPU.
pub(crate) const FLAME_ROW: f32 = 19.0;
/// The largest height of a flame row.
const TALL_FLAME_ROW: f32 = 40.0;
/// The smallest height of a row among others: the height of a label.
pub(crate) const LOW_FLAME_ROW: f32 = 13.0;
/// The largest height of the single row of the flat view.
const FLAT_ROW: f32 = 34.0;
/// Least height of the bars of a group of tiles: that of its name in the gutter.
const LEAST_LANE: f32 = 16.0;
/// Space between the groups of tiles of an IPU, where the dashed line lies.
pub(crate) const SUB_LANE_GAP: f32 = 7.0;
/// The largest gap between IPUs.
const IPU_GAP: f32 = 8.0;
/// The smallest gap between IPUs.
const LEAST_IPU_GAP: f32 = 1.0;
/// The gap between replicas.
const REPLICA_GAP: f32 = 6.0;
/// The gap between replicas with thin lanes.
const STRIP_GAP: f32 = 2.0;
/// The smallest height of a replica with thin lanes: that of its name.
const LEAST_STRIP: f32 = 16.0;
/// The largest height of a replica with thin lanes.
const MOST_STRIP: f32 = 48.0;
/// The smallest height of a thin lane.
const THIN_LANE: f32 = 4.0;
/// The share of the height of all lanes for enlarged IPUs, if their labels fit in it.
const ENLARGED_SHARE: f32 = 0.65;
/// The largest share of an IPU's height for its row of stages.
const STAGES_SHARE: f32 = 0.35;
/// The smallest height of the row of stages.
const LEAST_STAGES: f32 = 4.0;
/// The largest share of an IPU's height for its stages above a graph of shares.
const TALL_STAGES_SHARE: f32 = 0.45;
/// The largest height of the stages above a graph of shares.
const TALL_STAGES: f32 = 48.0;

/// The name left of the lanes of an IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LaneName {
    /// Its own name.
    Ipu,
    /// The name of its replica, whose thin lanes have this height.
    Replica { height: f32 },
    /// None: the first lane of the replica has it.
    Hidden,
}

/// The position of an IPU, in points from the top of all lanes.
pub(crate) struct IpuLaneLayout<'a> {
    pub lanes: &'a IpuLanes,
    /// The replica of the lanes, if those of several replicas are shown.
    pub replica: Option<u32>,
    pub name: LaneName,
    /// The number of rows of each tile group. Thin lanes have one of compute tiles only.
    pub rows: Vec<u32>,
    pub top: f64,
    /// The height of the row of stages above the bars.
    pub marks: f32,
    pub row_height: f32,
    /// The height of the raster of tiles below the bars.
    pub tiles: f32,
    /// The height of the strip of links below the raster.
    pub links: f32,
}

impl IpuLaneLayout<'_> {
    pub(crate) fn height(&self) -> f32 {
        self.links_top() + self.links
    }

    /// The top of the strip of links: below the raster of tiles.
    pub(crate) fn links_top(&self) -> f32 {
        self.tiles_top() + self.tiles
    }

    /// The top of the raster of tiles: below the bars.
    pub(crate) fn tiles_top(&self) -> f32 {
        let rows: u32 = self.rows.iter().sum();
        let gaps = SUB_LANE_GAP * self.rows.len().saturating_sub(1) as f32;
        self.marks + rows as f32 * self.row_height + gaps
    }

    /// The top of a tile group, in points below the top of the bars.
    pub(crate) fn sub_lane_top(&self, index: usize) -> f32 {
        let above: u32 = self.rows.iter().take(index).sum();
        above as f32 * self.row_height + SUB_LANE_GAP * index as f32
    }

    /// The same layout with taller stages. Above a graph of shares, which has no readable rows, the
    /// stages show the pipeline. The bottom stays in place, so that lanes do not move.
    fn with_tall_stages(self) -> Self {
        let count = self.rows.iter().sum::<u32>().max(1) as f32;
        let all = self.marks + count * self.row_height;
        let marks = (all * TALL_STAGES_SHARE).floor().min(TALL_STAGES).max(self.marks);
        let marks = if self.marks > 0.0 { marks } else { 0.0 };
        Self { marks, row_height: (all - marks) / count, ..self }
    }

    /// The tile group and the row at a distance below the top of the bars.
    pub(crate) fn row_at(&self, y: f32) -> Option<(usize, u32)> {
        self.rows.iter().enumerate().find_map(|(index, rows)| {
            let inside = y - self.sub_lane_top(index);
            let row = (inside / self.row_height).floor();
            // The gap between two groups belongs to neither.
            if row >= 0.0 && row < *rows as f32 { Some((index, row as u32)) } else { None }
        })
    }
}

/// The visible IPUs and their style.
#[derive(Clone, Copy)]
pub(crate) struct ShownIpus<'a> {
    pub ipus: &'a [IpuId],
    /// The IPUs that have all of their rows.
    pub enlarged: &'a BTreeSet<IpuId>,
    /// The heights in points that the user has set.
    pub heights: &'a BTreeMap<IpuId, f32>,
    pub prefs: &'a TracePrefs,
    /// True if lanes are graphs of shares.
    pub shares: bool,
    /// The visible replicas; one image serves all that are alike.
    pub replicas: &'a [u32],
}

/// The layouts of the visible IPUs, one below the other, in a height of `room`.
pub(crate) fn ipu_lane_layouts<'a>(
    prepared: &'a LoadedTrace,
    shown: ShownIpus<'_>,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    match shown.replicas {
        [] | [_] => lanes_of_replica(prepared, 0, shown, room),
        many if are_thin(many) => thin_lanes(prepared, shown, room),
        _ => lanes_of_replicas(prepared, shown, room),
    }
}

/// The layouts of the IPUs of one replica.
fn lanes_of_replica<'a>(
    prepared: &'a LoadedTrace,
    replica: u32,
    shown: ShownIpus<'_>,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    let ShownIpus { ipus, enlarged, heights: given, prefs, shares, .. } = shown;
    let staged = [MarkKind::Stage, MarkKind::Update];
    let has_stages = staged.iter().any(|kind| prepared.mark_kinds.contains(kind));
    let heights = IpuHeights {
        prefs,
        has_stages: prefs.marks && has_stages,
        tiles: tiles_height(prefs),
        links: if prefs.links && prepared.known_link_limit().is_some() {
            LINKS_HEIGHT
        } else {
            0.0
        },
    };
    let mut lanes: Vec<&'a IpuLanes> = prepared.lanes_of(replica);
    lanes.retain(|lanes| ipus.contains(&lanes.at.ipu));
    let large = lanes.iter().filter(|lanes| enlarged.contains(&lanes.at.ipu)).count();
    let large_room = room * ENLARGED_SHARE / large.max(1) as f32;
    // An IPU with its own height, independent of the others.
    let lay_out = |lanes: &'a IpuLanes, top: f64| match given.get(&lanes.at.ipu) {
        Some(height) => Some(heights.fitted(lanes, top, *height)),
        None if enlarged.contains(&lanes.at.ipu) => Some(heights.enlarged(lanes, top, large_room)),
        None => None,
    };
    let taken: Vec<f32> =
        lanes.iter().filter_map(|lanes| Some(lay_out(lanes, 0.0)?.height() + IPU_GAP)).collect();
    let others = lanes.len() - taken.len();
    let each = ((room - taken.iter().sum::<f32>()) / others.max(1) as f32).max(0.0);
    let gap = (each * 0.1).round().clamp(LEAST_IPU_GAP, IPU_GAP);
    let mut top = 0.0;
    let mut blocks = Vec::new();
    for lanes in lanes {
        let block = lay_out(lanes, top).unwrap_or_else(|| heights.fitted(lanes, top, each - gap));
        let block = if shares { block.with_tall_stages() } else { block };
        top += f64::from(block.height() + gap);
        blocks.push(block);
    }
    blocks
}

/// The layouts of the IPUs of many replicas: small multiples of one height.
fn thin_lanes<'a>(
    prepared: &'a LoadedTrace,
    shown: ShownIpus<'_>,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    let ipus = shown.ipus.len().max(1) as f32;
    let height = room / shown.replicas.len() as f32 - STRIP_GAP;
    let row_height = (height.clamp(LEAST_STRIP, MOST_STRIP) / ipus).floor().max(THIN_LANE);
    // A single lane is as high as the name beside it.
    let height = (row_height * ipus).max(LEAST_STRIP);
    let mut blocks = Vec::new();
    let mut top = 0.0;
    for replica in shown.replicas {
        let mut name = LaneName::Replica { height };
        let lanes = prepared.lanes_of(*replica);
        let lanes = lanes.into_iter().filter(|lanes| shown.ipus.contains(&lanes.at.ipu));
        for (index, lanes) in lanes.enumerate() {
            blocks.push(IpuLaneLayout {
                lanes,
                replica: Some(*replica),
                name,
                rows: vec![1],
                top: top + f64::from(row_height) * index as f64,
                marks: 0.0,
                row_height,
                tiles: 0.0,
                links: 0.0,
            });
            name = LaneName::Hidden;
        }
        top += f64::from(height + STRIP_GAP);
    }
    blocks
}

/// The layouts of the IPUs of several replicas, all of one height.
fn lanes_of_replicas<'a>(
    prepared: &'a LoadedTrace,
    shown: ShownIpus<'_>,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    let replicas = shown.replicas;
    let nothing = BTreeSet::new();
    let none = BTreeMap::new();
    let each = ShownIpus { enlarged: &nothing, heights: &none, ..shown };
    let mut top = 0.0;
    let mut blocks = Vec::new();
    let height = room / replicas.len() as f32 - REPLICA_GAP;
    for replica in replicas {
        let own = lanes_of_replica(prepared, *replica, each, height);
        let total = total_height(&own);
        let moved = own.into_iter().map(|block| IpuLaneLayout {
            top: block.top + top,
            replica: Some(*replica),
            ..block
        });
        blocks.extend(moved);
        top += total + f64::from(REPLICA_GAP);
    }
    blocks
}

fn tiles_height(prefs: &TracePrefs) -> f32 {
    if prefs.tiles { f32::from(prefs.tiles_height) } else { 0.0 }
}

/// The division of an IPU's height.
struct IpuHeights<'a> {
    prefs: &'a TracePrefs,
    /// True if there is a row of stages.
    has_stages: bool,
    /// The height of the raster of tiles.
    tiles: f32,
    /// The height of the strip of links.
    links: f32,
}

impl IpuHeights<'_> {
    /// All rows, high enough for labels.
    fn enlarged<'a>(&self, lanes: &'a IpuLanes, top: f64, room: f32) -> IpuLaneLayout<'a> {
        let rows = rows_of(lanes, self.prefs.style);
        let marks = if self.has_stages { MARK_HEIGHT } else { 0.0 };
        let fitting = (room - marks) / rows.iter().sum::<u32>().max(1) as f32;
        let (least, most) = match self.prefs.style {
            TraceLaneStyle::Flame => (FLAME_ROW, TALL_FLAME_ROW),
            TraceLaneStyle::Flat => (FLAT_ROW, FLAT_ROW * 3.0),
        };
        let row_height = fitting.floor().clamp(least, most);
        self.layout(lanes, top, rows, (marks, row_height))
    }

    /// The number of rows whose labels fit in a height, at least one.
    fn fitted<'a>(&self, lanes: &'a IpuLanes, top: f64, height: f32) -> IpuLaneLayout<'a> {
        let all = rows_of(lanes, self.prefs.style);
        // A raster of tiles fills the screen: bars beside it keep all of their rows.
        let least = if self.tiles > 0.0 {
            MARK_HEIGHT + all.iter().sum::<u32>() as f32 * FLAME_ROW
        } else {
            0.0
        };
        let height = (height - self.tiles - self.links).max(least);
        // Whole points, as below: the painted parts must stay aligned with the image.
        let marks = (height * STAGES_SHARE).floor().min(MARK_HEIGHT);
        let marks = if self.has_stages && marks >= LEAST_STAGES { marks } else { 0.0 };
        let gaps = SUB_LANE_GAP * all.len().saturating_sub(1) as f32;
        let bars = (height - marks - gaps).max(LEAST_LANE * all.len() as f32);
        let rows = fitting_rows(&all, (bars / LOW_FLAME_ROW) as u32);
        let most = match self.prefs.style {
            TraceLaneStyle::Flame => TALL_FLAME_ROW,
            TraceLaneStyle::Flat => FLAT_ROW,
        };
        let count: u32 = rows.iter().sum();
        let row_height = (bars / count.max(1) as f32).floor().clamp(LOW_FLAME_ROW, most);
        self.layout(lanes, top, rows, (marks, row_height))
    }

    /// The layout of lanes with the height of their marks and that of a row.
    fn layout<'a>(
        &self,
        lanes: &'a IpuLanes,
        top: f64,
        rows: Vec<u32>,
        (marks, row_height): (f32, f32),
    ) -> IpuLaneLayout<'a> {
        IpuLaneLayout {
            lanes,
            replica: None,
            name: LaneName::Ipu,
            rows,
            top,
            marks,
            row_height,
            tiles: self.tiles,
            links: self.links,
        }
    }
}

/// The number of rows of each tile group that fit, at least one. Deeper flames share the last row.
fn fitting_rows(all: &[u32], most: u32) -> Vec<u32> {
    let mut rows = all.to_vec();
    while rows.iter().sum::<u32>() > most {
        // From the highest group, the last one among equals: compute tiles keep the most rows.
        let Some(highest) = rows.iter_mut().rev().max_by_key(|rows| **rows) else { break };
        if *highest <= 1 {
            break;
        }
        *highest -= 1;
    }
    rows
}

/// The height from the top of the first IPU to the bottom of the last one, in points.
pub(crate) fn total_height(blocks: &[IpuLaneLayout<'_>]) -> f64 {
    blocks.last().map_or(0.0, |block| block.top + f64::from(block.height()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_dropped_for_lack_of_space_but_never_all() {
        assert_eq!(fitting_rows(&[5, 2], 7), [5, 2]);
        assert_eq!(fitting_rows(&[5, 2], 4), [2, 2]);
        assert_eq!(fitting_rows(&[5, 2], 0), [1, 1]);
        assert_eq!(fitting_rows(&[3], 2), [2]);
    }
}
