//! Joint plans of fully connected layers: three passes over the same weights.
//!
//! Forward pass, backward pass and weight update can each have a separate plan, or share one so
//! that weights never move. A joint plan is the forward plan from the view of the other passes:
//! what the forward pass splits as input channels, the backward pass splits as output columns, the
//! weight update as output channels (poplibs `ConvPlan.cpp`, `ConvModel.cpp` addBwdEstimates and
//! addWuEstimates).

use super::cost_model::{ConvCostModel, ConvGrainSize, ConvModelRole, ConvPartSize};
use super::plan::{ConvOptions, ConvPartition, ConvPass, ConvPlan, LinearizeTileOrder};
use super::search::JointPass;
use super::transforms::{self, TransformedConvParams};
use super::vertex_candidates::{self, ConvChannels, ConvMethod, ConvVertexType};
use crate::poplin::params::{ConvParams, PlanError};
use crate::targets::IpuTarget;

/// Partition of the backward pass: the innermost outputs and the input channels are swapped.
fn backward_partition(split: &ConvPartition, dims: usize) -> ConvPartition {
    let mut other = *split;
    other.in_channels = split.field[dims - 1];
    other.field[dims - 1] = split.in_channels;
    other
}

fn backward_size(size: &ConvPartSize, dims: usize) -> ConvPartSize {
    let mut other = *size;
    other.in_channels = size.field[dims - 1];
    other.field[dims - 1] = size.in_channels;
    other
}

/// Partition of the weight update: input and output channels are swapped, except that the output
/// stays in serial slices.
fn update_partition(split: &ConvPartition, _dims: usize) -> ConvPartition {
    ConvPartition { in_channels: split.out_channels, out_channels: split.in_channels, ..*split }
}

fn update_size(size: &ConvPartSize, _dims: usize) -> ConvPartSize {
    ConvPartSize { in_channels: size.out_channels, out_channels: size.in_channels, ..*size }
}

/// Shape of the backward pass of a fully connected layer.
pub(crate) fn backward_params(forward: &ConvParams) -> ConvParams {
    ConvParams {
        in_channels: forward.out_channels,
        out_channels: forward.in_channels,
        ..forward.clone()
    }
}

/// Shape of the weight update of a fully connected layer.
pub(crate) fn update_params(forward: &ConvParams) -> ConvParams {
    ConvParams { in_channels: forward.batch, batch: forward.in_channels, ..forward.clone() }
}

/// Vertices of the other passes of a joint plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JointVertices {
    /// Vertex of the backward pass.
    pub backward: ConvVertexType,
    /// Vertex of the weight update.
    pub update: ConvVertexType,
}

/// Returns the vertices that correspond to `forward`, or `None` if there are none.
pub(crate) fn vertices(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    forward: &ConvVertexType,
) -> Result<Option<JointVertices>, PlanError> {
    let backward = backward_vertex(machine, params, options, forward)?;
    let update = update_vertex(machine, params, options, forward)?;
    Ok(backward.zip(update).map(|(backward, update)| JointVertices { backward, update }))
}

fn same_kind(a: ConvMethod, b: ConvMethod) -> bool {
    a.name() == b.name()
}

/// Returns a vertex without the matrix engine, with the given channel groups.
fn plain_vertex(
    method: ConvMethod,
    params: &ConvParams,
    options: &ConvOptions,
    channels: ConvChannels,
) -> ConvVertexType {
    ConvVertexType {
        method,
        input_type: params.input_type,
        partial_type: options.partials_for(params.input_type),
        groups_per_group: 1,
        in_chans_per_group: channels.in_channels,
        out_chans_per_group: channels.out_channels,
        wide_weight_loads: false,
    }
}

fn backward_vertex(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    forward: &ConvVertexType,
) -> Result<Option<ConvVertexType>, PlanError> {
    // The innermost outputs of the forward pass are in groups of its input channels.
    let channels = forward.channels();
    let method = match forward.method {
        ConvMethod::OuterProduct => ConvMethod::Hmac,
        method => method,
    };
    if let ConvMethod::Hmac | ConvMethod::Vmac = method {
        return Ok(Some(plain_vertex(method, params, options, channels)));
    }
    let swapped = params.gradient()?.swapped()?;
    let options = options.with_pass(ConvPass::FcTrainingBackward);
    Ok(vertex_candidates::candidates(&swapped, machine, &options, true)
        .into_iter()
        .find(|vertex| same_kind(vertex.method, method) && vertex.channels() == channels))
}

