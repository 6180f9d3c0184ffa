//! Preparation of operands whose layout differs from that of the vertices, before and after a pass.

use super::operand_layout::{result_memory_constraint, result_shares, weight_shares};
use super::operand_rearrangement::{self, BlockTransposition, TransposeBlockShape, regroup_grain};
use super::operand_routes::OperandPattern;
use super::pass_lowering::{
    ConvOperand, ConvPassLowering, ConvPassOperands, OperandSource, RearrangedOperand,
    ResultDestination,
};
use super::tile_parts::ConvTilePart;
use crate::cost_constants::RAGGED_PIECE_COPY_CYCLES;
use crate::poplar::work::MemoryConstraint;
use crate::poplin::planner::{ConvPass as PlanPass, ConvPlan};
use crate::shape::gcd;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Number of users above which an operand in another layout is rearranged once before it is sent to
/// them (poplibs `Convolution.cpp` inViewMaxBroadcastDests).
const IN_VIEW_MAX_BROADCAST_DESTS: u64 = 7;

const OPERANDS: [ConvOperand; 2] = [ConvOperand::Input, ConvOperand::Weights];

/// Cycles to copy `pieces` ragged pieces on a tile.
pub(super) fn piece_cycles(pieces: u64) -> Cycles {
    Cycles::from_f64((pieces as f64 * RAGGED_PIECE_COPY_CYCLES.ratio()).round())
}

