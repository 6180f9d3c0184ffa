//! Lowering of one pass, phase by phase.

use super::operand_preparation::piece_cycles;
use super::operand_rearrangement::spread;
use super::operand_routes::{OperandPattern, OperandTransfer};
use super::tensor_places::TensorPlaces;
use super::tile_parts::{ConvAxis, ConvTilePart, PartitionedConv};
use super::vertices;
use super::work_builder::{ConvWorkBuilder, OperandExchangeFlow};
use crate::cost_constants::{KERNEL_GATHER_CYCLES_PER_BYTE, WEIGHT_REARRANGE_CYCLES_PER_WORD};
use crate::poplar::exchange::WORD_BYTES;
use crate::poplar::work::OperationWork;
use crate::poplin::planner::{ConvPlan, ConvTrainingPlans};
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Layout of an operand before the pass.
#[derive(Clone, Copy, Debug)]
pub enum OperandSource<'a> {
    /// The layout of the plan.
    Planned,
    /// Other tiles or other groups, with the same innermost dimension.
    SameInnermost {
        /// Number of contiguous elements of the innermost dimension.
        group: u64,
    },
    /// Another innermost dimension, in groups of this size.
    Transposed {
        /// Number of contiguous elements of the innermost dimension.
        group: u64,
        /// Number of tiles that hold the operand.
        tiles: u64,
    },
    /// Weights of the forward pass in the layout of its plan, for the backward pass.
    ForwardWeights(&'a ConvPlan),
}

/// Required layout of the result of the pass.
#[derive(Clone, Copy, Debug)]
pub enum ResultDestination<'a> {
    /// The layout in which the plan leaves it.
    Planned,
    /// The layout of the forward weights, for weight gradients.
    Weights(&'a ConvPlan),
}

/// Operands and result of a pass.
#[derive(Clone, Copy, Debug)]
pub struct ConvPassOperands<'a> {
    /// Input: activations, or the left operand of a matrix product.
    pub input: OperandSource<'a>,
    /// Weights, or the right operand.
    pub weights: OperandSource<'a>,
    pub result: ResultDestination<'a>,
}

impl ConvPassOperands<'_> {
    /// The operands as the vertices of `plan` read them.
    fn swapped_for(self, plan: &ConvPlan) -> Self {
        let swap = plan.transform().swap_operands;
        if swap { Self { input: self.weights, weights: self.input, ..self } } else { self }
    }
}

/// Phases of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredConvPass {
    pub work: OperationWork,
    /// For input and weights: the first phase that no longer reads the operand itself, if it is
    /// known to be before the end.
    pub used_until: [Option<usize>; 2],
    /// The first phase that writes the result.
    pub result_from: usize,
}

/// Lowers one pass of `plan` to the work of the tiles.
pub fn lower(machine: &IpuTarget, plan: &ConvPlan, operands: &ConvPassOperands) -> LoweredConvPass {
    lower_placed(machine, plan, operands, TensorPlaces::default())
}

/// As [`lower`], with the places of the tensors, from which the routes of rearrangements follow.
pub(crate) fn lower_placed(
    machine: &IpuTarget,
    plan: &ConvPlan,
    operands: &ConvPassOperands,
    places: TensorPlaces,
) -> LoweredConvPass {
    let mut pass = ConvPassLowering::new(machine, plan);
    pass.places = places;
    if plan.transform().swap_operands {
        pass.places.operands.reverse();
    }
    pass.transpose_weights(operands);
    pass.forget_transformed_places();
    let seen = operands.swapped_for(plan);
    let before_loop =
        if plan.partition.serial() > 1 { Some(pass.begin_serial(&seen)) } else { None };
    pass.combine_groups();
    pass.rearrange(&seen);
    pass.convolve();
    if let Some(before_loop) = before_loop {
        pass.end_serial(before_loop);
        // The next iteration reads the operands again.
        pass.used_until = [None; 2];
    }
    pass.relocate_weight_gradients(operands);
    // Results are written by the last phase: sums, their cast, or the move to the weights.
    let result_from = pass.builder.phase_count().saturating_sub(1);
    let mut used_until = pass.used_until;
    if plan.transform().swap_operands {
        // Restore the caller's order of the operands.
        used_until.reverse();
    }
    LoweredConvPass { work: pass.builder.finish(), used_until, result_from }
}

/// Transposes the weights of the forward pass for many backward passes at once.
pub fn transpose_weights_ahead(machine: &IpuTarget, plans: &ConvTrainingPlans) -> OperationWork {
    let mut pass = ConvPassLowering::new(machine, &plans.backward);
    pass.transpose_weights(&ConvPassOperands::backward(plans, OperandSource::Planned));
    pass.builder.finish()
}

