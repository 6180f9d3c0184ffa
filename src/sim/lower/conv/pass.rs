//! One pass, phase by phase.

use super::build::{Builder, Flow, copies, messages, vertex_on};
use super::layout::weight_shares;
use super::parts::{Layout, TilePart};
use super::rearrange::{self, Blocks, regroup_grain, spread};
use super::vertices::{self, TileVertex};
use crate::report::Category;
use crate::sim::graph::DType;
use crate::sim::lower::constants::{
    COMBINED_GROUPS_CYCLES, KERNEL_GATHER_CYCLES_PER_BYTE, PIECE_GATHER_CYCLES,
    WEIGHT_ARRANGE_SHARE,
};
use crate::sim::lower::work::{Phase, PhaseKind, Work, WorkItem};
use crate::sim::planner::candidates::Method;
use crate::sim::planner::estimate::{elementwise, reduce};
use crate::sim::planner::ranges::gcd;
use crate::sim::planner::{Machine, Plan};
use crate::units::TileRuns;

/// How an operand lies before the pass.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// As the plan wants it.
    Planned,
    /// On other tiles or in other groups, with the same innermost dimension.
    Elsewhere,
    /// With another dimension innermost, in groups of this size.
    Transposed {
        /// Elements of the innermost dimension that lie together.
        group: u64,
    },
    /// The weights of the forward pass, as its plan wants them: for the backward pass.
    ForwardWeights(&'a Plan),
}

/// Where the result of the pass has to be.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// Where the plan leaves it.
    Planned,
    /// Where the forward pass has its weights: for weight gradients.
    Weights(&'a Plan),
}

/// Operands and result of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// Input: activations, or the left operand of a matrix product.
    pub input: Source<'a>,
    /// Weights, or the right operand.
    pub weights: Source<'a>,
    /// Result.
    pub result: Destination<'a>,
}

/// More users than this, and an operand in another layout is rearranged once before it is sent
/// to them (poplibs `Convolution.cpp` inViewMaxBroadcastDests).
const MOST_VIEW_USERS: u64 = 7;

/// Bytes of scratch memory a SLIC vertex has beside its second output buffer.
const SLIC_SCRATCH_BYTES: u64 = 208;

/// What tiles do in one pass of `plan`.
pub fn lower(machine: &Machine, plan: &Plan, operands: &Operands) -> Work {
    let layout = Layout::of(plan);
    let name = super::layer_name(plan);
    let mut pass = Pass { machine, plan, layout, name, builder: Builder::default() };
    pass.transpose_weights(operands);
    let serial = plan.partition.serial();
    let before_loop = pass.builder.position();
    if serial > 1 {
        pass.builder.begin_loop(serial);
        pass.slice();
    }
    pass.combine_groups();
    pass.rearrange(operands);
    pass.convolve();
    if serial > 1 {
        pass.update(before_loop);
    }
    pass.place_result(operands);
    pass.builder.finish()
}

/// The vertices that add a gradient, scaled, to `bytes` of each tile.
pub fn scaled_add(
    machine: &Machine,
    name: String,
    data_type: DType,
    bytes: &TileRuns<u64>,
) -> WorkItem {
    let cycles =
        bytes.map(|bytes| elementwise::scaled_add(machine, bytes / data_type.bytes(), data_type));
    let element = data_type.poplar_name();
    let vertex = crate::sim::lower::work::VertexUse {
        vertex_type: format!(
            "popops::ScaledAddSupervisor<{element},{element},{element},true,false>"
        ),
        count: bytes.map(|_| 1),
        edges: 2,
        field_bytes: 0,
        constant_bytes: 0,
    };
    WorkItem::Phase(Phase { name, kind: PhaseKind::Compute { cycles, vertices: vec![vertex] } })
}

struct Pass<'a> {
    machine: &'a Machine,
    plan: &'a Plan,
    layout: Layout,
    name: String,
    builder: Builder,
}

