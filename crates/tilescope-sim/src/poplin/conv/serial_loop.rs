//! Serial loop of a pass: slices of its operands, and treatment of its results.

use super::operand_preparation::piece_cycles;
use super::operand_rearrangement::{self, deal, spread};
use super::operand_routes::OperandTransfer;
use super::pass_lowering::{ConvOperand, ConvPassLowering, ConvPassOperands, OperandSource};
use super::work_builder::{OperandExchangeFlow, vertex_on};
use crate::cost_constants::RAGGED_PIECE_COPY_CYCLES;
use crate::popops::planner_cycles;
use crate::shape::gcd;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Bytes of a loop counter.
const COUNTER_BYTES: Bytes = Bytes(4);

/// Returns true if an operand was not laid out for the plan that reads it.
fn is_foreign(source: &OperandSource) -> bool {
    matches!(source, OperandSource::SameInnermost { .. } | OperandSource::Transposed { .. })
}

impl ConvPassLowering<'_> {
    /// Opens the loop. Returns the phase where it begins.
    pub(super) fn begin_serial(&mut self, operands: &ConvPassOperands) -> usize {
        self.rearrange_before_slice(operands);
        let before = self.builder.phase_count();
        self.builder.begin_loop(self.plan.partition.serial());
        self.slice();
        before
    }

    /// Moves operands that were not laid out for this plan into its layout before the loop, because
    /// they would otherwise be sliced across tiles. The pieces are the greatest common divisor of
    /// groups and slices of channels.
    fn rearrange_before_slice(&mut self, operands: &ConvPassOperands) {
        let split = &self.plan.partition;
        let view = &self.plan.transformed.view;
        let is_moved = [
            split.in_channels_serial > 1 && is_foreign(&operands.input),
            is_foreign(&operands.weights),
        ];
        let mut elements = Elements::ZERO;
        if is_moved[0] {
            elements += view.input_elements();
        }
        if is_moved[1] {
            elements += view.weight_elements();
        }
        let bytes = spread(elements * self.element_bytes(), Bytes(8), self.machine.tiles.into());
        let name = format!("{}/rearrangedBeforeSlice", self.name);
        let start = self.builder.phase_count();
        let pattern = self.moves_to_slices(is_moved, &bytes);
        self.relocate(&name, &bytes, pattern, true);
        self.gather_slices(&name, &bytes);
        operand_rearrangement::temporary(&mut self.builder, name, start, &bytes);
    }

    /// Adds the copies in pieces for slices of channels that are not whole groups.
    pub(super) fn gather_slices(&mut self, name: &str, bytes: &[Bytes]) {
        let view = &self.plan.transformed.view;
        let group = self.plan.vertex.in_chans_per_group;
        // A slice that ends inside a group leaves pieces that do not fit a whole copy.
        let piece = gcd(group, view.in_channels / self.plan.partition.in_channels_serial);
        if piece == group {
            return;
        }
        let element = self.element_bytes();
        let pieces = bytes.iter().map(|bytes| (*bytes / element).div_ceil(piece));
        let cycles: Vec<Cycles> = pieces.map(piece_cycles).collect();
        self.builder.copies(format!("{name}/OnTileCopy-1"), &cycles, &[]);
    }

    /// Adds the slices of the operands of one serial iteration.
    fn slice(&mut self) {
        let split = &self.plan.partition;
        let machine = self.machine;
        let params = &self.plan.params;
        let view = &self.plan.transformed.view;
        let serial = split.serial();
        // Serial output channels use the whole input every time, so only weights are sliced.
        let inputs =
            if split.in_channels_serial > 1 { view.input_elements() } else { Elements::ZERO };
        let tensors = [
            ("input", deal((inputs / serial).0, 1, self.tiles())),
            ("weights", deal((view.weight_elements() / serial).0, 1, self.tiles())),
        ];
        if split.in_channels_serial > 1 {
            self.slice_place(ConvOperand::Input, &tensors[0].1);
        }
        self.slice_place(ConvOperand::Weights, &tensors[1].1);
        let mut cycles = vec![Cycles::ZERO; self.layout.parts.len()];
        for (_, elements) in &tensors {
            for (cycles, elements) in cycles.iter_mut().zip(elements) {
                if *elements > 0 {
                    let elements = Elements(*elements);
                    *cycles += planner_cycles::dynamic_slice(machine, elements, params.input_type);
                }
            }
        }
        let from = self.builder.phase_count();
        let name = format!("{}/serialSlice[0]", self.name);
        // The offset of a slice is known only at run time, and the counter is on one tile.
        self.send_counter(&name);
        let kind = format!("popops::DynamicSlice1d<{}>", params.input_type.poplar_name());
        let vertices =
            vec![vertex_on(kind, cycles.iter().map(|cycles| u64::from(!cycles.is_zero())), 3)];
        self.builder.compute(format!("{name}/DynamicSlice"), &cycles, vertices);
        for (tensor, elements) in tensors {
            let bytes: Vec<Bytes> =
                elements.iter().map(|elements| *elements * params.input_type.bytes()).collect();
            let name = format!("{}/{tensor}SerialSlice[0]", self.name);
            self.builder.temporary(name, MemoryCategory::Variable, false, from, &bytes);
        }
    }

    /// Adds the exchange that sends the loop counter to every tile.
    fn send_counter(&mut self, name: &str) {
        let receiver = OperandExchangeFlow {
            received: COUNTER_BYTES,
            messages_in: 1,
            ..OperandExchangeFlow::default()
        };
        let mut flows = vec![receiver; self.layout.parts.len()];
        if let Some(first) = flows.first_mut() {
            *first = OperandExchangeFlow { sent: COUNTER_BYTES, ..OperandExchangeFlow::default() };
        }
        let operand = OperandTransfer::unknown(flows);
        self.builder.exchange(self.machine, format!("{name}/ExchangePre"), &[operand]);
    }

    /// Writes or adds the result of one iteration, and ends the loop.
    pub(super) fn end_serial(&mut self, before_loop: usize) {
        let split = &self.plan.partition;
        let depth = split.reduction_depth();
        let outputs = self.per_tile(|part| self.layout.partials(part).div_ceil(depth));
        let partials = self.plan.vertex.partial_type;
        let output = self.plan.params.output_type;
        // Slices of input channels add into one result of partials, whereas slices of output
        // channels each write their own part of it.
        let (name, data_type) = if split.in_channels_serial > 1 {
            (self.accumulate(&outputs), partials)
        } else {
            (self.write_slice(&outputs), output)
        };
        // The result is live from before the loop on: every iteration writes its part of the same
        // memory.
        let element = split.out_channels_serial * data_type.bytes();
        let result: Vec<Bytes> = outputs.iter().map(|outputs| *outputs * element).collect();
        self.builder.temporary(name, MemoryCategory::Variable, false, before_loop, &result);
        self.builder.end_loop();
        if data_type != output {
            self.cast("CastSerialOut", &outputs, [data_type, output]);
        }
    }

    /// Adds the result of one slice of the input channels. Returns the name of the sum.
    fn accumulate(&mut self, outputs: &[Elements]) -> String {
        let data_type = self.plan.vertex.partial_type;
        let name = format!("{}/serialOut[0]", self.name);
        let cycles = outputs
            .iter()
            .map(|&count| planner_cycles::add_in_place(self.machine, count, data_type));
        let cycles: Vec<Cycles> = cycles.collect();
        let element = data_type.poplar_name();
        let kind = format!(
            "popops::BinaryOp1DInPlaceSupervisor<popops::expr::BinaryOpType::ADD,{element}>"
        );
        let vertices = vec![vertex_on(kind, outputs.iter().map(|_| 1), 2)];
        self.builder.compute(name.clone(), &cycles, vertices);
        name
    }

    /// Writes the result of one slice of the output channels. Returns the name of the result.
    fn write_slice(&mut self, outputs: &[Elements]) -> String {
        let data_type = self.plan.params.output_type;
        let name = format!("{}/serialUpdate[0]", self.name);
        self.send_counter(&name);
        let group = self.plan.vertex.out_chans_per_group;
        // The ragged last group is copied in pieces, in and out.
        let ragged = !self.layout.slice.out_channels.is_multiple_of(group);
        let copies = if ragged { 2.0 * RAGGED_PIECE_COPY_CYCLES.ratio() } else { 0.0 };
        let mut cycles = Vec::new();
        for (outputs, part) in outputs.iter().zip(&self.layout.parts) {
            let positions = part.field_elements() * part.batch * part.groups.size;
            let copied = Cycles::from_f64((positions as f64 * copies).round());
            cycles.push(planner_cycles::dynamic_slice(self.machine, *outputs, data_type) + copied);
        }
        let kind = format!("popops::DynamicUpdateSlice1D<{}>", data_type.poplar_name());
        let vertices = vec![vertex_on(kind, outputs.iter().map(|_| 1), 2)];
        self.builder.compute(name.clone(), &cycles, vertices);
        name
    }
}