fn update_vertex(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    forward: &ConvVertexType,
) -> Result<Option<ConvVertexType>, PlanError> {
    let channels = ConvChannels {
        in_channels: forward.out_chans_per_group,
        out_channels: forward.in_chans_per_group,
    };
    let swapped = params.weight_update()?.swapped()?;
    // The outer product works on groups of one channel, the dot product computes one output channel
    // at a time. Any wider group needs the engine (poplibs getFullyConnectedWUMethod).
    let method = if swapped.in_channels == 1 && channels.in_channels == 1 {
        ConvMethod::OuterProduct
    } else if channels.out_channels != 1 {
        // Only the kind is compared below. The units are those of the candidate.
        ConvMethod::Amp { conv_units: 0 }
    } else {
        match forward.method {
            ConvMethod::OuterProduct => ConvMethod::Hmac,
            method => method,
        }
    };
    if let ConvMethod::Hmac | ConvMethod::Vmac = method {
        return Ok(Some(plain_vertex(method, params, options, channels)));
    }
    if method == ConvMethod::OuterProduct {
        if swapped.dims.iter().any(|dim| dim.kernel != 1) {
            return Ok(None);
        }
        let vertex = plain_vertex(method, params, options, channels);
        return Ok(Some(ConvVertexType { partial_type: params.input_type, ..vertex }));
    }
    let groups_are_given = same_kind(forward.method, method);
    let options = options.with_pass(ConvPass::FcTrainingWeightUpdate);
    // The most promising candidate comes first, and poplibs takes the first that fits.
    Ok(vertex_candidates::candidates(&swapped, machine, &options, true).into_iter().find(
        |vertex| {
            same_kind(vertex.method, method) && (!groups_are_given || vertex.channels() == channels)
        },
    ))
}

/// Returns a shape with its innermost inputs and input channels swapped.
fn with_swapped_field(shape: &ConvParams, dims: usize) -> ConvParams {
    let mut swapped = shape.clone();
    std::mem::swap(&mut swapped.dims[dims - 1].input, &mut swapped.in_channels);
    swapped
}

/// Returns a shape with its input and output channels swapped.
fn with_swapped_channels(shape: &ConvParams) -> ConvParams {
    ConvParams { in_channels: shape.out_channels, out_channels: shape.in_channels, ..shape.clone() }
}

/// Returns the other passes of a joint plan of `forward`.
pub(crate) fn passes(
    machine: &IpuTarget,
    original: &ConvParams,
    transformed: &TransformedConvParams,
    forward: &ConvCostModel,
    vertices: &JointVertices,
) -> Vec<JointPass> {
    let dims = forward.dims;
    let grain = forward.grain;
    let field_grain = grain.in_channels;
    // These passes run on the tiles of the forward weights, so adjacent tiles read different
    // inputs: with their tile orders `operand_exchange` pairs no tiles.
    let backward = ConvCostModel::joint_pass(
        machine,
        ConvModelRole {
            pass: ConvPass::FcTrainingBackward,
            joint: true,
            order: LinearizeTileOrder::FcBackward,
        },
        [
            &backward_params(original),
            &with_swapped_field(&forward.padded, dims),
            &with_swapped_field(&transformed.shape, dims),
        ],
        transformed,
        vertices.backward,
        backward_size(&forward.whole, dims),
        ConvGrainSize { in_channels: field_grain, ..grain },
    );
    let update = ConvCostModel::joint_pass(
        machine,
        ConvModelRole {
            pass: ConvPass::FcTrainingWeightUpdate,
            joint: true,
            order: LinearizeTileOrder::FcWeightUpdate,
        },
        [
            &update_params(original),
            &with_swapped_channels(&forward.padded),
            &with_swapped_channels(&transformed.shape),
        ],
        transformed,
        vertices.update,
        update_size(&forward.whole, dims),
        ConvGrainSize { in_channels: grain.out_channels, out_channels: grain.in_channels, ..grain },
    );
    vec![
        JointPass { model: backward, partition: backward_partition, size: backward_size },
        JointPass { model: update, partition: update_partition, size: update_size },
    ]
}

/// Returns the plan of another pass of a joint plan.
pub(crate) fn derive(
    forward: &ConvPlan,
    pass: ConvPass,
    params: ConvParams,
    vertex: ConvVertexType,
    estimate: super::plan::ConvPlanEstimate,
) -> Result<ConvPlan, PlanError> {
    let transformed =
        transforms::apply(&params, forward.transform()).ok_or(PlanError::Invalid {
            what: "a pass of a fully connected layer does not suit its plan",
        })?;
    let dims = forward.params.dims.len() + forward.transform().extra_dims;
    let (partition, tile_order, field_grain) = match pass {
        ConvPass::FcTrainingBackward => (
            backward_partition(&forward.partition, dims),
            LinearizeTileOrder::FcBackward,
            forward.vertex.in_chans_per_group,
        ),
        _ => {
            // Unlike in the estimate, serial output channels become serial input channels.
            let split = &forward.partition;
            let partition = ConvPartition {
                in_channels_serial: split.out_channels_serial,
                out_channels_serial: split.in_channels_serial,
                ..update_partition(split, dims)
            };
            (partition, LinearizeTileOrder::FcWeightUpdate, 1)
        }
    };
    Ok(ConvPlan {
        params,
        options: forward.options.with_pass(pass),
        transformed,
        vertex,
        partition,
        tile_order,
        field_grain,
        estimate,
        ..forward.clone()
    })
}
