//! Distribution of a pooling over tiles: splits of channel groups, samples, rows and columns that
//! minimise vertex cycles plus the bytes that each tile reads (poplibs lib/popnn/PoolPlan.cpp).

use super::pool_axis::PoolAxis;
use super::vertex::{cycles, planned_lists};
use super::{PoolingPass, PoolingType};
use crate::popops::elementwise::vector_width;
use crate::shape::DType;
use crate::shape::gcd;
use crate::targets::BytesPerCycle;
use tilescope_report::units::{Bytes, Cycles};

/// Pooling in the view of the planner, whose dimensions may differ from those in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolingPlanShape {
    /// Function and direction of the pooling.
    pub pass: PoolingPass,
    pub dtype: DType,
    pub batch: u64,
    pub channels: u64,
    /// Planes, rows and columns.
    pub axes: [PoolAxis; 3],
    /// Contiguous channels in memory.
    pub grouping: u64,
}

/// Number of parts of each dimension, one tile for each combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    /// Channels of a group.
    pub group: u64,
    /// Parts of the channel groups.
    pub groups: u64,
    /// Parts of the samples.
    pub batch: u64,
    /// Parts of planes, rows and columns.
    pub field: [u64; 3],
    pub cycles: Cycles,
}

/// Maximum size of a group in vectors of channels. Larger ones take too much memory to rearrange.
const MOST_VECTORS: u64 = 8;

impl PoolingPlanShape {
    /// Returns the view that is most efficient for the vertex. Its inner loop runs along columns,
    /// so all independent elements become columns, except `channels` channels
    /// (gatherDimsTransformIn).
    pub(crate) fn gather_dims(self, channels: u64) -> Self {
        let all = self.batch * self.channels;
        // Windows that neither overlap nor reach padding do not depend on their neighbours.
        let separate = self.axes.iter().all(|axis| {
            (axis.before, axis.behind) == (0, 0)
                && axis.stride >= axis.kernel
                && axis.elements.is_multiple_of(axis.stride)
        });
        let mut view = Self { batch: 1, channels: all, ..self };
        if !separate {
            return view;
        }
        let [planes, rows, columns] = &mut view.axes;
        // The inner loop of the vertex runs along columns, so longer columns are better.
        for outer in [planes, rows] {
            columns.elements *= outer.elements / outer.stride;
            outer.elements = outer.stride;
        }
        if all.is_multiple_of(channels) {
            columns.elements *= all / channels;
            view.channels = channels;
            view.grouping = view.grouping.min(channels);
        }
        view
    }

    /// Returns the most efficient view with at least `channels` channels, if possible. A gradient
    /// keeps its dimensions.
    pub(crate) fn with_channels(self, channels: u64) -> Self {
        let view = if self.pass.backward { self } else { self.gather_dims(channels) };
        view.widen_channels()
    }

    /// Returns the view with columns or samples as channels, if there are fewer channels than a
    /// vector holds.
    pub(crate) fn widen_channels(mut self) -> Self {
        let width = vector_width(self.dtype);
        if self.channels >= width {
            return self;
        }
        let mut wanted = width / gcd(self.channels, width);
        let backward = self.pass.backward;
        for axis in self.axes.iter_mut().rev() {
            // Windows of one element along an axis leave its elements independent.
            if axis.kernel == 1 && axis.stride == 1 && axis.before + axis.behind == 0 {
                let factor = gcd(wanted, axis.results(backward));
                axis.elements /= factor;
                self.channels *= factor;
                wanted /= factor;
            }
        }
        let factor = gcd(wanted, self.batch);
        self.batch /= factor;
        self.channels *= factor;
        self
    }

    /// Depth, height and width of the results.
    pub(crate) fn results(&self) -> [u64; 3] {
        self.axes.map(|axis| axis.results(self.pass.backward))
    }

    /// The cheapest plan on at most `tiles` tiles with groups of at least `least` channels.
    pub(super) fn plan(&self, tiles: u64, speed: BytesPerCycle, least: u64) -> Option<PoolPlan> {
        let width = vector_width(self.dtype);
        let most = if least > width {
            least.div_ceil(width)
        } else {
            let useful = self.grouping.div_ceil(width).min(self.channels.div_ceil(width));
            useful.clamp(1, MOST_VECTORS)
        };
        let mut best: Option<PoolPlan> = None;
        for vectors in (1..=most).filter(|vectors| vectors * width >= least) {
            self.search(vectors * width, tiles, speed, &mut best);
        }
        best
    }

    fn search(&self, group: u64, tiles: u64, speed: BytesPerCycle, best: &mut Option<PoolPlan>) {
        let groups = self.channels.div_ceil(group);
        for (group_parts, groups) in splits(groups, tiles) {
            for (batch_parts, batch) in splits(self.batch, tiles / group_parts) {
                let left = tiles / (group_parts * batch_parts);
                for (field_parts, field) in self.field_splits(left) {
                    let cycles = self.estimate(PoolPartSize { group, groups, batch, field }, speed);
                    if best.is_none_or(|best| cycles < best.cycles) {
                        *best = Some(PoolPlan {
                            group,
                            groups: group_parts,
                            batch: batch_parts,
                            field: field_parts,
                            cycles,
                        });
                    }
                }
            }
        }
    }

