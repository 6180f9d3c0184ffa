//! Layouts of the tensors of a pass, from which their routes follow.

use super::operand_rearrangement::BlockTransposition;
use super::operand_routes::{OperandPattern, unknown_route};
use super::pass_lowering::{ConvOperand, ConvPassLowering};
use super::work_builder::nonzero_runs_of;
use crate::poplar::routes::WorkRoute;
use crate::poputil::rearranged_blocks::route_between;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{TensorInfo, gcd};
use tilescope_report::units::{Bytes, Elements};

/// A tensor of the graph on the tiles of the pass.
#[derive(Clone, Debug)]
pub(crate) struct TensorPlace {
    pub ty: TensorInfo,
    pub layout: TensorLayout,
    /// The axis whose elements are innermost for the pass, or for the readers of its result.
    pub axis: usize,
    /// The axis of the rows: output channels of weights, the batch of an input.
    pub rows: usize,
}

/// The tensors of a pass, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct TensorPlaces {
    /// Input and weights.
    pub operands: [Option<TensorPlace>; 2],
    /// The result where the pass makes it.
    pub result: Option<TensorPlace>,
}

impl TensorPlace {
    /// Moves the tensor to the tiles that have `bytes`, in groups of `group` elements along its
    /// axis. Returns the route, or `None` if elements have no known place.
    fn move_to(&mut self, bytes: &[Bytes], group: u64) -> Option<WorkRoute> {
        self.move_in(bytes, ElementOrder::grouped(&self.ty.shape, self.axis, group))
    }

    /// Moves the tensor to the tiles that have `bytes`, in the given order.
    fn move_in(&mut self, bytes: &[Bytes], order: ElementOrder) -> Option<WorkRoute> {
        let element = self.ty.dtype.bytes();
        let elements = bytes.iter().map(|bytes| Elements(*bytes / element));
        let to = TensorLayout { elements: nonzero_runs_of(elements), order };
        let route = route_between(&self.ty, &self.layout, &to)?;
        self.layout = to;
        Some(route)
    }
}

impl TensorPlace {
    /// Number of elements along each axis of one of `parts` slices along `axis`, or `None` if they
    /// differ.
    fn sliced_shape(&self, axis: usize, parts: u64) -> Option<Vec<u64>> {
        let mut shape = self.ty.shape.clone();
        let size = shape.get_mut(axis).filter(|size| size.is_multiple_of(parts))?;
        *size /= parts;
        Some(shape)
    }

    /// Moves the tensor to the tiles that have `bytes`, each of which holds an even part of every
    /// one of `parts` slices along `axis`. A slice has the order of [`Self::move_to`].
    fn move_to_slices(
        &mut self,
        bytes: &[Bytes],
        group: u64,
        (axis, parts): (usize, u64),
    ) -> Option<WorkRoute> {
        let mut inside = self.sliced_shape(axis, parts)?;
        let rank = inside.len();
        inside.push(parts);
        // The same element of all slices is on one tile, except for the last one of a tile.
        let order = ElementOrder::grouped(&inside, self.axis, group);
        let mut view: Vec<usize> = (0..rank).collect();
        view.insert(axis, rank);
        self.move_in(bytes, order.permuted(&inside, &view))
    }

    /// Replaces the tensor by a slice of it, with `elements` on each tile.
    fn slice(&mut self, elements: &[u64], group: u64, (axis, parts): (usize, u64)) -> Option<()> {
        self.ty.shape = self.sliced_shape(axis, parts)?;
        self.layout = TensorLayout {
            elements: nonzero_runs_of(elements.iter().copied().map(Elements)),
            order: ElementOrder::grouped(&self.ty.shape, self.axis, group),
        };
        Some(())
    }
}

/// Moves a tensor if its place is known. Afterwards it is not known if it was not.
fn moved(place: &mut Option<TensorPlace>, bytes: &[Bytes], group: u64) -> WorkRoute {
    let route = place.as_mut().and_then(|place| place.move_to(bytes, group));
    route_or_unknown(route, place, bytes)
}

/// Returns the route of a tensor, whose place is no longer known if its route is not.
fn route_or_unknown(
    route: Option<WorkRoute>,
    place: &mut Option<TensorPlace>,
    bytes: &[Bytes],
) -> WorkRoute {
    route.unwrap_or_else(|| {
        *place = None;
        unknown_route(bytes)
    })
}