impl ConvPassLowering<'_> {
    /// Adds the transposition of the forward weights for the backward pass: blocks are transposed
    /// on their tiles, then sent to the tiles that use them.
    pub(super) fn transpose_weights(&mut self, operands: &ConvPassOperands) {
        let OperandSource::ForwardWeights(forward) = operands.weights else { return };
        let transposed_at = self.builder.phase_count();
        // Two steps, as in poplibs: transposing blocks on their tiles needs no exchange and makes
        // the blocks of the following exchange larger, which means fewer messages and less exchange
        // code.
        let stored = weight_shares(self.machine, forward);
        let transposed = self.transpose_blocks(forward, &stored);
        let name = format!("{}/bwdWeights", self.name);
        let from = self.builder.phase_count();
        let swapped = self.plan.transform().swap_operands;
        let operand = if swapped { ConvOperand::Input } else { ConvOperand::Weights };
        if self.plan.joint {
            // A joint plan moves nothing: the backward pass runs on the tiles of the forward
            // weights.
            if transposed {
                self.add_rearranged(operand, name, transposed_at, stored);
            }
            return;
        }
        let bytes = weight_shares(self.machine, self.plan);
        let pattern = self.moves_weights(operand, &bytes);
        self.relocate(&name, &bytes, pattern, true);
        if transposed {
            let name = format!("{}/WeightsTranspose", self.name);
            let live = transposed_at..from + 1;
            self.builder.temporary_until(name, MemoryCategory::Rearrangement, false, live, &stored);
        }
        self.add_rearranged(operand, name, from, bytes);
    }

    /// Transposes the blocks of the forward weights on their tiles. Returns false if there are
    /// none.
    fn transpose_blocks(&mut self, forward: &ConvPlan, stored: &[Bytes]) -> bool {
        let element = self.element_bytes();
        let stored: Vec<Elements> = stored.iter().map(|bytes| Elements(*bytes / element)).collect();
        let Some(blocks) = weight_blocks(forward, self.plan, &stored) else { return false };
        // Otherwise parts of blocks are transposed on other tiles than those that store them.
        let block = blocks.blocks.from * blocks.blocks.to;
        if !stored.iter().zip(&blocks.counts).all(|(stored, count)| stored.0 == count * block) {
            let operand = usize::from(!self.plan.transform().swap_operands);
            self.places.operands[operand] = None;
        }
        let name = format!("{}/WeightsTranspose", self.name);
        let data_type = self.plan.params.input_type;
        let tensors = [blocks];
        operand_rearrangement::transpose(
            &mut self.builder,
            self.machine,
            name,
            data_type,
            &tensors,
        );
        true
    }

    /// Adds the exchange that moves operands to other tiles.
    pub(super) fn relocate(
        &mut self,
        name: &str,
        bytes: &[Bytes],
        pattern: OperandPattern,
        transposing: bool,
    ) {
        let data_type = self.plan.params.input_type;
        operand_rearrangement::relocate(
            &mut self.builder,
            self.machine,
            name,
            data_type,
            bytes,
            pattern,
            transposing,
        );
    }

    fn add_rearranged(
        &mut self,
        operand: ConvOperand,
        name: String,
        from: usize,
        bytes: Vec<Bytes>,
    ) {
        self.rearranged.push(RearrangedOperand { operand, name, from, bytes });
    }

    /// Adds the copies for combined groups, whose blocks of weights are on a diagonal with zeros
    /// around them. They are assembled on the tile in pieces of the input channels of one group.
    pub(super) fn combine_groups(&mut self) {
        if self.plan.transform().combine_groups > 1 {
            // One copy for each run of channels that belong to one group. The rest is zeros.
            let piece = self.plan.params.in_channels;
            let cycles = self.per_tile(|part| piece_cycles(self.layout.weights(part).0 / piece));
            let name = format!("{}/combineConvGroups/OnTileCopy-0", self.name);
            self.builder.copies(name, &cycles, &[]);
        }
    }

    /// Adds the rearrangement of operands in another layout, once, before they are sent to all
    /// users.
    pub(super) fn rearrange(&mut self, operands: &ConvPassOperands) {
        let transform = self.plan.transform();
        let reshapes =
            !transform.expand_dims.is_empty() || !transform.flatten_to_channels.is_empty();
        let shares = self.operand_shares();
        // Here both operands always change their innermost dimension, regardless of their users.
        if self.plan.options.pass.is_weight_update() {
            if self.plan.partition.in_channels_serial > 1 {
                let both = shares[0].iter().zip(&shares[1]).map(|(a, b)| *a + *b);
                let both: Vec<Bytes> = both.collect();
                self.gather_slices(&format!("{}/preRegroup", self.name), &both);
            }
            self.regroup(operands);
            self.move_to_plan_layout(operands, [true; 2], shares);
            return;
        }
        // Expanding duplicates elements. poplibs does it once, before the broadcast, even if few
        // tiles need the result.
        if reshapes {
            let name = format!("{}/preRegroup", self.name);
            let pattern = self.expands_input(&shares[0]);
            self.relocate(&name, &shares[0], pattern, true);
            self.move_to_plan_layout(operands, [true; 2], shares);
            return;
        }
        let mut operands = *operands;
        // Backward passes of fully connected layers use operands as they are: rows with five
        // outputs show no phase that would transpose a gradient.
        if self.plan.options.pass != PlanPass::FcTrainingBackward {
            operands.input = self.actual_source(operands.input, ConvOperand::Input);
            operands.weights = self.actual_source(operands.weights, ConvOperand::Weights);
        }
        let operands = &operands;
        self.regroup(operands);
        let ragged = self.is_ragged();
        let users = self.users();
        // An operand in another layout is rearranged by every tile that receives it, which costs
        // exchange code on each. With many users, or isolated elements, one copy before the
        // exchange is cheaper.
        let moves = |source: &OperandSource, users: u64| match source {
            OperandSource::Transposed { .. } | OperandSource::SameInnermost { group: 1 } => true,
            OperandSource::SameInnermost { .. } => users > IN_VIEW_MAX_BROADCAST_DESTS,
            OperandSource::Planned | OperandSource::ForwardWeights(_) => {
                ragged && users > IN_VIEW_MAX_BROADCAST_DESTS
            }
        };
        let moved = [moves(&operands.input, users[0]), moves(&operands.weights, users[1])];
        self.move_to_plan_layout(operands, moved, shares);
    }

    /// Returns the actual layout of an operand that is nominally in the planned layout. If the
    /// groups of the vertex and the channels have no common divisor, channels are in groups of one,
    /// and the dimension around them is actually innermost: the operand is transposed in blocks, or
    /// copied element by element, before it is sent (poplibs `Convolution.cpp` createInputImpl,
    /// convolutionImpl).
    fn actual_source<'s>(
        &self,
        source: OperandSource<'s>,
        operand: ConvOperand,
    ) -> OperandSource<'s> {
        let wanted = self.plan.vertex.in_chans_per_group;
        let channels = self.layout.slice.in_channels;
        let OperandSource::Planned = source else { return source };
        if wanted == 1 || gcd(wanted, channels) > 1 {
            return source;
        }
        let grain = regroup_grain(self.plan.params.input_type);
        match self.around_channels(operand) {
            None => OperandSource::SameInnermost { group: channels },
            Some(group) if group.is_multiple_of(grain) && wanted.is_multiple_of(grain) => {
                OperandSource::Transposed { group, tiles: self.machine.tiles.into() }
            }
            _ => OperandSource::SameInnermost { group: 1 },
        }
    }

    /// Number of contiguous elements around channels in groups of one: the greatest common divisor
    /// of the innermost other dimension and its part on a tile (poplibs `VarStructure.cpp`
    /// detectInnermostGrouping). `None` if there is no such dimension.
    fn around_channels(&self, operand: ConvOperand) -> Option<u64> {
        let padded = &self.layout.padded;
        let parts = &self.layout.parts;
        let largest = |of: &dyn Fn(&ConvTilePart) -> u64| parts.iter().map(of).max().unwrap_or(1);
        let innermost_first = padded.dims.iter().enumerate().rev();
        let mut sizes: Vec<(u64, u64)> = match operand {
            ConvOperand::Input => innermost_first
                .map(|(dim, field)| (field.input, largest(&|part| part.inputs[dim])))
                .chain([(padded.batch, largest(&|part| part.batch))])
                .collect(),
            ConvOperand::Weights => {
                let wanted = self.plan.vertex.out_chans_per_group;
                // In weights, output channels are around the input channels, then the kernel.
                let group = gcd(wanted, self.layout.slice.out_channels);
                let kernels = innermost_first.map(|(_, field)| (field.kernel, field.kernel));
                [(group, group)].into_iter().chain(kernels).collect()
            }
        };
        sizes.retain(|(size, _)| *size > 1);
        sizes.first().map(|(size, on_tile)| gcd(*size, *on_tile))
    }

    /// Adds the transposition of operands with another innermost dimension if their groups allow
    /// it.
    fn regroup(&mut self, operands: &ConvPassOperands) {
        let padded = &self.layout.padded;
        let elements = [padded.input_elements(), padded.weight_elements()];
        let mut tensors = Vec::new();
        let sources = [&operands.input, &operands.weights];
        for (operand, (source, elements)) in
            OPERANDS.into_iter().zip(sources.into_iter().zip(elements))
        {
            let blocks = self.transposition(source, elements);
            tensors.extend(blocks.map(|blocks| (operand, blocks)));
        }
        if tensors.is_empty() {
            return;
        }
        let pattern = self.moves_to_blocks(&tensors);
        let tensors: Vec<BlockTransposition> =
            tensors.into_iter().map(|(_, blocks)| blocks).collect();
        let start = self.builder.phase_count();
        for (source, until) in [operands.input, operands.weights].iter().zip(&mut self.used_until) {
            if matches!(source, OperandSource::Transposed { .. }) {
                *until = Some(start + 1);
            }
        }
        let mut padding = vec![Cycles::ZERO; self.machine.tiles as usize];
        if !self.plan.options.pass.is_weight_update() {
            for tensor in &tensors {
                self.add_padding_cycles(tensor, &mut padding);
            }
        }
        let data_type = self.plan.params.input_type;
        let name = &self.name;
        operand_rearrangement::regroup(
            &mut self.builder,
            self.machine,
            name,
            data_type,
            &tensors,
            pattern,
            &padding,
        );
    }

    /// Adds the cycles of each tile for filling in padding channels: one piece for each of them in
    /// every last block of a row.
    fn add_padding_cycles(&self, tensor: &BlockTransposition, cycles: &mut [Cycles]) {
        let missing = self.layout.padded.in_channels - self.layout.slice.in_channels;
        // Blocks are numbered across rows, so a tile pads one row for each row end among its
        // blocks.
        let blocks_of_row = self.layout.padded.in_channels.div_ceil(tensor.blocks.to);
        let mut first = 0;
        for (cycles, count) in cycles.iter_mut().zip(&tensor.counts) {
            let rows = (first + count) / blocks_of_row - first / blocks_of_row;
            *cycles += piece_cycles(rows * missing);
            first += count;
        }
    }

    /// Returns true if an operand with groups of another innermost dimension is transposed in
    /// blocks. Its groups and those of the vertex must be whole grains. Otherwise it is copied
    /// element by element (poplibs `Convolution.cpp` regroupIfBeneficialForPlan).
    fn is_transposable(&self, group: u64) -> bool {
        let grain = regroup_grain(self.plan.params.input_type);
        group.is_multiple_of(grain) && self.plan.vertex.in_chans_per_group.is_multiple_of(grain)
    }

    /// Returns true if every element of an operand with groups of another innermost dimension is
    /// copied separately. Conv groups that a vertex processes together stay innermost, regardless
    /// of the dimension around them.
    fn lies_singly(&self, group: u64) -> bool {
        self.plan.vertex.groups_per_group == 1 && !self.is_transposable(group)
    }

    /// Returns the blocks of a transposed operand.
    fn transposition(
        &self,
        source: &OperandSource,
        elements: Elements,
    ) -> Option<BlockTransposition> {
        let OperandSource::Transposed { group, tiles } = *source else { return None };
        let to = self.plan.vertex.in_chans_per_group;
        if !self.is_transposable(group) {
            return None;
        }
        Some(BlockTransposition::dealt(
            TransposeBlockShape { from: group, to },
            (elements, self.plan.params.input_type),
            tiles,
            self.machine.tiles.into(),
        ))
    }

    /// Moves the operands marked in `moved` into the plan's layout, with `shares` on each tile, and
    /// copies their ragged pieces there. Pieces of the other operands are counted for the copies of
    /// their users.
    fn move_to_plan_layout(
        &mut self,
        operands: &ConvPassOperands,
        moved: [bool; 2],
        shares: [Vec<Bytes>; 2],
    ) {
        let names =
            ["actsRearranged", "weightsRearranged"].map(|what| format!("{}/{what}", self.name));
        let what = match moved {
            [true, true] => format!("{}/{{actsRearranged,weightsRearranged}}", self.name),
            [true, false] => names[0].clone(),
            _ => names[1].clone(),
        };
        let from = self.builder.phase_count();
        let mut arriving = vec![Bytes::ZERO; self.layout.parts.len()];
        let mut copied = vec![0; self.layout.parts.len()];
        let sources = [&operands.input, &operands.weights];
        for (operand, (source, shares)) in OPERANDS.into_iter().zip(sources.iter().zip(&shares)) {
            if moved[operand as usize] {
                // Both operands are moved in one exchange, so a tile takes the time of all data
                // that arrives.
                arriving.iter_mut().zip(shares).for_each(|(sum, share)| *sum += *share);
                let elements = shares.iter().map(|bytes| Elements(*bytes / self.element_bytes()));
                let pieces = elements.map(|elements| self.pieces_of_share(source, elements));
                copied.iter_mut().zip(pieces).for_each(|(sum, pieces)| *sum += pieces);
                self.used_until[operand as usize].get_or_insert(from + 1);
            } else {
                let pieces = self.per_tile(|part| self.pieces_of_part(source, operand, part));
                self.gathered_pieces.iter_mut().zip(pieces).for_each(|(sum, more)| *sum += more);
                // With the same innermost dimension but other tiles, no share of the operand is on
                // the tiles that use it.
                self.in_place[operand as usize] =
                    !matches!(source, OperandSource::SameInnermost { .. });
            }
        }
        let pattern = self.moves_to_plan([0, 1].map(|at| moved[at].then_some(&*shares[at])));
        self.relocate(&what, &arriving, pattern, false);
        let cycles: Vec<Cycles> = copied.into_iter().map(piece_cycles).collect();
        self.builder.copies(format!("{what}/OnTileCopy-0"), &cycles, &[]);
        for ((operand, name), bytes) in OPERANDS.into_iter().zip(names).zip(shares) {
            if moved[operand as usize] {
                self.add_rearranged(operand, name, from, bytes);
            }
        }
    }

    /// Returns true if groups of the vertex do not divide the channels.
    fn is_ragged(&self) -> bool {
        !self.layout.slice.in_channels.is_multiple_of(self.plan.vertex.in_chans_per_group)
    }

    /// Number of elements of a ragged operand that stay together.
    fn piece(&self, lie_together: u64) -> u64 {
        let group = self.plan.vertex.in_chans_per_group;
        gcd(gcd(group, self.layout.slice.in_channels), lie_together)
    }

    /// Number of pieces of a ragged operand in `elements` of its elements, anywhere in the tensor.
    fn pieces_of_share(&self, source: &OperandSource, Elements(elements): Elements) -> u64 {
        let channels = self.layout.slice.in_channels;
        match *source {
            OperandSource::Transposed { group, .. } if self.lies_singly(group) => elements,
            _ if !self.is_ragged() => 0,
            // Padding was inserted when the operand was transposed.
            OperandSource::Transposed { .. } => 0,
            // In whole rows only the last group is ragged.
            OperandSource::SameInnermost { group } if group == channels => {
                elements.div_ceil(self.layout.padded.in_channels)
            }
            OperandSource::SameInnermost { group } => elements.div_ceil(self.piece(group)),
            OperandSource::Planned | OperandSource::ForwardWeights(_) => {
                elements.div_ceil(self.piece(channels))
            }
        }
    }

    /// Number of pieces of a ragged operand that one part needs.
    fn pieces_of_part(
        &self,
        source: &OperandSource,
        operand: ConvOperand,
        part: &ConvTilePart,
    ) -> u64 {
        let elements = match operand {
            ConvOperand::Input => self.layout.inputs(part),
            ConvOperand::Weights => self.layout.weights(part),
        };
        match *source {
            OperandSource::SameInnermost { group } if group == self.layout.slice.in_channels => {
                let has_end = part.in_channels.real < part.in_channels.size;
                if has_end { elements.0 / part.in_channels.size } else { 0 }
            }
            _ => self.pieces_of_share(source, elements),
        }
    }

    /// Adds the copies of weight gradients to the tiles of the weights: a transposition if the
    /// innermost dimension differs, then an exchange.
    pub(super) fn relocate_weight_gradients(&mut self, operands: &ConvPassOperands) {
        let ResultDestination::Weights(forward) = operands.result else { return };
        if self.plan.joint {
            return;
        }
        // All other plans compute gradients away from the weights; a joint plan computes them in
        // place.
        let data_type = self.plan.params.output_type;
        let shares = weight_shares(self.machine, forward);
        let made = self.builder.phase_count().saturating_sub(1);
        // Accumulating matrix products transpose their result (poplibs `MatMul.cpp` matMulAcc),
        // unlike weight updates of convolutions with a scale tensor.
        let transposes =
            self.plan.options.pass.is_fully_connected() && !self.plan.transform().swap_operands;
        let mut read_until = None;
        if transposes {
            let name = format!("{}/regroupGradds", self.name);
            let blocks = TransposeBlockShape {
                from: self.plan.vertex.out_chans_per_group,
                to: forward.vertex.in_chans_per_group,
            };
            let elements = self.plan.params.output_elements();
            let tiles = self.machine.tiles.into();
            let tensor =
                [BlockTransposition::dealt(blocks, (elements, data_type), self.tiles(), tiles)];
            let bytes: Vec<Bytes> = tensor[0].bytes(data_type).collect();
            let pattern = self.moves_result(&bytes, tensor[0].blocks.to);
            read_until = Some(operand_rearrangement::regroup(
                &mut self.builder,
                self.machine,
                &name,
                data_type,
                &tensor,
                pattern,
                &[],
            ));
        }
        let name = format!("{}/weightDeltas", self.name);
        let group = gcd(forward.vertex.in_chans_per_group, forward.params.in_channels);
        let pattern = self.moves_result(&shares, group);
        operand_rearrangement::relocate(
            &mut self.builder,
            self.machine,
            &name,
            data_type,
            &shares,
            pattern,
            false,
        );
        let interleaved = result_memory_constraint(self.plan) == MemoryConstraint::Interleaved;
        let result = result_shares(self.plan);
        let live = made..read_until.unwrap_or(self.builder.phase_count());
        let category = MemoryCategory::Variable;
        self.builder.temporary_until(name, category, interleaved, live, &result);
    }
}

