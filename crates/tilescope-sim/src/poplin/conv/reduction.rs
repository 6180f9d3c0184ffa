//! Addition of partial sums, or their cast if there is nothing to add.

use super::operand_routes::{OperandPattern, OperandTransfer};
use super::pass_lowering::ConvPassLowering;
use super::tile_parts::{ConvAxis, length};
use super::work_builder::{OperandExchangeFlow, vertex_on};
use crate::poplin::estimate::reduce;
use crate::poplin::estimate::reduce::ConvReduceStage;
use crate::poplin::planner::ConvPlan;
use crate::poplin::planner::vertex_candidates::ConvMethod;
use crate::popops::elementwise::vector_width;
use crate::poputil::list_length;
use crate::poputil::split_regions::{SplitBounds, split_evenly};
use crate::shape::DType;
use std::ops::Range;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements};

impl ConvPassLowering<'_> {
    /// Adds the stages of the reduction, or the cast if there is one partial sum per output.
    /// Partial sums exist since phase `partials_at`.
    pub(super) fn reduce(&mut self, partials_at: usize) {
        let split = &self.plan.partition;
        let partials = self.plan.vertex.partial_type;
        let serial_inputs = split.in_channels_serial > 1;
        // Slices still have to be added: narrowing each sum would round once per iteration.
        let output = if serial_inputs { partials } else { self.plan.params.output_type };
        let depth = split.reduction_depth();
        // Otherwise the vertices write the result itself, which `result_memory_constraint` places.
        let kept = depth > 1 || partials != output || split.serial() > 1;
        let made = self.per_tile(|part| self.layout.partials(part));
        if depth > 1 {
            self.reduce_stages(&made, depth, output);
        } else if partials != output {
            self.cast("Cast", &made, [partials, output]);
        }
        if kept {
            let method = self.plan.vertex.method;
            let interleaved = matches!(method, ConvMethod::Amp { .. } | ConvMethod::Slic { .. });
            let bytes: Vec<Bytes> = made.iter().map(|made| *made * partials.bytes()).collect();
            let name = format!("{}/partials", self.name);
            self.builder.temporary(
                name,
                MemoryCategory::Variable,
                interleaved,
                partials_at,
                &bytes,
            );
        }
    }

    /// Adds the cast of `elements` of each tile from one type to another.
    pub(super) fn cast(&mut self, what: &str, elements: &[Elements], [from, to]: [DType; 2]) {
        let cycles =
            elements.iter().map(|&count| reduce::cast_cycles(self.machine, count, from, to));
        let cycles: Vec<Cycles> = cycles.collect();
        let kind = format!("popops::Cast1D<{},{}>", from.poplar_name(), to.poplar_name());
        let vertices =
            vec![vertex_on(kind, elements.iter().map(|count| u64::from(!count.is_zero())), 2)];
        self.builder.compute(format!("{}/{what}", self.name), &cycles, vertices);
    }

    fn reduce_stages(&mut self, made: &[Elements], depth: u64, output: DType) {
        let partials = self.plan.vertex.partial_type;
        let grain = reduction_grain(self.plan, output);
        let parts = made.iter().zip(&self.layout.parts);
        let stages: Vec<Vec<ConvReduceStage>> =
            parts.map(|(made, part)| executed_stages(*made, depth, part.member, grain)).collect();
        let count = stages.iter().map(Vec::len).max().unwrap_or(0);
        for index in 0..count {
            let stage: Vec<ConvReduceStage> =
                stages.iter().filter_map(|stages| stages.get(index).copied()).collect();
            let to = if index + 1 == count { output } else { partials };
            let pattern = self.pattern_of_stage(depth, index);
            let name = format!("{}/Reduce{index}", self.name);
            self.reduce_stage(name, &stage, pattern, [partials, to]);
        }
    }

    /// Senders and receivers of a stage of a reduction of `depth` partial sums. In the first stage
    /// every tile has partial sums of all outputs. Later stages begin with the distributed sums of
    /// the stage before.
    fn pattern_of_stage(&self, depth: u64, index: usize) -> OperandPattern {
        let stages = reduce::stage_depths(depth);
        let sums = stages.first().copied().unwrap_or(1);
        match self.layout.reduction_groups(sums) {
            Some(groups) if index == 0 => OperandPattern::Partials(groups),
            _ => OperandPattern::Within(
                self.layout.tile_groups(&[ConvAxis::InChannels, ConvAxis::Kernel]),
            ),
        }
    }

    /// Adds a stage in which every tile gathers the partial sums of its share of the outputs and
    /// adds them.
    fn reduce_stage(
        &mut self,
        name: String,
        stages: &[ConvReduceStage],
        pattern: OperandPattern,
        [from, to]: [DType; 2],
    ) {
        let machine = self.machine;
        let start = self.builder.phase_count();
        let mut flows = Vec::new();
        let mut buffers = Vec::new();
        for stage in stages {
            // One of the partial sums was computed here.
            let received = (stage.depth - 1) * stage.outputs * from.bytes();
            let messages = if received.is_zero() { 0 } else { stage.depth - 1 };
            flows.push(OperandExchangeFlow {
                received,
                sent: received,
                // The number of tiles that need a share from this one equals the number of shares
                // it receives.
                messages_in: messages,
                messages_out: messages,
                ..OperandExchangeFlow::default()
            });
            buffers.push(received);
        }
        let operand = OperandTransfer { flows, pattern };
        self.builder.exchange(machine, format!("{name}/ExchangePre"), &[operand]);
        let cycles = stages.iter().map(|stage| match *stage {
            ConvReduceStage { outputs: Elements::ZERO, .. } => Cycles::ZERO,
            // A depth that does not divide evenly leaves tiles with a single partial sum, which
            // still has to be converted to the type of the stage's result.
            ConvReduceStage { depth: 1, outputs, .. } => {
                reduce::cast_cycles(machine, outputs, from, to)
            }
            _ => reduce::stage_cycles(machine, stage, from, to),
        });
        let cycles: Vec<Cycles> = cycles.collect();
        let vertices = [true, false].map(|single| {
            let kind = format!(
                "poplin::ReduceAdd<{},{},{single},false>",
                to.poplar_name(),
                from.poplar_name()
            );
            let present = stages.iter().map(|stage| {
                let is_single = reduce::is_single_input(machine, stage, from);
                u64::from(!stage.outputs.is_zero() && is_single == single)
            });
            vertex_on(kind, present, 3)
        });
        let vertices = vertices.into_iter().filter(|vertex| !vertex.count.is_empty()).collect();
        self.builder.compute(name.clone(), &cycles, vertices);
        self.builder.temporary(
            format!("{name}/message"),
            MemoryCategory::Message,
            false,
            start,
            &buffers,
        );
    }
}