impl ConvPassLowering<'_> {
    /// Group of the vertex along the input channels of an operand in the layout of the plan.
    fn planned_group(&self) -> u64 {
        gcd(self.plan.vertex.in_chans_per_group, self.plan.params.in_channels)
    }

    /// Routes of operands that are moved to the layout of the plan, with the bytes that arrive on
    /// each tile.
    pub(super) fn moves_to_plan(&mut self, moved_to: [Option<&[Bytes]>; 2]) -> OperandPattern {
        let group = self.planned_group();
        let mut routes = Vec::new();
        for (place, bytes) in self.places.operands.iter_mut().zip(moved_to) {
            routes.extend(bytes.map(|bytes| moved(place, bytes, group)));
        }
        OperandPattern::Moves(routes)
    }

    /// Routes of operands whose blocks are gathered to be transposed.
    pub(super) fn moves_to_blocks(
        &mut self,
        tensors: &[(ConvOperand, BlockTransposition)],
    ) -> OperandPattern {
        let data_type = self.plan.params.input_type;
        let mut routes = Vec::new();
        for (operand, blocks) in tensors {
            let bytes: Vec<Bytes> = blocks.bytes(data_type).collect();
            let place = &mut self.places.operands[*operand as usize];
            routes.push(moved(place, &bytes, blocks.blocks.to));
        }
        OperandPattern::Moves(routes)
    }

    /// Route of the weights of the forward pass to the tiles of the backward pass. The kernel is
    /// flipped, which changes the order of more than one element.
    pub(super) fn moves_weights(
        &mut self,
        operand: ConvOperand,
        bytes: &[Bytes],
    ) -> OperandPattern {
        let group = self.planned_group();
        let place = &mut self.places.operands[operand as usize];
        if self.plan.params.kernel_field() > 1 {
            *place = None;
        }
        OperandPattern::Moves(vec![moved(place, bytes, group)])
    }

    /// Route of the result.
    pub(super) fn moves_result(&mut self, bytes: &[Bytes], group: u64) -> OperandPattern {
        OperandPattern::Moves(vec![moved(&mut self.places.result, bytes, group)])
    }

    /// Route of one operand that is moved before it is sliced. The bytes of two at once are known
    /// only together.
    pub(super) fn moves_to_slices(
        &mut self,
        is_moved: [bool; 2],
        bytes: &[Bytes],
    ) -> OperandPattern {
        let group = self.planned_group();
        let operand = match is_moved {
            [true, false] => ConvOperand::Input,
            [false, true] => ConvOperand::Weights,
            _ => {
                if is_moved == [true; 2] {
                    self.places.operands = [None, None];
                }
                return OperandPattern::Unknown;
            }
        };
        let slices = self.slices(operand);
        let place = &mut self.places.operands[operand as usize];
        let route = place
            .as_mut()
            .zip(slices)
            .and_then(|(place, slices)| place.move_to_slices(bytes, group, slices));
        OperandPattern::Moves(vec![route_or_unknown(route, place, bytes)])
    }

    /// Replaces an operand by the slice of one iteration, with `elements` on each tile.
    pub(super) fn slice_place(&mut self, operand: ConvOperand, elements: &[u64]) {
        let group = self.planned_group();
        let slices = self.slices(operand);
        let place = &mut self.places.operands[operand as usize];
        let sliced =
            place.as_mut().zip(slices).and_then(|(of, slices)| of.slice(elements, group, slices));
        if sliced.is_none() {
            *place = None;
        }
    }

    /// The axis along which iterations slice an operand, and the number of slices. `None` if its
    /// place is not known.
    fn slices(&self, operand: ConvOperand) -> Option<(usize, u64)> {
        let place = self.places.operands[operand as usize].as_ref()?;
        let split = &self.plan.partition;
        if split.in_channels_serial > 1 {
            Some((place.axis, split.in_channels_serial))
        } else {
            Some((place.rows, split.out_channels_serial))
        }
    }

    /// Forgets the places of operands that a transform changes, because their elements are no
    /// longer those of the tensors.
    pub(super) fn forget_transformed_places(&mut self) {
        let transform = self.plan.transform();
        let reshapes = !transform.expand_dims.is_empty()
            || !transform.flatten_to_channels.is_empty()
            || transform.combine_groups > 1;
        if reshapes {
            self.places.operands = [None, None];
        }
    }
}
