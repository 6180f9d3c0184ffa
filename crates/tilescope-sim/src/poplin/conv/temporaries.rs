//! Memory of the operands of a pass besides the operands themselves.

use super::pass_lowering::{ConvOperand, ConvPassLowering, RearrangedOperand};
use super::tile_parts::{ConvTilePart, length};
use super::vertices::explicit_dims;
use crate::poplin::planner::vertex_candidates::{ConvMethod, SLIC_WINDOW};
use tilescope_report::MemoryCategory;
use tilescope_report::units::Bytes;

/// Scratch memory of a SLIC vertex besides its second output buffer (poplibs
/// lib/poplin/ConvModel.cpp, as its planner counts it).
const SLIC_SCRATCH_BYTES: Bytes = Bytes(200);

impl ConvPassLowering<'_> {
    /// Adds the copies of operands that vertices read: all data that are not on the tile in one
    /// piece.
    pub(super) fn operand_temporaries(&mut self, name: &str, exchange: usize) {
        let [inputs, weights] = self.arranged_operands().unwrap_or_else(|| self.copied_operands());
        for (operand, what, copied, whole) in [
            (ConvOperand::Input, "acts", inputs, self.per_tile(|part| self.layout.inputs(part))),
            (
                ConvOperand::Weights,
                "weights",
                weights,
                self.per_tile(|part| self.layout.weights(part)),
            ),
        ] {
            let message = format!("{name}/{what}/message");
            // Loads of 128 bits read two memory elements at once (poplibs
            // lib/poplin/codelets/ConvPartial1x1Out.cpp, the last parameter of `weights`).
            let interleaved = operand == ConvOperand::Weights && self.plan.vertex.wide_weight_loads;
            let category = MemoryCategory::Message;
            self.builder.temporary(message, category, interleaved, exchange, &copied);
            // The exchange is the last reader of an operand, unless vertices read parts of it.
            let whole = whole.iter().map(|elements| *elements * self.element_bytes());
            let in_place = copied.iter().zip(whole).any(|(copied, whole)| *copied < whole);
            let end = if in_place { self.builder.phase_count() } else { exchange + 1 };
            self.used_until[operand as usize].get_or_insert(end);
            self.end_rearranged(operand, end);
        }
        if let ConvMethod::Slic { .. } = self.plan.vertex.method {
            self.slic_buffers(exchange);
        }
    }

    /// Bytes of input and of weights that each tile copies.
    fn copied_operands(&self) -> [Vec<Bytes>; 2] {
        let split = &self.plan.partition;
        let vertex = &self.plan.vertex;
        let input_users = split.out_channels;
        let weight_users = self.users()[1];
        // Poplar copies a vertex operand unless a whole region of it is on the tile. Halos come
        // from neighbours, so with halos no region of the input is whole.
        let in_place = [self.in_place[0] && !self.has_halo(), self.in_place[1]];
        let mut input_bytes = Vec::new();
        let mut weight_bytes = Vec::new();
        for (tile, part) in (0u64..).zip(&self.layout.parts) {
            let groups = part.groups.size / vertex.groups_per_group;
            let in_groups = groups * (part.in_channels.size / vertex.in_chans_per_group);
            let out_groups = part.out_channels.size / vertex.out_chans_per_group;
            let inputs = self.layout.inputs(part) * self.element_bytes();
            let weights = self.layout.weights(part) * self.element_bytes();
            // Tiles are numbered with output channels innermost, so these are the users of one
            // input. Field and batch follow, the users of one set of weights.
            let input_user = tile % split.out_channels;
            let weight_user = tile / split.out_channels % weight_users;
            input_bytes.push(if in_place[ConvOperand::Input as usize] {
                copied_bytes(inputs, in_groups, input_users, input_user)
            } else {
                inputs
            });
            let weight_groups = in_groups * out_groups;
            weight_bytes.push(if in_place[ConvOperand::Weights as usize] {
                copied_bytes(weights, weight_groups, weight_users, weight_user)
            } else {
                weights
            });
        }
        [input_bytes, weight_bytes]
    }

    /// Returns true if tiles need input from their neighbours, so that no region is whole.
    fn has_halo(&self) -> bool {
        let split = &self.plan.partition;
        let mut dims = self.layout.slice.dims.iter().enumerate();
        split.kernel_parts() > 1
            || dims.any(|(dim, field)| field.kernel > 1 && split.field[dim] > 1)
    }

    /// Bytes of both operands on each tile if vertices read them with padding and dilation applied,
    /// which excludes reading any part of them in place (poplibs `ConvVertices.cpp`).
    fn arranged_operands(&self) -> Option<[Vec<Bytes>; 2]> {
        let explicit = explicit_dims(self.plan, self.machine);
        if !explicit.contains(&true) {
            return None;
        }
        // Padding takes memory like data: poplibs makes it a variable, because parts that alias one
        // constant zero would be rearranged between exchange and vertices (`ConvVertices.cpp`,
        // T5913).
        let height = self.plan.vertex.kernel_height(self.machine);
        let slic = matches!(self.plan.vertex.method, ConvMethod::Slic { .. });
        let last = self.layout.dims() - 1;
        let kernel = |part: &ConvTilePart, dim: usize| match dim {
            _ if slic && dim == last => length(&part.kernel[dim]).next_multiple_of(SLIC_WINDOW),
            0 if !slic => length(&part.kernel[dim]).next_multiple_of(height),
            _ => length(&part.kernel[dim]),
        };
        let span = |part: &ConvTilePart, dim: usize| match self.layout.slice.dims.get(dim) {
            Some(field) if explicit[dim] => {
                let outputs = length(&part.field[dim]).max(1) - 1;
                let kernel = kernel(part, dim).max(1) - 1;
                let dilation = field.kernel_transform.dilation;
                outputs * field.output_transform.stride + kernel * dilation + 1
            }
            _ => part.inputs[dim],
        };
        let inputs = self.per_tile(|part| {
            let field: u64 = (0..3).map(|dim| span(part, dim)).product();
            let channels = part.in_channels.size * part.groups.size;
            field * part.batch * channels * self.element_bytes()
        });
        let weights = self.per_tile(|part| {
            let kernel: u64 = (0..3).map(|dim| kernel(part, dim)).product();
            let channels = part.in_channels.size * part.out_channels.size * part.groups.size;
            kernel * channels * self.element_bytes()
        });
        Some([inputs, weights])
    }

    /// Ends the lifetime of the rearranged copies of `operand` at phase `end`.
    fn end_rearranged(&mut self, operand: ConvOperand, end: usize) {
        let ended = self.rearranged.extract_if(.., |copy| copy.operand == operand);
        for RearrangedOperand { name, from, bytes, .. } in ended {
            let category = MemoryCategory::Rearrangement;
            self.builder.temporary_until(name, category, false, from..end, &bytes);
        }
    }

    /// Adds the buffers of SLIC vertices, which write every output twice and need scratch memory.
    fn slic_buffers(&mut self, from: usize) {
        let vertex = &self.plan.vertex;
        let bytes = self.per_tile(|part| {
            // The vertex alternates between its outputs and this buffer, so that one instruction
            // loads from one while it stores to the other (`ConvVertices.cpp`, ld2xst64pace). It
            // holds one group of groups.
            let groups = (part.groups.size / vertex.groups_per_group).max(1);
            self.layout.partials(part) * vertex.partial_type.bytes() / groups + SLIC_SCRATCH_BYTES
        });
        let name = format!("{}/outFieldBuffer", self.name);
        self.builder.temporary(name, MemoryCategory::Variable, false, from, &bytes);
    }
}

/// Bytes of an operand of `regions` contiguous regions that user `user` of `users` has to copy.
/// Regions that are entirely in its own share are read in place.
fn copied_bytes(bytes: Bytes, regions: u64, users: u64, user: u64) -> Bytes {
    // A region that crosses from one share into the next is in pieces on both tiles, so it is
    // copied.
    let begin = (user * regions).div_ceil(users);
    let end = (user + 1) * regions / users;
    let whole = end.saturating_sub(begin);
    bytes - bytes * whole / regions.max(1)
}
