//! Operands that lie otherwise than the vertices need them, before and after a pass.

use super::build::{Flow, copies, messages};
use super::layout::weight_shares;
use super::pass::{Destination, Operand, Operands, Pass, Rearranged, Source};
use super::rearrange::{self, Blocks, Transposition, regroup_grain};
use crate::report::Category;
use crate::sim::lower::constants::{COMBINED_GROUPS_CYCLES, PIECE_GATHER_CYCLES};
use crate::sim::planner::Plan;
use crate::sim::planner::ranges::gcd;

/// More users than this, and an operand in another layout is rearranged once before it is sent
/// to them (poplibs `Convolution.cpp` inViewMaxBroadcastDests).
const MOST_VIEW_USERS: u64 = 7;

impl Pass<'_> {
    /// The backward pass turns the forward weights around: blocks are transposed where they are,
    /// then sent to where they are needed.
    pub(super) fn transpose_weights(&mut self, operands: &Operands) {
        let Source::ForwardWeights(forward) = operands.weights else { return };
        let transposed_at = self.builder.position();
        let stored = weight_shares(self.machine, forward);
        let transposed = self.transpose_blocks(forward, &stored);
        let name = format!("{}/bwdWeights", self.name);
        let from = self.builder.position();
        if self.plan.joint {
            if transposed {
                self.add_rearranged(Operand::Weights, name, transposed_at, stored);
            }
            return;
        }
        let bytes = weight_shares(self.machine, self.plan);
        rearrange::relocate(&mut self.builder, self.machine, &name, &bytes, true);
        if transposed {
            let name = format!("{}/WeightsTranspose", self.name);
            let live = transposed_at..from + 1;
            self.builder.temporary_until(name, Category::Rearrangement, false, live, &stored);
        }
        self.add_rearranged(Operand::Weights, name, from, bytes);
    }

    /// Transposes the blocks of the forward weights on their tiles, if there are any.
    fn transpose_blocks(&mut self, forward: &Plan, stored: &[u64]) -> bool {
        let Some(blocks) = weight_blocks(forward, self.plan) else { return false };
        let element = self.element_bytes();
        let counts = stored.iter().map(|bytes| blocks.count(bytes / element)).collect();
        let name = format!("{}/WeightsTranspose", self.name);
        let data_type = self.plan.params.input_type;
        let tensors = [Transposition { blocks, counts }];
        rearrange::transpose(&mut self.builder, self.machine, name, data_type, &tensors);
        true
    }

    fn add_rearranged(&mut self, operand: Operand, name: String, from: usize, bytes: Vec<u64>) {
        self.rearranged.push(Rearranged { operand, name, from, bytes });
    }

    /// Combining groups copies operands in ways that are not public.
    pub(super) fn combine_groups(&mut self) {
        if self.plan.transform().combine_groups > 1 {
            let cycles = vec![COMBINED_GROUPS_CYCLES; self.layout.parts.len()];
            let vertices = copies(self.machine, &cycles);
            let name = format!("{}/combineConvGroups/OnTileCopy-0", self.name);
            self.builder.compute(name, &cycles, vertices);
        }
    }

    /// Operands that lie otherwise than the vertices need them are rearranged once, before they
    /// are sent to all users.
    pub(super) fn rearrange(&mut self, operands: &Operands) {
        let transform = self.plan.transform();
        let reshapes =
            !transform.expand_dims.is_empty() || !transform.flatten_to_channels.is_empty();
        let (inputs, weights) = self.operand_shares();
        if self.plan.options.pass.is_weight_update() {
            if self.plan.partition.in_channels_serial > 1 {
                let both: Vec<u64> = inputs.iter().zip(&weights).map(|(a, b)| a + b).collect();
                self.gather_slices(&format!("{}/preRegroup", self.name), &both);
            }
            self.regroup(operands);
            self.rearrange_both(inputs, weights);
            return;
        }
        if reshapes {
            let name = format!("{}/preRegroup", self.name);
            rearrange::relocate(&mut self.builder, self.machine, &name, &inputs, true);
            self.rearrange_both(inputs, weights);
        } else {
            self.regroup(operands);
            let (input_users, weight_users) = self.users();
            let moved = |source: &Source, users: u64, bytes: Vec<u64>| match source {
                Source::Transposed { .. } => bytes,
                Source::Elsewhere if users > MOST_VIEW_USERS => bytes,
                _ => vec![0; bytes.len()],
            };
            let inputs = moved(&operands.input, input_users, inputs);
            let weights = moved(&operands.weights, weight_users, weights);
            self.rearrange_both(inputs, weights);
        }
        self.pad_channels();
    }

    /// Operands with another dimension innermost are turned around where groups allow it.
    fn regroup(&mut self, operands: &Operands) {
        let padded = &self.layout.padded;
        let elements = [padded.input_elements(), padded.weight_elements()];
        let tensors: Vec<Transposition> = [operands.input, operands.weights]
            .iter()
            .zip(elements)
            .filter_map(|(source, elements)| self.transposition(source, elements))
            .collect();
        if tensors.is_empty() {
            return;
        }
        let names = ["preRegroup", "Transpose_#0"].map(|what| format!("{}/{what}", self.name));
        let data_type = self.plan.params.input_type;
        rearrange::regroup(&mut self.builder, self.machine, names, data_type, &tensors);
    }

    /// The blocks of a transposed operand.
    fn transposition(&self, source: &Source, elements: u64) -> Option<Transposition> {
        let Source::Transposed { group } = *source else { return None };
        let grain = regroup_grain(self.plan.params.input_type);
        let to = self.plan.vertex.in_chans_per_group;
        if !to.is_multiple_of(grain) {
            return None;
        }
        let from = if group.is_multiple_of(grain) { group } else { grain };
        let blocks = Blocks { from, to };
        Some(Transposition::dealt(blocks, elements, self.machine.tiles, grain))
    }

    /// Brings both operands, or what moves of them, into the plan's layout.
    fn rearrange_both(&mut self, inputs: Vec<u64>, weights: Vec<u64>) {
        let has = |bytes: &[u64]| bytes.iter().any(|bytes| *bytes > 0);
        let what = match (has(&inputs), has(&weights)) {
            (true, true) => "{actsRearranged,weightsRearranged}",
            (true, false) => "actsRearranged",
            (false, true) => "weightsRearranged",
            (false, false) => return,
        };
        let name = format!("{}/{what}", self.name);
        let from = self.builder.position();
        let both: Vec<u64> = inputs.iter().zip(&weights).map(|(a, b)| a + b).collect();
        rearrange::relocate(&mut self.builder, self.machine, &name, &both, false);
        for (operand, what, bytes) in [
            (Operand::Input, "actsRearranged", inputs),
            (Operand::Weights, "weightsRearranged", weights),
        ] {
            let name = format!("{}/{what}", self.name);
            self.add_rearranged(operand, name, from, bytes);
        }
    }

    /// Where groups do not divide the channels, operands are stored in smaller pieces and
    /// gathered: by every user if there are few, else once.
    fn pad_channels(&mut self) {
        let channels = self.layout.slice.in_channels;
        let group = self.plan.vertex.in_chans_per_group;
        if channels.is_multiple_of(group) {
            return;
        }
        let piece = gcd(group, channels);
        let (input_users, weight_users) = self.users();
        let (inputs, weights) = self.operand_shares();
        let element = self.element_bytes();
        let gathered = |users: u64, share: &[u64], whole: Vec<u64>| {
            if users > MOST_VIEW_USERS {
                (share.to_vec(), share.iter().map(|bytes| bytes / element).collect())
            } else {
                (vec![0; whole.len()], whole)
            }
        };
        let whole_inputs = self.per_tile(|part| self.layout.inputs(part));
        let whole_weights = self.per_tile(|part| self.layout.weights(part));
        let (moved, input_elements) = gathered(input_users, &inputs, whole_inputs);
        let (moved_weights, weight_elements) = gathered(weight_users, &weights, whole_weights);
        let flow = moved.iter().zip(&moved_weights).map(|(inputs, weights)| Flow {
            received: inputs + weights,
            sent: inputs + weights,
            messages_in: messages(inputs + weights),
            paired: false,
        });
        let name = format!("{}/padding", self.name);
        let flow: Vec<Flow> = flow.collect();
        self.builder.exchange(self.machine, format!("{name}/ExchangePre"), &[flow]);
        let pieces = |elements: &u64| elements.div_ceil(piece) as f64 * PIECE_GATHER_CYCLES;
        let cycles: Vec<u64> = input_elements
            .iter()
            .zip(&weight_elements)
            .map(|(inputs, weights)| (pieces(inputs) + pieces(weights)).round() as u64)
            .collect();
        let vertices = copies(self.machine, &cycles);
        self.builder.compute(format!("{name}/OnTileCopy-0"), &cycles, vertices);
    }

    /// Brings weight gradients to the weights: with another innermost dimension first, if it
    /// differs, then to their tiles.
    pub(super) fn place_result(&mut self, operands: &Operands) {
        let Destination::Weights(forward) = operands.result else { return };
        if self.plan.joint {
            return;
        }
        let data_type = self.plan.params.output_type;
        let shares = weight_shares(self.machine, forward);
        let start = self.builder.position();
        // Accumulating matrix products turn their result around (poplibs `MatMul.cpp` matMulAcc);
        // weight updates of convolutions with a scale tensor do not.
        let turns =
            self.plan.options.pass.is_fully_connected() && !self.plan.transform().swap_operands;
        if turns {
            let names = ["regroupGradds", "regroupGradds/Transpose"];
            let names = names.map(|what| format!("{}/{what}", self.name));
            let blocks = Blocks {
                from: self.plan.vertex.out_chans_per_group,
                to: forward.vertex.in_chans_per_group,
            };
            let elements = self.plan.params.output_elements();
            let grain = regroup_grain(data_type);
            let tensor = Transposition::dealt(blocks, elements, self.machine.tiles, grain);
            rearrange::regroup(&mut self.builder, self.machine, names, data_type, &[tensor]);
        }
        let name = format!("{}/weightDeltas", self.name);
        rearrange::relocate(&mut self.builder, self.machine, &name, &shares, false);
        rearrange::temporary(&mut self.builder, name, start, &shares);
    }
}

/// Blocks of the weights that turn around between forward and backward pass; `None` where whole
/// weights are copied instead (poplibs `Convolution.cpp` weightsTransposeChansFlipXY and
/// fullyConnectedWeightTranspose).
fn weight_blocks(forward: &Plan, backward: &Plan) -> Option<Blocks> {
    let params = &forward.params;
    let (from, to) = (&forward.vertex, &backward.vertex);
    if forward.options.pass.is_fully_connected() {
        let both_swapped = forward.transform().swap_operands && backward.transform().swap_operands;
        let from = gcd(from.in_chans_per_group, params.in_channels);
        let to = gcd(to.in_chans_per_group, params.out_channels);
        let usable = both_swapped && from > 1 && to > 1;
        return usable.then_some(Blocks { from: to, to: from });
    }
    let out_group = gcd(from.out_chans_per_group, params.out_channels);
    let in_group = gcd(from.in_chans_per_group, params.in_channels);
    let wanted = gcd(to.in_chans_per_group, backward.params.in_channels);
    let rows = if out_group.is_multiple_of(wanted) { wanted } else { out_group };
    (rows > 1).then_some(Blocks { from: rows, to: in_group })
}
