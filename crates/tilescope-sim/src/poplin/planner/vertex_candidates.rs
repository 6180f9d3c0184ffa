//! Vertices that can run a convolution, and the numbers of channels they process at a time.
//!
//! Candidates and their order follow poplibs `ConvVertexType.cpp`.

use super::plan::{ConvOptions, ConvPass};
use crate::poplin::params::ConvParams;
use crate::shape::DType;
use crate::targets::IpuTarget;

/// Method of computing multiply-accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvMethod {
    /// The matrix engine, with the given number of its units.
    Amp { conv_units: u64 },
    /// The matrix engine sliding a window of four over a row.
    Slic {
        /// Number of chains of units in use.
        chains: u64,
    },
    /// Dot products along the input channels.
    Hmac,
    /// Elementwise products of several groups at a time.
    Vmac,
    /// Product of a column and a row.
    OuterProduct,
}

impl ConvMethod {
    /// Name in reports, as poplibs prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amp { .. } => "AMP",
            Self::Slic { .. } => "SLIC",
            Self::Hmac => "HMAC",
            Self::Vmac => "VMAC",
            Self::OuterProduct => "OUTER_PRODUCT",
        }
    }
}

/// Window of the SLIC instruction.
pub(crate) const SLIC_WINDOW: u64 = 4;

/// Vertex with the groups of channels it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvVertexType {
    pub method: ConvMethod,
    /// Element type of the operands.
    pub input_type: DType,
    /// Element type of its result, the partial sums.
    pub partial_type: DType,
    /// Number of conv groups it processes at a time.
    pub groups_per_group: u64,
    /// Number of input channels it processes at a time.
    pub in_chans_per_group: u64,
    /// Number of output channels it computes at a time.
    pub out_chans_per_group: u64,
    /// True if the matrix engine loads weights 128 bits at a time, false for 64.
    pub wide_weight_loads: bool,
}

/// Input and output channels of an operation, or of one step of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvChannels {
    pub in_channels: u64,
    pub out_channels: u64,
}

impl ConvVertexType {
    /// Channels that it processes at a time.
    pub(crate) fn channels(&self) -> ConvChannels {
        ConvChannels {
            in_channels: self.in_chans_per_group,
            out_channels: self.out_chans_per_group,
        }
    }

    /// Returns true if operands are 32-bit floats.
    pub(crate) fn float_inputs(&self) -> bool {
        self.input_type == DType::Float
    }

    /// Returns true if partial sums are 32-bit floats.
    pub(crate) fn float_partials(&self) -> bool {
        self.partial_type == DType::Float
    }

    /// Upper bound of multiply-accumulates per cycle of one tile in the planner's model (poplibs
    /// `ConvModel.cpp` getMaxMACsPerCyclePerTile).
    pub(crate) fn max_macs_per_cycle(&self, machine: &IpuTarget) -> u64 {
        let width = machine.vector_width(self.input_type);
        match self.method {
            ConvMethod::Hmac | ConvMethod::Vmac | ConvMethod::OuterProduct => width,
            ConvMethod::Slic { .. } => width.min(self.in_chans_per_group) * SLIC_WINDOW * 2,
            ConvMethod::Amp { .. } => {
                let units = machine.conv_units(self.input_type, self.partial_type);
                units.min(self.out_chans_per_group) * width
            }
        }
    }

    /// Number of kernel rows that fill the matrix engine if the input channels do not: 1, 2 or 4
    /// for AMP, 1 for all others.
    pub(crate) fn kernel_height(&self, machine: &IpuTarget) -> u64 {
        let ConvMethod::Amp { conv_units } = self.method else { return 1 };
        let full = weights_per_conv_unit(self.input_type);
        if self.in_chans_per_group == full {
            return 1;
        }
        let on_chip = machine.conv_units(self.input_type, self.partial_type);
        (full * conv_units / on_chip / self.in_chans_per_group).max(1)
    }
}

/// Number of input channels that one unit of the matrix engine multiplies at once.
pub(crate) fn weights_per_conv_unit(input_type: DType) -> u64 {
    match input_type {
        DType::Float => 8,
        DType::Quarter => 32,
        _ => 16,
    }
}

