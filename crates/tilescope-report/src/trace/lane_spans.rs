//! The spans to draw of a lane: steps as wide as a pixel by themselves, narrower ones in buckets.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::{LaneSpan, LaneStep, StepBucket};
use super::lane::TraceLane;
use super::pyramid::{self, FAN_OUT, PyramidNode};
use super::step_record::StepRecord;
use crate::error::ReportError;
use crate::units::{CycleRange, Cycles};
use std::ops::Range;

impl TraceLane<'_> {
    /// The spans to draw of `window` on `pixels` pixels: every step that touches the window is in
    /// exactly one span; spans are ordered and do not overlap; gaps are not covered; and there are
    /// at most `2 * pixels + 1` spans.
    ///
    /// Steps at least one pixel wide are separate spans. Narrower ones are in buckets, one per
    /// pixel: a bucket has steps that start in its pixel, up to a pixel's worth at a time, so that
    /// it covers less than two pixels of the window.
    ///
    /// Reads O(pixels) nodes, and decodes a chunk of steps for each piece of the window in which
    /// steps as wide as a pixel are among narrower ones.
    pub fn spans(&self, window: CycleRange, pixels: u32) -> Result<Vec<LaneSpan>, ReportError> {
        let touching = self.touching(window)?;
        // Rounded up, so that there are never more pixels than requested; at least one cycle each.
        let pixel_cycles = window.length().div_ceil(u64::from(pixels.max(1))).max(Cycles(1));
        let mut spans = LaneSpanCollector { window, pixel_cycles, done: Vec::new(), bucket: None };
        self.walk(self.levels(), 0..u64::MAX, &touching, &mut spans)?;
        let spans = spans.finish();
        // Only a file with contradictory nodes and steps can break the bound.
        debug_assert!(pixel_cycles > Cycles::ZERO, "a pixel shows at least one cycle");
        if spans.len() as u64 > most_spans(pixels) {
            Err(self.store.contradiction(self.info()))
        } else {
            Ok(spans)
        }
    }

    /// Like [`TraceLane::spans`], but buckets at the edges are cut to the window. Otherwise a
    /// bucket has whole steps, which may extend beyond it.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn cut_spans(&self, window: CycleRange, pixels: u32) -> Result<Vec<LaneSpan>, ReportError> {
        let mut spans = self.spans(window, pixels)?;
        for span in &mut spans {
            if let LaneSpan::Bucket(bucket) = span {
                let inside = bucket.range.intersection(window);
                if inside != bucket.range {
                    bucket.totals = self.totals(inside)?;
                    bucket.range = inside;
                }
            }
        }
        Ok(spans)
    }

    /// Descends from the nodes `range` of `level` until their content is narrower than a pixel.
    fn walk(
        &self,
        level: u32,
        range: Range<u64>,
        touching: &Range<u64>,
        spans: &mut LaneSpanCollector,
    ) -> Result<(), ReportError> {
        let size = pyramid::steps_per_node(level);
        let start = range.start.max(touching.start / size);
        let end = range.end.min(touching.end.div_ceil(size));
        if touching.is_empty() || start >= end {
            return Ok(());
        }
        let block = self.block_of(level, start)?;
        for (at, node) in (start..).zip(self.part(&block, start..end)?) {
            let steps = at * size..at * size + node.totals.steps;
            let whole = steps.start >= touching.start && steps.end <= touching.end;
            if whole && spans.are_narrow(node) {
                spans.add_narrow(node, steps.start);
            } else if level > 1 {
                // The depth is bounded by the number of levels, at most ten.
                self.walk(level - 1, at * FAN_OUT..(at + 1) * FAN_OUT, touching, spans)?;
            } else {
                let chunk = self.chunk_of(steps.start)?;
                let from = steps.start.max(touching.start);
                let to = steps.end.min(touching.end);
                let records = self.part(&chunk, from..to)?;
                (from..).zip(records).for_each(|(position, record)| spans.add(position, record));
            }
        }
        Ok(())
    }
}

/// The maximum number of spans for this number of pixels.
fn most_spans(pixels: u32) -> u64 {
    2 * u64::from(pixels.max(1)) + 1
}

/// Spans of a window, collected from left to right.
struct LaneSpanCollector {
    window: CycleRange,
    pixel_cycles: Cycles,
    done: Vec<LaneSpan>,
    bucket: Option<(u64, StepBucket)>,
}

impl LaneSpanCollector {
    /// True if a node may go into a bucket as a whole: neither the node nor any step of it fills a
    /// pixel.
    fn are_narrow(&self, node: &PyramidNode) -> bool {
        // The node's length bounds that of its steps.
        node.range.length() < self.pixel_cycles
    }

    fn add(&mut self, position: u64, record: &StepRecord) {
        if record.range.length() >= self.pixel_cycles {
            self.close_bucket();
            self.done.push(LaneSpan::Step(LaneStep::new(position, record)));
            return;
        }
        let pixel = self.pixel(record.range);
        match &mut self.bucket {
            Some((at, bucket)) if *at == pixel => {
                bucket.range = CycleRange::new(bucket.range.start, record.range.end);
                bucket.totals.add_step(record);
            }
            _ => self.open_bucket(pixel, &PyramidNode::from_record(record), position),
        }
    }

    fn add_narrow(&mut self, node: &PyramidNode, position: u64) {
        let pixel = self.pixel(node.range);
        match &mut self.bucket {
            Some((at, bucket)) if *at == pixel => {
                bucket.range = CycleRange::new(bucket.range.start, node.range.end);
                bucket.totals.add(&node.totals);
            }
            _ => self.open_bucket(pixel, node, position),
        }
    }

    /// The pixel in which a range starts.
    fn pixel(&self, range: CycleRange) -> u64 {
        range.start.saturating_sub(self.window.start) / self.pixel_cycles
    }

    fn open_bucket(&mut self, pixel: u64, node: &PyramidNode, position: u64) {
        self.close_bucket();
        let bucket = StepBucket {
            range: node.range,
            first_position: position,
            first_step: node.first_step,
            totals: node.totals,
        };
        self.bucket = Some((pixel, bucket));
    }

    fn close_bucket(&mut self) {
        self.done.extend(self.bucket.take().map(|(_, bucket)| LaneSpan::Bucket(bucket)));
    }

    fn finish(mut self) -> Vec<LaneSpan> {
        self.close_bucket();
        self.done
    }
}