    /// Numbers of parts of planes, rows and columns on at most `tiles` tiles, with the sizes of the
    /// largest parts.
    fn field_splits(&self, tiles: u64) -> impl Iterator<Item = ([u64; 3], [u64; 3])> {
        let [depth, height, width] = self.results();
        splits(depth, tiles).flat_map(move |(plane_parts, planes)| {
            let tiles = tiles / plane_parts;
            splits(height, tiles).flat_map(move |(row_parts, rows)| {
                splits(width, tiles / row_parts).map(move |(column_parts, columns)| {
                    ([plane_parts, row_parts, column_parts], [planes, rows, columns])
                })
            })
        })
    }

    /// Cycles of the tile with the largest piece, and of tiles with one row or column less, whose
    /// work may be shared less evenly between workers.
    fn estimate(&self, piece: PoolPartSize, speed: BytesPerCycle) -> Cycles {
        let mut compute = self.vertex(piece);
        for (axis, size) in self.results().into_iter().enumerate() {
            // poplibs tries each dimension separately: a tile that is smaller in several dimensions
            // might be slower still, but checking all combinations would take too many estimates
            // (`PoolPlan.cpp`).
            if size % piece.field[axis] != 0 {
                let mut smaller = piece;
                smaller.field[axis] -= 1;
                compute = compute.max(self.vertex(smaller));
            }
        }
        let bytes = self.bytes(piece);
        let rearranged =
        // Penalty for changing the groups found in memory, at four bytes per cycle.
            if piece.group == self.grouping { Cycles::ZERO } else { Cycles(bytes.0 / 4) };
        compute + Cycles(bytes.0 / speed.0) + rearranged
    }

    fn vertex(&self, piece: PoolPartSize) -> Cycles {
        let positions = self.axes.iter().map(|axis| axis.kernel).product();
        let stride = if self.pass.backward { self.axes[2].stride } else { 1 };
        let lists = planned_lists(piece.batch, piece.field, positions, stride);
        let results = piece.batch * piece.field.iter().product::<u64>();
        let vectors = piece.group / vector_width(self.dtype);
        cycles(self.pass, piece.groups, vectors, results, lists)
    }

    /// Bytes that a tile reads for a piece.
    fn bytes(&self, piece: PoolPartSize) -> Bytes {
        let channels = piece.batch * piece.groups * piece.group * self.dtype.bytes();
        let results = piece.field.iter().product::<u64>() * channels;
        let mut operands = channels;
        for (axis, size) in self.axes.iter().zip(piece.field) {
            // In the backward pass, the planner's windows are the transposed ones: dilated, one
            // apart.
            let stride = if self.pass.backward { 1 } else { axis.stride };
            operands *= (size - 1) * stride + axis.kernel;
        }
        // Finding the element that was the maximum also needs operand and result of the forward
        // pass.
        if self.pass.kind == PoolingType::Max && self.pass.backward {
            2 * operands + results
        } else {
            operands
        }
    }
}

/// Part of the result that one tile computes: channel groups of the given size, samples, planes,
/// rows and columns.
#[derive(Clone, Copy)]
struct PoolPartSize {
    group: u64,
    groups: u64,
    batch: u64,
    field: [u64; 3],
}

/// Numbers of parts up to `most` with different largest parts, each with the size of that part.
fn splits(size: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = most.min(size);
    let mut next = 1;
    std::iter::from_fn(move || {
        if next > most {
            return None;
        }
        let parts = next;
        let largest = size.div_ceil(parts);
        // The smallest number of parts with a smaller largest one.
        next = if largest == 1 { most + 1 } else { size.div_ceil(largest - 1) };
        Some((parts, largest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_different_largest_parts() {
        assert_eq!(
            splits(10, 100).collect::<Vec<_>>(),
            [(1, 10), (2, 5), (3, 4), (4, 3), (5, 2), (10, 1)]
        );
        assert_eq!(splits(10, 4).last(), Some((4, 3)));
    }

    fn view(elements: u64, kernel: u64, stride: u64) -> PoolingPlanShape {
        let axis = PoolAxis { elements, kernel, stride, before: 0, behind: 0 };
        PoolingPlanShape {
            pass: PoolingPass { kind: PoolingType::Max, backward: false },
            dtype: DType::Half,
            batch: 4,
            channels: 10,
            axes: [PoolAxis::NONE, axis, axis],
            grouping: 1,
        }
    }

    #[test]
    fn separate_windows_are_gathered_along_columns() {
        let gathered = view(24, 2, 2).gather_dims(4);
        assert_eq!((gathered.batch, gathered.channels), (1, 4));
        assert_eq!(gathered.axes.map(|axis| axis.elements), [1, 2, 24 * 12 * 10]);
        // Overlapping windows stay unchanged, and samples become channels.
        let kept = view(24, 3, 2).gather_dims(4);
        assert_eq!((kept.channels, kept.axes[2].elements), (40, 24));
    }

    #[test]
    fn plans_use_the_tiles_they_have() {
        for tiles in [1, 7, 1472] {
            let plan = view(24, 3, 1).plan(tiles, BytesPerCycle(4), 1).expect("a plan");
            assert!(plan.groups * plan.batch * plan.field.iter().product::<u64>() <= tiles);
        }
    }
}