/// All vertices that support `params`, the most promising first.
pub(crate) fn candidates(
    params: &ConvParams,
    machine: &IpuTarget,
    options: &ConvOptions,
    joint: bool,
) -> Vec<ConvVertexType> {
    let partials = options.partials_for(params.input_type);
    let context = ConvVertexCandidateContext {
        params,
        machine,
        pass: options.pass,
        partials,
        joint,
        wide_weight_loads: options.library.use_128bit_conv_unit_load,
    };
    let mut found = context.amp();
    // Disabled by poplibs because of a bug of its own (`ConvVertexType.cpp`, T18365).
    if !options.pass.is_fully_connected() {
        found.extend(context.slic());
    }
    if params.input_type != DType::Quarter {
        found.extend(context.hmac());
        found.extend(context.vmac());
        found.extend(context.outer_product());
    }
    sort(&mut found, params, machine);
    found
}

struct ConvVertexCandidateContext<'a> {
    params: &'a ConvParams,
    machine: &'a IpuTarget,
    pass: ConvPass,
    partials: DType,
    joint: bool,
    wide_weight_loads: bool,
}

impl ConvVertexCandidateContext<'_> {
    fn vertex(
        &self,
        method: ConvMethod,
        partial_type: DType,
        grouping: [u64; 3],
    ) -> ConvVertexType {
        let [groups_per_group, in_chans_per_group, out_chans_per_group] = grouping;
        ConvVertexType {
            method,
            input_type: self.params.input_type,
            partial_type,
            groups_per_group,
            in_chans_per_group,
            out_chans_per_group,
            // Of the other vertices only SLIC loads weights, 64 bits at a time
            // (`getConvPartialSlicSupervisorWeightLoadCycleEstimate`).
            wide_weight_loads: self.wide_weight_loads && matches!(method, ConvMethod::Amp { .. }),
        }
    }

    fn joint_forward(&self) -> bool {
        self.joint && self.pass == ConvPass::FcTrainingForward
    }

    /// AMP for the requested partials and, if no reduction can follow, for partials of the result
    /// type if that is smaller.
    fn amp(&self) -> Vec<ConvVertexType> {
        let params = self.params;
        let full = weights_per_conv_unit(params.input_type);
        let mut found = Vec::new();
        // Sums that end inside the engine are never stored as partials, so the vertex can write the
        // result type itself. This requires all input channels in one group.
        if params.output_type.bytes() < self.partials.bytes()
            && params.in_channels <= full
            && params.dims.iter().all(|dim| dim.kernel == 1)
        {
            found = self.amp_with(params.output_type);
            found.retain(|vertex| {
                params.in_channels.next_multiple_of(vertex.in_chans_per_group) == full
            });
        }
        found.extend(self.amp_with(self.partials));
        found
    }

    fn amp_with(&self, partials: DType) -> Vec<ConvVertexType> {
        let input = self.params.input_type;
        let on_chip = self.machine.conv_units(input, partials);
        if on_chip == 0 {
            return Vec::new();
        }
        let full = weights_per_conv_unit(input);
        // The second generation can also run with half of its 16 units.
        let unit_choices = if on_chip == 16 { vec![on_chip, on_chip / 2] } else { vec![on_chip] };
        let mut found: Vec<ConvVertexType> = Vec::new();
        for &conv_units in &unit_choices {
            for in_chans in (1..=full).rev() {
                let mut out_choices = vec![on_chip, full];
                out_choices.extend(unit_choices.get(1));
                for out_chans in out_choices {
                    let vertex = self.vertex(
                        ConvMethod::Amp { conv_units },
                        partials,
                        [1, in_chans, out_chans],
                    );
                    let usable = self.amp_is_usable(conv_units, in_chans, out_chans, on_chip);
                    if usable && !found.contains(&vertex) {
                        found.push(vertex);
                    }
                }
            }
        }
        found
    }

    fn amp_is_usable(&self, units: u64, in_chans: u64, out_chans: u64, on_chip: u64) -> bool {
        let input = self.params.input_type;
        let full = weights_per_conv_unit(input);
        // Inputs are read 64 bits at a time, so a group must not end inside such a word.
        let loads_are_aligned = (in_chans * input.bytes()).0.is_multiple_of(8);
        // Besides the engine's own width, only the group that a following convolution reads as
        // input is worth trying: it saves a regroup, and in a weight update it fills the engine.
        (out_chans == units || out_chans == full * units / on_chip)
            && full.is_multiple_of(in_chans)
            && out_chans.is_multiple_of(units)
            && loads_are_aligned
            // The weight update reads the forward input channels as output channels.
            && (!self.joint_forward() || in_chans.is_multiple_of(units))
            // Inference has no weight update, and its output is rearranged regardless of the group.
            && (self.pass != ConvPass::FcInferenceForward || out_chans == units)
    }

    fn slic(&self) -> Vec<ConvVertexType> {
        // No joint plans: poplibs' transforms between the passes do not support SLIC (T17666).
        if self.params.input_type != DType::Half || self.joint {
            return Vec::new();
        }
        let units = self.machine.conv_units(DType::Half, self.partials);
        // Two chains exist on either chip. If there are four, the cycle estimate rejects two.
        let chains: &[u64] = match self.partials {
            DType::Float => &[2],
            _ if units == 16 => &[4, 2],
            _ => &[2],
        };
        // Groups times channels is four halves, one 64-bit load.
        let groupings = [[1, 4, 4], [2, 2, 2], [4, 1, 1]];
        chains
            .iter()
            .flat_map(|&chains| {
                groupings
                    .map(|group| self.vertex(ConvMethod::Slic { chains }, self.partials, group))
            })
            .collect()
    }

    /// One candidate per number of input channel groups: larger groups that do not reduce this
    /// number only add padding.
    fn hmac(&self) -> Vec<ConvVertexType> {
        let float_inputs = self.params.input_type == DType::Float;
        // Pairs of halves fill the 4-byte words of the exchange, so none has to be padded for it.
        let grain = if float_inputs { 1 } else { 2 };
        let channels = self.params.in_channels.next_multiple_of(grain);
        // The codelet for half partials computes two in its inner loop, to balance loads and
        // stores.
        let out_chans = if self.partials == DType::Float { 1 } else { 2 };
        let units = self.machine.conv_units(self.params.input_type, self.partials).max(1);
        let mut found = Vec::new();
        let mut push = |in_chans| {
            found.push(self.vertex(ConvMethod::Hmac, self.partials, [1, in_chans, out_chans]));
        };
        // The weight update of a joint plan computes the same number of output channels at a time.
        let step = if self.joint_forward() { units.next_multiple_of(grain) } else { grain };
        if grain < step && grain == 1 {
            push(1);
        }
        let mut in_chans = step;
        while in_chans <= channels {
            push(in_chans);
            let groups = channels.div_ceil(in_chans);
            if groups == 1 {
                break;
            }
            in_chans = channels.div_ceil(groups - 1).next_multiple_of(step);
        }
        found
    }

    fn vmac(&self) -> Vec<ConvVertexType> {
        // Only this combination is written in assembly: four groups of one channel fill a 64-bit
        // load.
        if self.params.input_type != DType::Half || self.partials != DType::Float {
            return Vec::new();
        }
        vec![self.vertex(ConvMethod::Vmac, self.partials, [4, 1, 1])]
    }

    fn outer_product(&self) -> Vec<ConvVertexType> {
        let params = self.params;
        let single = params.in_channels == 1 && params.dims.iter().all(|dim| dim.kernel == 1);
        // The result has the type of the inputs. A type narrower than partials is allowed only if
        // no reduction follows that would lose precision.
        if params.input_type.bytes() < self.partials.bytes() && !single {
            return Vec::new();
        }
        let width = self.machine.vector_width(params.input_type);
        vec![self.vertex(ConvMethod::OuterProduct, params.input_type, [1, 1, width])]
    }
}

/// Orders candidates by useful work per cycle, padding and size of partials.
fn sort(candidates: &mut [ConvVertexType], params: &ConvParams, machine: &IpuTarget) {
    let rank = |vertex: &ConvVertexType| {
        let inputs = params.in_channels;
        let outputs = params.out_channels;
        let padded = inputs.next_multiple_of(vertex.in_chans_per_group)
            * outputs.next_multiple_of(vertex.out_chans_per_group);
        let padding = (padded - inputs * outputs) as f64 / padded as f64;
        let useful = vertex.max_macs_per_cycle(machine) as f64 * (1.0 - padding);
        (useful, padding, vertex.partial_type.bytes())
    };
    // Must be stable: full ties keep the order in which poplibs lists the methods.
    candidates.sort_by(|a, b| {
        let ((useful_a, padding_a, bytes_a), (useful_b, padding_b, bytes_b)) = (rank(a), rank(b));
        useful_b
            .total_cmp(&useful_a)
            .then(padding_a.total_cmp(&padding_b))
            .then(bytes_a.cmp(&bytes_b))
    });
}