/// Returns the stages of a reduction of `depth` partial sums on tile `member` of the tiles that
/// computed them, with `made` outputs each. Every stage divides the tiles between its sums, and the
/// tiles of each sum take whole grains of the outputs (poplibs `ConvReduce.cpp`
/// partialGroupedReduce).
fn executed_stages(
    Elements(made): Elements,
    depth: u64,
    member: u64,
    grain: u64,
) -> Vec<ConvReduceStage> {
    let mut partials = depth;
    let sums = reduce::stage_depths(depth).into_iter().chain([1]);
    sums.map(|sums| {
        // Sum `at` is computed on tiles from `at * depth / sums` on.
        let at = ((member + 1) * sums - 1) / depth;
        let first = at * depth / sums;
        let end = (at + 1) * depth / sums;
        let added = (at + 1) * partials / sums - at * partials / sums;
        partials = sums;
        let outputs = Elements(length(&reduced_part(made, grain, end - first, member - first)));
        ConvReduceStage { depth: added, outputs, last: sums == 1 }
    })
    .collect()
}

/// Outputs that stay together when sums of type `output` are distributed: a share that ended inside
/// a channel group or a vector would be stored in pieces.
pub(super) fn reduction_grain(plan: &ConvPlan, output: DType) -> u64 {
    plan.vertex.out_chans_per_group.next_multiple_of(vector_width(output))
}

/// The part of `made` outputs that tile `member` of `tiles` adds. The smallest number of tiles that
/// keeps the largest part minimal takes part (poplibs `ConvReduce.cpp` partialGroupedReduce).
pub(super) fn reduced_part(made: u64, grain: u64, tiles: u64, member: u64) -> Range<u64> {
    let bounds = SplitBounds { grain, most: tiles, least: 0 };
    split_evenly(made, bounds).nth(list_length(member)).unwrap_or(made..made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_sums_up_all_outputs_in_whole_grains() {
        for (made, depth, grain) in [(64, 7, 16), (968, 15, 8), (5698, 23, 8), (640, 130, 16)] {
            let members: Vec<_> = (0..depth)
                .map(|member| executed_stages(Elements(made), depth, member, grain))
                .collect();
            let mut partials = depth;
            for stage in 0..members[0].len() {
                let at = |member: &Vec<ConvReduceStage>| member[stage];
                let added: Elements = members.iter().map(at).map(|at| at.depth * at.outputs).sum();
                assert_eq!(added, Elements(partials * made));
                partials = members.iter().map(at).map(|at| at.outputs).sum::<Elements>().0 / made;
            }
            assert_eq!(partials, 1);
        }
    }
}