/// Blocks of the weights that are transposed between forward and backward pass. `None` if whole
/// weights are copied instead (poplibs `Convolution.cpp` weightsTransposeChansFlipXY and
/// fullyConnectedWeightTranspose). `stored` is the number of elements of the forward pass on each
/// tile.
fn weight_blocks(
    forward: &ConvPlan,
    backward: &ConvPlan,
    stored: &[Elements],
) -> Option<BlockTransposition> {
    let params = &forward.params;
    let from = &forward.vertex;
    let to = &backward.vertex;
    if forward.options.pass.is_fully_connected() {
        let both_swapped = forward.transform().swap_operands && backward.transform().swap_operands;
        let found = fully_connected_blocks(forward, backward, stored);
        let usable = both_swapped && found.blocks.from > 1 && found.blocks.to > 1;
        return if usable { Some(found) } else { None };
    }
    let out_group = gcd(from.out_chans_per_group, params.out_channels);
    let in_group = gcd(from.in_chans_per_group, params.in_channels);
    let wanted = gcd(to.in_chans_per_group, backward.params.in_channels);
    // Blocks must not extend beyond a stored group, or the transposition would need an exchange.
    let rows = if out_group.is_multiple_of(wanted) { wanted } else { out_group };
    if rows <= 1 {
        return None;
    }
    let blocks = TransposeBlockShape { from: in_group, to: rows };
    Some(BlockTransposition::in_place(blocks, in_group, stored))
}