impl Pass<'_> {
    fn tiles(&self) -> u64 {
        self.layout.parts.len() as u64
    }

    fn per_tile(&self, of: impl Fn(&TilePart) -> u64) -> Vec<u64> {
        self.layout.parts.iter().map(of).collect()
    }

    fn input_bytes(&self) -> u64 {
        self.layout.padded.input_type.bytes()
    }

    /// Tiles that use the same input, and the same weights.
    fn users(&self) -> (u64, u64) {
        let split = &self.plan.partition;
        (split.out_channels * split.kernel_parts(), split.field_parts() * split.batch)
    }

    /// Bytes of the transformed operands of one serial iteration, spread over the used tiles.
    fn operand_shares(&self) -> (Vec<u64>, Vec<u64>) {
        let padded = &self.layout.padded;
        let share = |elements: u64| spread(elements * self.input_bytes(), 8, self.tiles());
        (share(padded.input_elements()), share(padded.weight_elements()))
    }

    /// The backward pass turns the forward weights around: blocks are transposed where they are,
    /// then sent to where they are needed.
    fn transpose_weights(&mut self, operands: &Operands) {
        let Source::ForwardWeights(forward) = operands.weights else { return };
        let shares = weight_shares(self.machine, forward);
        let element = self.input_bytes();
        let blocks = weight_blocks(self.machine, forward, self.plan);
        let start = self.builder.position();
        if let Some(blocks) = blocks {
            let counts = shares.iter().map(|bytes| blocks.count(bytes / element)).collect();
            let name = format!("{}/WeightsTranspose", self.name);
            let tensors = [(blocks, counts)];
            rearrange::transpose(
                &mut self.builder,
                self.machine,
                name,
                self.plan.params.input_type,
                &tensors,
            );
        }
        if !self.plan.joint {
            let name = format!("{}/bwdWeights", self.name);
            let shares = weight_shares(self.machine, self.plan);
            rearrange::relocate(&mut self.builder, self.machine, &name, &shares, true);
            rearrange::temporary(&mut self.builder, name, start, &shares);
        }
    }

    /// Combining groups copies operands in ways that are not public.
    fn combine_groups(&mut self) {
        if self.plan.transform.combine_groups > 1 {
            let cycles = vec![COMBINED_GROUPS_CYCLES; self.layout.parts.len()];
            let vertices = copies(self.machine, &cycles);
            self.builder.compute(
                format!("{}/combineConvGroups/OnTileCopy-0", self.name),
                &cycles,
                vertices,
            );
        }
    }

    /// Operands that lie otherwise than the vertices need them are rearranged once, before they
    /// are sent to all users.
    fn rearrange(&mut self, operands: &Operands) {
        let transform = &self.plan.transform;
        let update = self.plan.options.pass.is_weight_update();
        let reshapes =
            !transform.expand_dims.is_empty() || !transform.flatten_to_channels.is_empty();
        let (inputs, weights) = self.operand_shares();
        let none = vec![0; inputs.len()];
        if update {
            self.regroup(operands, &inputs, &weights);
            self.rearrange_both(&inputs, &weights);
        } else if reshapes {
            let name = format!("{}/preRegroup", self.name);
            rearrange::relocate(&mut self.builder, self.machine, &name, &inputs, true);
            self.rearrange_both(&inputs, &weights);
        } else {
            self.regroup_operand(&operands.input, &inputs);
            self.regroup_operand(&operands.weights, &weights);
            let (input_users, weight_users) = self.users();
            let moves = |source: &Source, users: u64| {
                let elsewhere = matches!(source, Source::Elsewhere) && users > MOST_VIEW_USERS;
                elsewhere || matches!(source, Source::Transposed { .. })
            };
            let inputs_move = moves(&operands.input, input_users);
            let weights_move = moves(&operands.weights, weight_users);
            let inputs = if inputs_move { &inputs } else { &none };
            let weights = if weights_move { &weights } else { &none };
            self.rearrange_both(inputs, weights);
        }
        if !update {
            self.pad_channels();
        }
    }

    /// Weight updates turn both operands around where groups allow it.
    fn regroup(&mut self, operands: &Operands, inputs: &[u64], weights: &[u64]) {
        let data_type = self.plan.params.input_type;
        let to = self.plan.vertex.in_chans_per_group;
        if !to.is_multiple_of(regroup_grain(data_type)) {
            return;
        }
        let both: Vec<u64> = inputs.iter().zip(weights).map(|(a, b)| a + b).collect();
        let name = format!("{}/preRegroup", self.name);
        rearrange::relocate(&mut self.builder, self.machine, &name, &both, true);
        let tensors: Vec<_> = [(&operands.input, inputs), (&operands.weights, weights)]
            .into_iter()
            .filter_map(|(source, bytes)| self.blocks(source, bytes))
            .collect();
        let name = format!("{}/Transpose_#0", self.name);
        rearrange::transpose(&mut self.builder, self.machine, name, data_type, &tensors);
    }

    fn regroup_operand(&mut self, source: &Source, bytes: &[u64]) {
        let Some(tensor) = self.blocks(source, bytes) else { return };
        let data_type = self.plan.params.input_type;
        let name = format!("{}/preRegroup", self.name);
        rearrange::relocate(&mut self.builder, self.machine, &name, bytes, true);
        let name = format!("{}/Transpose_#0", self.name);
        rearrange::transpose(&mut self.builder, self.machine, name, data_type, &[tensor]);
    }

    /// Blocks of a transposed operand and how many of them each tile has.
    fn blocks(&self, source: &Source, bytes: &[u64]) -> Option<(Blocks, Vec<u64>)> {
        let Source::Transposed { group } = *source else { return None };
        let data_type = self.plan.params.input_type;
        let grain = regroup_grain(data_type);
        let to = self.plan.vertex.in_chans_per_group;
        if !group.is_multiple_of(grain) || !to.is_multiple_of(grain) {
            return None;
        }
        let elements: u64 = bytes.iter().sum::<u64>() / data_type.bytes();
        let blocks = Blocks { from: group, to }.spread(elements, self.machine.tiles, grain);
        let counts = bytes.iter().map(|bytes| blocks.count(bytes / data_type.bytes()));
        Some((blocks, counts.collect()))
    }

    fn rearrange_both(&mut self, inputs: &[u64], weights: &[u64]) {
        let start = self.builder.position();
        let both: Vec<u64> = inputs.iter().zip(weights).map(|(a, b)| a + b).collect();
        let has = |bytes: &[u64]| bytes.iter().any(|bytes| *bytes > 0);
        let what = match (has(inputs), has(weights)) {
            (true, true) => "{actsRearranged,weightsRearranged}",
            (true, false) => "actsRearranged",
            (false, true) => "weightsRearranged",
            (false, false) => return,
        };
        let name = format!("{}/{what}", self.name);
        rearrange::relocate(&mut self.builder, self.machine, &name, &both, false);
        rearrange::temporary(&mut self.builder, name, start, &both);
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
        let element = self.input_bytes();
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

    /// Exchange of operands, vertices, reduction, cast.
    fn convolve(&mut self) {
        let name = format!("{}/Convolve", self.name);
        let exchange_at = self.builder.position();
        let (inputs, weights) = (self.input_flow(), self.weight_flow());
        let broadcast: Vec<u64> = weights.iter().map(|flow| flow.received).collect();
        self.builder.exchange(self.machine, format!("{name}/ExchangePre"), &[inputs, weights]);
        let cycles = self.arrange_cycles(&broadcast);
        let arranging = copies(self.machine, &cycles);
        self.builder.compute(format!("{name}/PreArrange-0"), &cycles, arranging);

        let partials_at = self.builder.position();
        let vertices = vertices::convolve(self.plan, self.machine, &self.layout);
        let cycles: Vec<u64> = vertices.iter().map(|vertex| vertex.cycles).collect();
        self.builder.compute(name.clone(), &cycles, vertices::uses(&vertices));
        self.operand_temporaries(&name, exchange_at);
        self.reduce(partials_at, &vertices);
    }

    /// Input of each tile: the users of a slice hold it together, and halo comes from neighbours.
    fn input_flow(&self) -> Vec<Flow> {
        let split = &self.plan.partition;
        let tiles = self.tiles();
        let padded = &self.layout.padded;
        let even = padded.input_elements() * self.input_bytes() / tiles;
        let paired = split.out_channels.is_multiple_of(2);
        let users = self.users().0;
        self.layout
            .parts
            .iter()
            .map(|part| {
                let bytes = self.layout.inputs(part) * self.input_bytes();
                let held = (bytes / split.out_channels).min(even);
                let shared = users > 1 || bytes > held;
                Flow {
                    received: bytes - held,
                    sent: held,
                    messages_in: if shared { users } else { 0 },
                    paired,
                }
            })
            .collect()
    }

    /// Weights of each tile: the users of a slice hold it together.
    fn weight_flow(&self) -> Vec<Flow> {
        let users = self.users().1;
        self.layout
            .parts
            .iter()
            .map(|part| {
                let bytes = self.layout.weights(part) * self.input_bytes();
                let held = bytes / users;
                Flow {
                    received: bytes - held,
                    sent: held,
                    messages_in: if users > 1 { users } else { 0 },
                    paired: false,
                }
            })
            .collect()
    }

    /// Cycles to arrange received operands for the vertices.
    fn arrange_cycles(&self, broadcast_weights: &[u64]) -> Vec<u64> {
        let gathers = self.layout.slice.kernel_field() > 1;
        let cycles = self.layout.parts.iter().zip(broadcast_weights).map(|(part, weights)| {
            let weights =
                WEIGHT_ARRANGE_SHARE * self.machine.exchange_cycles(*weights, false) as f64;
            let inputs = self.layout.inputs(part) * self.input_bytes();
            let gather = if gathers { KERNEL_GATHER_CYCLES_PER_BYTE * inputs as f64 } else { 0.0 };
            (weights + gather).round() as u64
        });
        cycles.collect()
    }

    /// Copies of operands that vertices read: all that does not lie on the tile in one piece.
    fn operand_temporaries(&mut self, name: &str, from: usize) {
        let split = &self.plan.partition;
        let vertex = &self.plan.vertex;
        let element = self.input_bytes();
        let (input_users, weight_users) = (split.out_channels, self.users().1);
        let mut inputs = Vec::new();
        let mut weights = Vec::new();
        for (tile, part) in (0u64..).zip(&self.layout.parts) {
            let groups = part.groups.size / vertex.groups_per_group;
            let in_groups = groups * (part.in_channels.size / vertex.in_chans_per_group);
            let out_groups = part.out_channels.size / vertex.out_chans_per_group;
            let user = tile % split.out_channels;
            let bytes = self.layout.inputs(part) * element;
            inputs.push(copied_bytes(bytes, in_groups, input_users, user));
            let bytes = self.layout.weights(part) * element;
            let user = tile / split.out_channels % weight_users;
            weights.push(copied_bytes(bytes, in_groups * out_groups, weight_users, user));
        }
        let input_name = format!("{name}/acts/message");
        self.builder.temporary(input_name, Category::Message, false, from, &inputs);
        let weight_name = format!("{name}/weights/message");
        self.builder.temporary(weight_name, Category::Message, false, from, &weights);
        if let Method::Slic { .. } = vertex.method {
            let bytes = self.per_tile(|part| {
                let groups = (part.groups.size / vertex.groups_per_group).max(1);
                self.layout.partials(part) * vertex.partial_type.bytes() / groups
                    + SLIC_SCRATCH_BYTES
            });
            let name = format!("{}/outFieldBuffer", self.name);
            self.builder.temporary(name, Category::Variable, false, from, &bytes);
        }
    }

    /// Stages of the reduction, or the cast where there is one partial sum per output.
    fn reduce(&mut self, partials_at: usize, _vertices: &[TileVertex]) {
        let depth = self.plan.partition.reduction_depth();
        let partials = self.plan.vertex.partial_type;
        let serial_inputs = self.plan.partition.in_channels_serial > 1;
        let output = if serial_inputs { partials } else { self.plan.params.output_type };
        let made = self.per_tile(|part| self.layout.partials(part));
        let bytes: Vec<u64> = made.iter().map(|made| made * partials.bytes()).collect();
        if depth > 1 {
            self.reduce_stages(&made, depth, output);
        } else if partials != output {
            let cycles: Vec<u64> = made
                .iter()
                .map(|made| reduce::cast_cycles(self.machine, *made, partials, output))
                .collect();
            let kind =
                format!("popops::Cast1D<{},{}>", partials.poplar_name(), output.poplar_name());
            let vertices = vec![vertex_on(kind, made.iter().map(|made| u64::from(*made > 0)), 2)];
            self.builder.compute(format!("{}/Cast", self.name), &cycles, vertices);
        }
        let interleaved =
            matches!(self.plan.vertex.method, Method::Amp { .. } | Method::Slic { .. });
        if depth > 1 || partials != output || self.plan.partition.serial() > 1 {
            let name = format!("{}/partials", self.name);
            self.builder.temporary(name, Category::Variable, interleaved, partials_at, &bytes);
        }
    }

    fn reduce_stages(&mut self, made: &[u64], depth: u64, output: DType) {
        let machine = self.machine;
        let partials = self.plan.vertex.partial_type;
        let stages: Vec<Vec<reduce::Stage>> =
            made.iter().map(|made| reduce::stages(*made, depth)).collect();
        let count = stages.iter().map(Vec::len).max().unwrap_or(0);
        for stage in 0..count {
            let name = format!("{}/Reduce{stage}", self.name);
            let from = self.builder.position();
            let received =
                |stage: &reduce::Stage| (stage.depth - 1) * stage.outputs * partials.bytes();
            let flows: Vec<Flow> = stages
                .iter()
                .map(|stages| {
                    let stage = &stages[stage];
                    let bytes = received(stage);
                    Flow {
                        received: bytes,
                        sent: bytes,
                        messages_in: stage.depth - 1,
                        paired: false,
                    }
                })
                .collect();
            let buffers: Vec<u64> = flows.iter().map(|flow| flow.received).collect();
            self.builder.exchange(machine, format!("{name}/ExchangePre"), &[flows]);
            let to = if stage + 1 == count { output } else { partials };
            let cycles: Vec<u64> = stages
                .iter()
                .map(|stages| reduce::stage_cycles(machine, &stages[stage], partials, to))
                .collect();
            let single = |stages: &Vec<reduce::Stage>| {
                reduce::is_single_input(machine, &stages[stage], partials)
            };
            let kind = |single: bool| {
                format!(
                    "poplin::ReduceAdd<{},{},{single},false>",
                    to.poplar_name(),
                    partials.poplar_name()
                )
            };
            let mut vertices = vec![
                vertex_on(kind(true), stages.iter().map(|stages| u64::from(single(stages))), 3),
                vertex_on(kind(false), stages.iter().map(|stages| u64::from(!single(stages))), 3),
            ];
            vertices.retain(|vertex| !vertex.count.is_empty());
            self.builder.compute(name.clone(), &cycles, vertices);
            self.builder.temporary(
                format!("{name}/message"),
                Category::Message,
                false,
                from,
                &buffers,
            );
        }
    }

    /// Slices the operands of one serial iteration.
    fn slice(&mut self) {
        let split = &self.plan.partition;
        let machine = self.machine;
        let params = &self.plan.params;
        let view = &self.layout.transformed.view;
        let serial = split.serial();
        let share = |elements: u64| spread(elements / serial, 1, self.tiles());
        let inputs = if split.in_channels_serial > 1 { view.input_elements() } else { 0 };
        let tensors = [("input", share(inputs)), ("weights", share(view.weight_elements()))];
        let mut cycles = vec![0; self.layout.parts.len()];
        for (_, elements) in &tensors {
            for (cycles, elements) in cycles.iter_mut().zip(elements) {
                if *elements > 0 {
                    *cycles += elementwise::dynamic_slice(machine, *elements, params.input_type);
                }
            }
        }
        let from = self.builder.position();
        let name = format!("{}/serialSlice[0]", self.name);
        self.send_counter(&name);
        let kind = format!("popops::DynamicSlice1d<{}>", params.input_type.poplar_name());
        let vertices = vec![vertex_on(kind, cycles.iter().map(|cycles| u64::from(*cycles > 0)), 3)];
        self.builder.compute(format!("{name}/DynamicSlice"), &cycles, vertices);
        for (tensor, elements) in tensors {
            let bytes: Vec<u64> =
                elements.iter().map(|elements| elements * params.input_type.bytes()).collect();
            let name = format!("{}/{tensor}SerialSlice[0]", self.name);
            self.builder.temporary(name, Category::Variable, false, from, &bytes);
        }
    }

    /// Every tile needs the loop counter.
    fn send_counter(&mut self, name: &str) {
        let flow = |tile: usize| Flow {
            received: if tile == 0 { 0 } else { 4 },
            sent: if tile == 0 { 4 } else { 0 },
            messages_in: u64::from(tile > 0),
            paired: false,
        };
        let flows = (0..self.layout.parts.len()).map(flow).collect();
        self.builder.exchange(self.machine, format!("{name}/ExchangePre"), &[flows]);
    }

    /// Writes or adds the result of one serial iteration, and ends the loop.
    fn update(&mut self, before_loop: usize) {
        let split = &self.plan.partition;
        let machine = self.machine;
        let serial_inputs = split.in_channels_serial > 1;
        let output_type = self.plan.params.output_type;
        let data_type = if serial_inputs { self.plan.vertex.partial_type } else { output_type };
        let depth = split.reduction_depth();
        let outputs = self.per_tile(|part| self.layout.partials(part).div_ceil(depth));
        let from = self.builder.position();
        let name =
            format!("{}/serial{}[0]", self.name, if serial_inputs { "Out" } else { "Update" });
        self.send_counter(&name);
        let group = self.plan.vertex.out_chans_per_group;
        let ragged = !serial_inputs && !self.layout.slice.out_channels.is_multiple_of(group);
        let cycles: Vec<u64> = outputs
            .iter()
            .zip(&self.layout.parts)
            .map(|(outputs, part)| {
                if serial_inputs {
                    return elementwise::add_in_place(machine, *outputs, data_type);
                }
                // The ragged last group is copied in pieces, in and out.
                let positions = part.field_elements() * part.batch * part.groups.size;
                let pieces =
                    if ragged { 2.0 * positions as f64 * PIECE_GATHER_CYCLES } else { 0.0 };
                elementwise::dynamic_slice(machine, *outputs, data_type) + pieces.round() as u64
            })
            .collect();
        let element = data_type.poplar_name();
        let kind = if serial_inputs {
            format!(
                "popops::BinaryOp1DInPlaceSupervisor<popops::expr::BinaryOpType::ADD,{element}>"
            )
        } else {
            format!("popops::DynamicUpdateSlice1D<{element}>")
        };
        let vertices = vec![vertex_on(kind, outputs.iter().map(|_| 1), 2)];
        self.builder.compute(name.clone(), &cycles, vertices);
        let times = split.out_channels_serial;
        let bytes: Vec<u64> =
            outputs.iter().map(|outputs| outputs * times * data_type.bytes()).collect();
        if serial_inputs {
            self.builder.temporary(name, Category::Variable, false, before_loop, &bytes);
        }
        let _ = from;
        self.builder.end_loop();
        if serial_inputs && data_type != output_type {
            let cycles: Vec<u64> = outputs
                .iter()
                .map(|outputs| reduce::cast_cycles(machine, *outputs, data_type, output_type))
                .collect();
            let kind = format!("popops::Cast1D<{},{}>", element, output_type.poplar_name());
            let vertices = vec![vertex_on(kind, outputs.iter().map(|_| 1), 2)];
            self.builder.compute(format!("{}/CastSerialOut", self.name), &cycles, vertices);
        }
    }

    /// Brings weight gradients to the weights: with another innermost dimension first, if it
    /// differs, then to their tiles.
    fn place_result(&mut self, operands: &Operands) {
        let Destination::Weights(forward) = operands.result else { return };
        if self.plan.joint {
            return;
        }
        let data_type = self.plan.params.output_type;
        let shares = weight_shares(self.machine, forward);
        let start = self.builder.position();
        if !self.plan.transform.swap_operands {
            let name = format!("{}/regroupGradds", self.name);
            rearrange::relocate(&mut self.builder, self.machine, &name, &shares, true);
            let blocks = Blocks {
                from: self.plan.vertex.out_chans_per_group,
                to: forward.vertex.in_chans_per_group,
            };
            let elements = shares.iter().sum::<u64>() / data_type.bytes();
            let blocks = blocks.spread(elements, self.machine.tiles, regroup_grain(data_type));
            let counts =
                shares.iter().map(|bytes| blocks.count(bytes / data_type.bytes())).collect();
            let tensors = [(blocks, counts)];
            rearrange::transpose(
                &mut self.builder,
                self.machine,
                format!("{name}/Transpose"),
                data_type,
                &tensors,
            );
        }
        let name = format!("{}/weightDeltas", self.name);
        rearrange::relocate(&mut self.builder, self.machine, &name, &shares, false);
        rearrange::temporary(&mut self.builder, name, start, &shares);
    }
}