/// State of lowering a pass.
pub(super) struct ConvPassLowering<'a> {
    pub(super) machine: &'a IpuTarget,
    pub(super) plan: &'a ConvPlan,
    pub(super) layout: PartitionedConv,
    pub(super) name: String,
    pub(super) builder: ConvWorkBuilder,
    pub(super) rearranged: Vec<RearrangedOperand>,
    /// For input and weights: true if the operand is on the tiles that use it when it is sent to
    /// all users.
    pub(super) in_place: [bool; 2],
    /// See [`LoweredConvPass::used_until`]. In the order in which the vertices read the operands.
    pub(super) used_until: [Option<usize>; 2],
    /// Number of ragged pieces that each tile gathers from the data it received.
    pub(super) gathered_pieces: Vec<u64>,
    /// The tensors, in the order in which the vertices read the operands.
    pub(super) places: TensorPlaces,
}

/// One of the two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConvOperand {
    Input,
    Weights,
}

/// Copy of an operand in the plan's layout. Its lifetime becomes known when it is used.
pub(super) struct RearrangedOperand {
    pub(super) operand: ConvOperand,
    pub(super) name: String,
    /// Phase that fills it.
    pub(super) from: usize,
    /// Bytes on each tile.
    pub(super) bytes: Vec<Bytes>,
}

impl<'a> ConvPassLowering<'a> {
    fn new(machine: &'a IpuTarget, plan: &'a ConvPlan) -> Self {
        let layout = PartitionedConv::from_plan(plan);
        Self {
            machine,
            plan,
            name: super::layer_name(plan),
            builder: ConvWorkBuilder::default(),
            rearranged: Vec::new(),
            in_place: [true; 2],
            used_until: [None; 2],
            gathered_pieces: vec![0; layout.parts.len()],
            places: TensorPlaces::default(),
            layout,
        }
    }

    pub(super) fn tiles(&self) -> u64 {
        self.layout.parts.len() as u64
    }

    pub(super) fn per_tile<T>(&self, of: impl Fn(&ConvTilePart) -> T) -> Vec<T> {
        self.layout.parts.iter().map(of).collect()
    }

    pub(super) fn element_bytes(&self) -> Bytes {
        self.layout.padded.input_type.bytes()
    }

    /// Number of tiles that use the same input, and number that use the same weights.
    pub(super) fn users(&self) -> [u64; 2] {
        let split = &self.plan.partition;
        // Parts of the kernel read the same input except for its halo, parts of field and batch the
        // same weights.
        [split.out_channels * split.kernel_parts(), split.field_parts() * split.batch]
    }

    /// Bytes of the transformed operands of one serial iteration, spread over the tiles in use.
    pub(super) fn operand_shares(&self) -> [Vec<Bytes>; 2] {
        let padded = &self.layout.padded;
        let share =
            |elements: Elements| spread(elements * self.element_bytes(), Bytes(8), self.tiles());
        [share(padded.input_elements()), share(padded.weight_elements())]
    }

    /// Adds the exchange of operands, vertices, reduction and cast.
    fn convolve(&mut self) {
        let name = format!("{}/Convolve", self.name);
        let exchange_at = self.builder.phase_count();
        let flows = [self.input_flow(), self.weight_flow()];
        let copies = self.arranging_copies(&flows);
        // Both operands arrive in one exchange phase, which is started and synchronised once.
        let broadcast: Vec<Bytes> = flows[1].iter().map(|flow| flow.received).collect();
        let [input, weights] = flows;
        let operands = [
            OperandTransfer { pattern: self.input_pattern(&input), flows: input },
            OperandTransfer { pattern: self.weight_pattern(&weights), flows: weights },
        ];
        self.builder.exchange(self.machine, format!("{name}/ExchangePre"), &operands);
        let cycles = self.arrange_cycles(&broadcast);
        self.builder.copies(format!("{name}/PreArrange-0"), &cycles, &copies);

        let partials_at = self.builder.phase_count();
        let vertices = vertices::convolve(self.plan, self.machine, &self.layout);
        let cycles: Vec<Cycles> = vertices.iter().map(|vertex| vertex.cycles).collect();
        self.builder.compute(name.clone(), &cycles, vertices::uses(&vertices));
        self.operand_temporaries(&name, exchange_at);
        self.reduce(partials_at);
    }

    /// Exchange of the input on each tile: the users of a slice share its storage, and halos come
    /// from neighbours.
    fn input_flow(&self) -> Vec<OperandExchangeFlow> {
        let split = &self.plan.partition;
        let tiles = self.tiles();
        let padded = &self.layout.padded;
        // With halos parts overlap, so their shares exceed the tensor. No tile holds more than an
        // even part of the input.
        let even = padded.input_elements() * self.element_bytes() / tiles;
        let paired = split.out_channels.is_multiple_of(2);
        let users = self.users()[0];
        let flow = self
            .layout
            .parts
            .iter()
            .map(|part| {
                let bytes = self.layout.inputs(part) * self.element_bytes();
                // Regardless of the operand's layout, the share of each tile is sent to all users.
                let share = (bytes / split.out_channels).min(even);
                let held = if self.in_place[0] { share } else { Bytes::ZERO };
                let shared = users > 1 || bytes > held;
                OperandExchangeFlow {
                    received: bytes - held,
                    sent: share,
                    messages_in: if shared { users } else { 0 },
                    paired,
                    ..OperandExchangeFlow::default()
                }
            })
            .collect();
        let [input, _] = self.operand_shares();
        with_senders(flow, &input)
    }

