//! The laws of an index: each node is the sum of its children, up from the steps.

use super::answers::LaneInfo;
use super::program_totals::{segment_level_count, steps_per_segment};
use super::pyramid::{self, BLOCK_NODES, FAN_OUT, LEAF_STEPS, PyramidNode};
use super::store::TraceStore;
use super::{Trace, TraceLane, place_in_piece};
use crate::error::ReportError;
use std::ops::Range;

impl Trace {
    /// Broken laws, in words; stops after the first of each lane.
    pub(crate) fn verify(&self) -> Result<Vec<String>, ReportError> {
        let mut broken = Vec::new();
        for lane in self.lanes() {
            broken.extend(verify_lane(&self.store, *lane)?);
        }
        Ok(broken)
    }
}

fn verify_lane(store: &TraceStore, info: LaneInfo) -> Result<Option<String>, ReportError> {
    for level in 1..=pyramid::level_count(info.steps) {
        let count = pyramid::node_count(info.steps, level);
        for block in 0..count.div_ceil(BLOCK_NODES as u64) {
            let nodes = store.nodes(info, level, block)?;
            for (at, node) in (block * BLOCK_NODES as u64..).zip(nodes.iter()) {
                if sum_of_children(store, info, level, at)?.as_ref() != Some(node) {
                    return Ok(Some(format!(
                        "IPU {} lane {}: node {at} of level {level} is not the sum of its children",
                        info.ipu, info.sub_lane
                    )));
                }
            }
        }
    }
    if let Some(broken) = verify_totals(store, info)? {
        return Ok(Some(broken));
    }
    let first = store.nodes(info, 1, 0)?;
    let last = pyramid::node_count(info.steps, 1).saturating_sub(1) / BLOCK_NODES as u64;
    let last = store.nodes(info, 1, last)?;
    let ends = first.first().zip(last.last());
    let fits = ends.is_some_and(|(first, last)| {
        (first.range.start, last.range.end) == (info.range.start, info.range.end)
    });
    Ok((!fits).then(|| format!("IPU {}: the lane does not start or end where it says", info.ipu)))
}

/// Totals by program are sums of the steps, or of the segments below them.
fn verify_totals(store: &TraceStore, info: LaneInfo) -> Result<Option<String>, ReportError> {
    let levels = if store.has_totals() { segment_level_count(info.steps) } else { 0 };
    for level in 0..levels {
        let size = steps_per_segment(level);
        for at in 0..info.steps.div_ceil(size) {
            let positions = at * size..((at + 1) * size).min(info.steps);
            let sum = TraceLane::new(store, info).sum_below(positions, level)?;
            if sum.into_totals() != store.segment(info, level, at)?.as_ref().clone().into_totals() {
                return Ok(Some(format!(
                    "IPU {} lane {}: totals {at} of level {level} are not the sum of their steps",
                    info.ipu, info.sub_lane
                )));
            }
        }
    }
    Ok(None)
}

fn sum_of_children(
    store: &TraceStore,
    lane: LaneInfo,
    level: u32,
    at: u64,
) -> Result<Option<PyramidNode>, ReportError> {
    let all = lane.steps;
    let part = |size: u64, count: u64, of: u64| -> Range<usize> {
        let base = at * size / of * of;
        place_in_piece(at * size, base)..place_in_piece(((at + 1) * size).min(count), base)
    };
    let mut sum: Option<PyramidNode> = None;
    let mut add = |child: &PyramidNode| match &mut sum {
        Some(sum) => sum.add(child),
        None => sum = Some(*child),
    };
    if level == 1 {
        let chunk = super::chunk::CHUNK_STEPS as u64;
        let records = store.chunk(lane, at * LEAF_STEPS / chunk)?;
        records[part(LEAF_STEPS, all, chunk)]
            .iter()
            .for_each(|record| add(&PyramidNode::from_record(record)));
    } else {
        let block = BLOCK_NODES as u64;
        let nodes = store.nodes(lane, level - 1, at * FAN_OUT / block)?;
        nodes[part(FAN_OUT, pyramid::node_count(all, level - 1), block)].iter().for_each(add);
    }
    Ok(sum)
}