/// Bytes of an operand of `regions` contiguous regions that user `user` of `users` has to copy:
/// regions that lie wholly in its own share are read where they are.
fn copied_bytes(bytes: u64, regions: u64, users: u64, user: u64) -> u64 {
    let begin = (user * regions).div_ceil(users);
    let end = (user + 1) * regions / users;
    let whole = end.saturating_sub(begin);
    bytes - bytes * whole / regions.max(1)
}

/// Blocks of the weights that turn around between forward and backward pass; `None` where whole
/// weights are copied instead (poplibs `Convolution.cpp` weightsTransposeChansFlipXY and
/// fullyConnectedWeightTranspose).
fn weight_blocks(machine: &Machine, forward: &Plan, backward: &Plan) -> Option<Blocks> {
    let params = &forward.params;
    let (from, to) = (&forward.vertex, &backward.vertex);
    if forward.options.pass.is_fully_connected() {
        let both_swapped = forward.transform.swap_operands && backward.transform.swap_operands;
        let from = gcd(from.in_chans_per_group, params.in_channels);
        let to = gcd(to.in_chans_per_group, params.out_channels);
        let usable = both_swapped && from > 1 && to > 1;
        let _ = machine;
        return usable.then_some(Blocks { from: to, to: from });
    }
    let out_group = gcd(from.out_chans_per_group, params.out_channels);
    let in_group = gcd(from.in_chans_per_group, params.in_channels);
    let wanted = gcd(to.in_chans_per_group, backward.params.in_channels);
    let rows = if out_group.is_multiple_of(wanted) { wanted } else { out_group };
    (rows > 1).then_some(Blocks { from: rows, to: in_group })
}