/// Blocks of the weights of a fully connected layer: among those that divide the groups of both
/// passes, the ones with the fastest transposition, or the largest in a joint plan (poplibs
/// `Convolution.cpp` pickGroupSizes).
fn fully_connected_blocks(
    forward: &ConvPlan,
    backward: &ConvPlan,
    stored: &[Elements],
) -> BlockTransposition {
    let params = &forward.params;
    let wanted = backward.vertex.in_chans_per_group;
    let largest = TransposeBlockShape {
        from: gcd(forward.vertex.in_chans_per_group, params.in_channels),
        to: gcd(wanted, params.out_channels),
    };
    let mut best = BlockTransposition::in_place(largest, largest.from, stored);
    if backward.joint {
        return best;
    }
    let mut best_score = best.score(params.input_type, largest.to != wanted);
    for from in divisors(largest.from) {
        for to in divisors(largest.to) {
            let blocks = TransposeBlockShape { from, to };
            let blocks = BlockTransposition::in_place(blocks, largest.from, stored);
            let score = blocks.score(params.input_type, to != wanted);
            if score > best_score {
                best = blocks;
                best_score = score;
            }
        }
    }
    best
}

/// Divisors of a number, the largest first.
fn divisors(number: u64) -> impl Iterator<Item = u64> {
    (1..=number).rev().filter(move |divisor| number.is_multiple_of(*divisor))
}

#[cfg(test)]
mod tests {
    use crate::poplin::ConvParams;
    use crate::poplin::conv;
    use crate::poplin::conv::OperandSource;
    use crate::poplin::planner::{ConvOptions, ConvPass, plan};
    use crate::shape::DType;
    use crate::targets::IpuTarget;
    use crate::targets::MK2;

    /// Number of phases of a product that transpose operands in the planned layout.
    fn transposes(channels: u64) -> usize {
        let machine = IpuTarget::all_tiles_of(MK2);
        let params = ConvParams::matmul(DType::Half, 1, 1024, channels, 1024);
        let plan = plan(&machine, &params, &ConvOptions::new(ConvPass::MatMul)).expect("a plan");
        let work = conv::forward(&machine, &plan, OperandSource::Planned, OperandSource::Planned);
        work.phases().iter().filter(|(phase, _)| phase.name.contains("Transpose")).count()
    }

    #[test]
    fn channels_that_no_group_divides_are_transposed_first() {
        assert_eq!([1024, 1025, 1026].map(transposes), [0, 1, 0]);
    }
}
