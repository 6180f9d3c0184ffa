//! Search for the cheapest way to split one model over tiles.
//!
//! Every split is the smallest that yields its largest part, so an axis of `n` grains has about
//! `2 sqrt(n)` of them. The search covers all combinations that use at most all tiles,
//! including serial splits, and skips only those that cannot win. The order of the loops is channels,
//! kernel, groups, batch, then the output field. Bounds are checked at each level:
//!
//! * A model is skipped as a whole if its vertices cannot be fast enough on all tiles, or if its
//!   layout changes do not fit all tiles.
//! * Before the field loops, the inner loops of the vertices at the best possible field split and
//!   the partial sums they compute are a lower bound.
//! * At a point, exchange, layout and vertices are added one by one.
//!
//! A convolution of ResNet size takes a few million points. One in a thousand is estimated in full.

use super::cost_model::{ConvCostModel, ConvPartElements, ConvPartSize};
use super::plan::{ConvPartition, ConvPlanEstimate};
use super::vertex_candidates::ConvChannels;
use crate::poplin::estimate::vertex_cycles_lower_bound;
use crate::poplin::params::PlanError;
use crate::targets::IpuTarget;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Maximum number of split points, including partial ones, in the search for one plan, which
/// takes tens of seconds. A large convolution visits 10^7.
pub(crate) const MAX_POINTS: u64 = 1 << 28;

/// Split with its full estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EstimatedPartition {
    /// See [`ConvPlanCandidate::number`].
    pub candidate: usize,
    pub partition: ConvPartition,
    /// Cost of the pass itself.
    pub estimate: ConvPlanEstimate,
    /// Cycles of all passes that share the plan.
    pub total_cycles: Cycles,
    /// Peak of the temporary bytes of any of these passes.
    pub temp_bytes: Bytes,
}

impl EstimatedPartition {
    /// Key by which splits are compared.
    fn cost(&self) -> (Cycles, Bytes) {
        (self.total_cycles, self.temp_bytes)
    }
}

/// The best splits found so far, over all models.
#[derive(Clone, Debug)]
pub(crate) struct BestPartitions {
    /// Splits, cheapest first. Equal ones are in the order in which they were tried.
    found: Vec<EstimatedPartition>,
    /// Maximum number of splits.
    most: usize,
}

impl BestPartitions {
    /// Creates an empty list of at most `most` splits.
    pub(crate) fn at_most(most: usize) -> Self {
        Self { found: Vec::new(), most }
    }

    /// Number of cycles above which a split is not among the best.
    fn cycle_limit(&self) -> Cycles {
        let worst = self.found.last().filter(|_| self.found.len() == self.most);
        worst.map_or(Cycles::MAX, |worst| worst.total_cycles)
    }

    fn offer(&mut self, split: EstimatedPartition) {
        // After equal ones, so that the candidate that poplibs tries first wins.
        let place = self.found.partition_point(|found| found.cost() <= split.cost());
        self.found.insert(place, split);
        self.found.truncate(self.most);
    }

    /// Returns the splits, cheapest first.
    pub(crate) fn into_cheapest_first(self) -> Vec<EstimatedPartition> {
        self.found
    }
}

/// Effort of a search so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartitionSearchBudget {
    /// Number of split points visited, including partial ones.
    points: u64,
}

/// Model to split, with the other passes of a joint plan.
#[derive(Clone, Debug)]
pub(crate) struct ConvPlanCandidate {
    /// Position in the order in which candidates are tried.
    pub number: usize,
    /// Pass that is split.
    pub model: ConvCostModel,
    /// Backward pass and weight update of a joint plan.
    pub others: Vec<JointPass>,
    /// Channels before padding, which serial splits divide.
    pub serial_channels: ConvChannels,
}

/// Another pass of a joint plan, with the conversion of splits of the forward pass to its own.
#[derive(Clone, Debug)]
pub(crate) struct JointPass {
    pub model: ConvCostModel,
    /// Converts a split of the forward pass to its own.
    pub partition: fn(&ConvPartition, usize) -> ConvPartition,
    /// Converts a part of the forward pass to its own.
    pub size: fn(&ConvPartSize, usize) -> ConvPartSize,
}

/// One way to split an axis: number of parallel parts, number of serial parts, size of the largest
/// part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AxisSplit {
    parallel: u64,
    serial: u64,
    size: u64,
}