    /// Exchange of the weights on each tile: the users of a slice share its storage.
    fn weight_flow(&self) -> Vec<OperandExchangeFlow> {
        let users = self.users()[1];
        let flow = self
            .layout
            .parts
            .iter()
            .map(|part| {
                let bytes = self.layout.weights(part) * self.element_bytes();
                let share = bytes / users;
                let held = if self.in_place[1] { share } else { Bytes::ZERO };
                OperandExchangeFlow {
                    received: bytes - held,
                    sent: share,
                    messages_in: if users > 1 { users } else { 0 },
                    ..OperandExchangeFlow::default()
                }
            })
            .collect();
        let [_, weights] = self.operand_shares();
        with_senders(flow, &weights)
    }

    /// Senders and receivers of the input. Parts of the output channels and of the kernel read the
    /// same input, and halos come from other parts of the field.
    fn input_pattern(&self, flows: &[OperandExchangeFlow]) -> OperandPattern {
        if !self.in_place[0] {
            return self.reads_in_place(ConvOperand::Input, &received_of(flows));
        }
        let users = [ConvAxis::Kernel, ConvAxis::OutChannels];
        let around = [ConvAxis::Kernel, ConvAxis::OutChannels, ConvAxis::Field];
        OperandPattern::Shares {
            users: self.layout.tile_groups(&users),
            same: self.layout.tile_groups(&[ConvAxis::OutChannels]),
            around: self.layout.tile_groups(&around),
        }
    }

    /// Senders and receivers of the weights, which parts of field and batch share.
    fn weight_pattern(&self, flows: &[OperandExchangeFlow]) -> OperandPattern {
        if !self.in_place[1] {
            return self.reads_in_place(ConvOperand::Weights, &received_of(flows));
        }
        let users = self.layout.tile_groups(&[ConvAxis::Batch, ConvAxis::Field]);
        OperandPattern::Shares { around: users.clone(), same: users.clone(), users }
    }

    /// Cycles to arrange received operands for the vertices.
    fn arrange_cycles(&self, broadcast_weights: &[Bytes]) -> Vec<Cycles> {
        // A single kernel element reads its input in the order of arrival.
        let gathers = self.layout.slice.kernel_field() > 1;
        let pieces = self.gathered_pieces.iter().map(|pieces| piece_cycles(*pieces));
        let parts = self.layout.parts.iter().zip(broadcast_weights).zip(pieces);
        let cycles = parts.map(|((part, weights), pieces)| {
            let words = weights.next_multiple_of(WORD_BYTES) / WORD_BYTES;
            let weights = WEIGHT_REARRANGE_CYCLES_PER_WORD.ratio() * words as f64;
            let inputs = self.layout.inputs(part) * self.element_bytes();
            let gather =
                if gathers { KERNEL_GATHER_CYCLES_PER_BYTE.ratio() * inputs.as_f64() } else { 0.0 };
            Cycles::from_f64((weights + gather).round()) + pieces
        });
        cycles.collect()
    }

    /// Number of copy vertices on each tile: one for each operand whose part on the tile must be
    /// joined with the received data.
    fn arranging_copies(&self, flows: &[Vec<OperandExchangeFlow>; 2]) -> Vec<u64> {
        let mut copies = vec![0; self.layout.parts.len()];
        for (flows, in_place) in flows.iter().zip(self.in_place) {
            for (copies, flow) in copies.iter_mut().zip(flows) {
                if in_place && !flow.sent.is_zero() && !flow.received.is_zero() {
                    *copies += 1;
                }
            }
        }
        copies
    }
}

/// Bytes that each tile receives.
fn received_of(flows: &[OperandExchangeFlow]) -> Vec<Bytes> {
    flows.iter().map(|flow| flow.received).collect()
}

/// Returns `flow` with the tiles of the operand as its senders if an even part of it is less than
/// an element on every tile. `held` is the part of the operand on each tile.
fn with_senders(mut flow: Vec<OperandExchangeFlow>, held: &[Bytes]) -> Vec<OperandExchangeFlow> {
    if flow.iter().all(|flow| flow.sent.is_zero()) {
        for (flow, held) in flow.iter_mut().zip(held) {
            flow.sent = *held;
        }
    }
    flow
}