/// Splits of `grains` grains of `grain` elements into at most `most` parts.
fn parallel_splits(grains: u64, grain: u64, most: u64) -> Vec<AxisSplit> {
    let mut found = Vec::new();
    let mut parts = 1;
    while parts <= most.min(grains) {
        let largest = grains.div_ceil(parts);
        found.push(AxisSplit { parallel: parts, serial: 1, size: largest * grain });
        if largest == 1 {
            break;
        }
        parts = grains.div_ceil(largest - 1);
    }
    found
}

/// Splits of channels. The serial parts divide `channels` evenly, and parallel and serial parts
/// together are the smallest number that yields their largest part.
fn channel_splits(grains: u64, grain: u64, channels: u64, most: u64) -> Vec<AxisSplit> {
    // The serial loop repeats one program, so all its slices have equal size. Padding does not
    // count, because it is added to each slice separately.
    let serial_splits = (1..=most.min(grains)).filter(|serial| channels.is_multiple_of(*serial));
    let mut found = Vec::new();
    for serial in serial_splits {
        for parallel in 1..=most.min(grains / serial) {
            let parts = parallel * serial;
            let largest = grains.div_ceil(parts);
            // poplibs' `ceildivConstrainDivisor` has no other splits, though some would score
            // better: six parts are paired on the exchange, five parts of the same size are not.
            if parts == 1 || largest != grains.div_ceil(parts - 1) {
                found.push(AxisSplit { parallel, serial, size: largest * grain });
            }
        }
    }
    found
}

/// Loops over all splits of one candidate.
struct PartitionSearchLoops<'a> {
    candidate: &'a ConvPlanCandidate,
    model: &'a ConvCostModel,
    tiles: u64,
    memory_bound: Bytes,
    field: Vec<Vec<AxisSplit>>,
    layout_all_tiles: Cycles,
    best: &'a mut BestPartitions,
    search: &'a mut PartitionSearchBudget,
}

/// Searches for splits of `candidate` that belong to the `best` with at most `memory_bound`
/// temporary bytes.
pub(crate) fn improve(
    machine: &IpuTarget,
    candidate: &ConvPlanCandidate,
    memory_bound: Bytes,
    best: &mut BestPartitions,
    search: &mut PartitionSearchBudget,
) -> Result<(), PlanError> {
    let model = &candidate.model;
    let tiles = u64::from(machine.tiles);
    if !model.suits_vertex() || model.layout_cost(tiles).bytes > memory_bound {
        return Ok(());
    }
    // Not `>=`: with an equal number of cycles a plan may still win by its temporary bytes.
    if model.cycles_lower_bound() > best.cycle_limit() {
        return Ok(());
    }
    let dims = model.dims;
    let whole = &model.whole;
    let field = (0..dims).map(|dim| {
        let grain = if dim + 1 == dims { model.field_grain } else { 1 };
        parallel_splits(whole.field[dim] / grain, grain, tiles)
    });
    let loops = PartitionSearchLoops {
        candidate,
        model,
        tiles,
        memory_bound,
        field: field.collect(),
        layout_all_tiles: model.layout_cost(tiles).cycles(),
        best,
        search,
    };
    loops.over_channels()
}

impl PartitionSearchLoops<'_> {
    fn over_channels(mut self) -> Result<(), PlanError> {
        let vertex = self.model.vertex();
        let whole = self.model.whole;
        let in_group = vertex.in_chans_per_group;
        let out_group = vertex.out_chans_per_group;
        let ConvChannels { in_channels, out_channels } = self.candidate.serial_channels;
        let in_groups = whole.in_channels / in_group;
        let mut inputs = channel_splits(in_groups, in_group, in_channels, self.tiles);
        let out_groups = whole.out_channels / out_group;
        let mut outputs = channel_splits(out_groups, out_group, out_channels, self.tiles);
        if !self.candidate.others.is_empty() {
            // Serial input channels would be a serial field in the backward pass, which poplibs
            // cannot run.
            inputs.retain(|split| split.serial == 1);
            // Every weight of a joint plan is used on one tile, in all passes.
            outputs.retain(|split| split.parallel == 1);
        }
        let kernels = self.kernel_splits();
        let groups_per_group = vertex.groups_per_group;
        let groups = parallel_splits(whole.groups / groups_per_group, groups_per_group, self.tiles);
        let batches = parallel_splits(whole.batch, 1, self.tiles);

        for input in &inputs {
            for output in &outputs {
                // poplibs runs one serial loop, over input or over output channels, never both.
                if input.parallel * output.parallel > self.tiles
                    || input.serial.min(output.serial) > 1
                {
                    continue;
                }
                let split = ConvPartition {
                    in_channels: input.parallel,
                    in_channels_serial: input.serial,
                    out_channels: output.parallel,
                    out_channels_serial: output.serial,
                    ..ConvPartition::WHOLE
                };
                let size =
                    ConvPartSize { in_channels: input.size, out_channels: output.size, ..whole };
                for kernel in &kernels {
                    let split = ConvPartition { kernel: kernel.0, ..split };
                    let size = ConvPartSize { kernel: kernel.1, ..size };
                    if split.tiles() <= self.tiles && self.may_win_split(&split, &size) {
                        self.over_groups(split, size, &groups, &batches)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Splits of all kernel dimensions except the innermost, with the part sizes.
    fn kernel_splits(&self) -> Vec<([u64; 3], [u64; 3])> {
        let whole = self.model.whole.kernel;
        let mut found = vec![([1; 3], whole)];
        // poplibs has no code for a split of the innermost kernel dimension (`ConvModel.cpp`
        // constructModel, T12883).
        for dim in 0..self.model.dims - 1 {
            let splits = parallel_splits(whole[dim], 1, self.tiles);
            let extended = found.iter().flat_map(|(parts, sizes)| {
                splits.iter().map(move |split| {
                    let mut parts = *parts;
                    let mut sizes = *sizes;
                    parts[dim] = split.parallel;
                    sizes[dim] = split.size;
                    (parts, sizes)
                })
            });
            found = extended.collect();
        }
        found.retain(|(parts, _)| parts.iter().product::<u64>() <= self.tiles);
        found
    }

    fn over_groups(
        &mut self,
        split: ConvPartition,
        size: ConvPartSize,
        groups: &[AxisSplit],
        batches: &[AxisSplit],
    ) -> Result<(), PlanError> {
        // Splits are in ascending order, so the first that needs too many tiles ends the loop.
        for group in groups {
            let split = ConvPartition { groups: group.parallel, ..split };
            if split.tiles() > self.tiles {
                break;
            }
            let size = ConvPartSize { groups: group.size, ..size };
            for batch in batches {
                let split = ConvPartition { batch: batch.parallel, ..split };
                if split.tiles() > self.tiles {
                    break;
                }
                let mut split = split;
                let mut size = ConvPartSize { batch: batch.size, ..size };
                self.over_field(&mut split, &mut size, 0)?;
            }
        }
        Ok(())
    }

    /// Loops over the splits of dimension `dim` and all inner ones.
    fn over_field(
        &mut self,
        split: &mut ConvPartition,
        size: &mut ConvPartSize,
        dim: usize,
    ) -> Result<(), PlanError> {
        self.search.points += 1;
        if self.search.points > MAX_POINTS {
            return Err(PlanError::SearchTooLarge { limit: MAX_POINTS });
        }
        if dim == self.model.dims {
            self.evaluate_partition(split, size);
            return Ok(());
        }
        let remaining = size.field[dim..self.model.dims].iter().product();
        if !self.may_win(split, size, dim, remaining) {
            return Ok(());
        }
        for index in self.splits_that_may_win(split, size, dim) {
            let AxisSplit { parallel, size: largest, .. } = self.field[dim][index];
            split.field[dim] = parallel;
            size.field[dim] = largest;
            self.over_field(split, size, dim + 1)?;
        }
        // Bounds of the outer dimensions rely on inner ones being whole.
        split.field[dim] = 1;
        size.field[dim] = self.model.whole.field[dim];
        Ok(())
    }

    /// Splits of dimension `dim` for which enough tiles are left. For the innermost dimension, only
    /// those with few enough outputs to win. All quantities in
    /// [`PartitionSearchLoops::is_ruled_out`] decrease with fewer outputs, except the weights,
    /// which are minimal before the split.
    fn splits_that_may_win(
        &self,
        split: &ConvPartition,
        size: &ConvPartSize,
        dim: usize,
    ) -> Range<usize> {
        let splits = &self.field[dim];
        let tiles = self.tiles / split.tiles();
        let end = splits.partition_point(|split| split.parallel <= tiles);
        if dim + 1 < self.model.dims {
            return 0..end;
        }
        let most = self.best.cycle_limit();
        let mut size = *size;
        let start = splits[..end].partition_point(|at| {
            size.field[dim] = at.size;
            self.is_ruled_out(split, &size, &self.model.elements(&size), most)
        });
        start..end
    }

    /// Returns true if some split of groups, batch and field may win.
    fn may_win_split(&self, split: &ConvPartition, size: &ConvPartSize) -> bool {
        let grain = self.model.grain.groups;
        let field: u64 = size.field[..self.model.dims].iter().product();
        let remaining = field * size.batch * (size.groups / grain);
        self.may_win(split, &ConvPartSize { groups: grain, batch: 1, ..*size }, 0, remaining)
    }

    /// Returns true if some split of the dimensions from `dim` on, which have `remaining` outputs,
    /// may fit the memory and beat the best plan. Even with all remaining tiles on these
    /// dimensions, a tile has its share of the outputs.
    fn may_win(
        &self,
        split: &ConvPartition,
        size: &ConvPartSize,
        dim: usize,
        remaining: u64,
    ) -> bool {
        let dims = self.model.dims;
        let share = remaining.div_ceil(self.tiles / split.tiles());
        let mut fewest = *size;
        fewest.field[dim..dims].fill(1);
        // Only the product matters below, so one dimension takes all of it.
        fewest.field[dims - 1] *= share;
        if self.model.conv_bytes_lower_bound(&fewest, dim) > self.memory_bound {
            return false;
        }
        let outputs = fewest.field[..dims].iter().product::<u64>()
            * size.batch
            * size.out_channels
            * size.groups;
        let partials = self.model.first_reduce_exchange(Elements(outputs));
        // One output in this many is active, regardless of the rounding of dimensions.
        let steps: u64 = (dim..dims).map(|dim| self.model.context.dilation[dim]).product();
        let mut context = self.model.context;
        context.dilation[dim..dims].fill(1);
        fewest.field[dims - 1] = fewest.field[dims - 1].div_ceil(steps);
        let vertices = vertex_cycles_lower_bound(&context, &self.model.vertex_work(&fewest));
        split.serial() * (vertices + partials + self.layout_all_tiles) <= self.best.cycle_limit()
    }

    /// Evaluates one complete split.
    fn evaluate_partition(&mut self, split: &ConvPartition, size: &ConvPartSize) {
        let most = self.best.cycle_limit();
        let elements = self.model.elements(size);
        if self.is_ruled_out(split, size, &elements, most) {
            return;
        }
        let Some(calculate) = self.model.compute_cycles(split, size) else { return };
        if calculate.saturating_mul(split.serial()) > most {
            return;
        }
        let estimate = self.model.estimate(split, size, calculate);
        let mut found = EstimatedPartition {
            candidate: self.candidate.number,
            partition: *split,
            estimate,
            total_cycles: estimate.total_cycles,
            temp_bytes: estimate.temp_bytes,
        };
        for other in &self.candidate.others {
            let split = (other.partition)(split, self.model.dims);
            let size = (other.size)(size, self.model.dims);
            let Some(calculate) = other.model.compute_cycles(&split, &size) else { return };
            let estimate = other.model.estimate(&split, &size, calculate);
            // Passes run one after the other: cycles are added, temporaries are not.
            found.total_cycles += estimate.total_cycles;
            found.temp_bytes = found.temp_bytes.max(estimate.temp_bytes);
        }
        if found.temp_bytes <= self.memory_bound {
            self.best.offer(found);
        }
    }

    /// Returns true if memory or the cheaply computed parts of the cost exclude a split.
    fn is_ruled_out(
        &self,
        split: &ConvPartition,
        size: &ConvPartSize,
        elements: &ConvPartElements,
        most: Cycles,
    ) -> bool {
        if self.model.conv_bytes(size, elements) > self.memory_bound {
            return true;
        }
        let operands = self.model.operand_exchange(split, elements);
        let partials = self.model.first_reduce_exchange(elements.outputs);
        let exchange = operands.inputs + operands.weights + partials + self.layout_all_tiles;
        let vertices =
            vertex_cycles_lower_bound(&self.model.context, &self.model.vertex_work(size));
        (exchange + vertices).saturating_mul(split.serial()) > most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_smallest_split_of_each_size_is_tried() {
        let parts = |grains, most| {
            parallel_splits(grains, 1, most).iter().map(|split| split.parallel).collect::<Vec<_>>()
        };
        assert_eq!(parts(7, 100), [1, 2, 3, 4, 7]);
        assert_eq!(parts(7, 3), [1, 2, 3]);
        assert_eq!(parts(1, 9), [1]);
    }

    #[test]
    fn serial_splits_divide_the_unpadded_channels() {
        let splits = channel_splits(13, 8, 100, 1472);
        assert!(splits.iter().all(|split| 100 % split.serial == 0));
        assert!(splits.contains(&AxisSplit { parallel: 1, serial: 2, size: 56 }));
        // Six parts contain three grains each at most, as do five, so five is used.
        assert!(!splits.iter().any(|split| split.parallel * split.serial == 6));
    }
}
