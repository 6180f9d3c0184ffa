//! Layouts of the tensors of a pass, from which their routes follow.

use super::operand_rearrangement::BlockTransposition;
use super::operand_routes::{OperandPattern, unknown_route};
use super::operand_view::{FieldView, OperandView};
use super::pass_lowering::{ConvOperand, ConvPassLowering};
use super::start_tile::ConvStartTile;
use super::work_builder::nonzero_runs_of;
use crate::poplar::routes::{WorkRoute, unrouted};
use crate::poplin::FieldDim;
use crate::poputil::rearranged_blocks::{rearrangement, route_between};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{TensorInfo, gcd};
use tilescope_report::units::{Bytes, Elements, TileId};
use tilescope_report::{Rearrangement, RouteBytes, RouteDim, RouteMemory, TileOrder};

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
    /// The first tile of the pass, whose own tiles places are counted in; `None`: tile 0, upwards.
    pub start: Option<ConvStartTile>,
    /// True for operands whose places are those of elements in the view of the plan.
    pub in_view: [bool; 2],
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

    /// Moves the tensor to the tiles that have `bytes`. Each tile gets an even part of every one
    /// of `parts` slices along `axis`. A slice has the order of [`Self::move_to`].
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

/// A known route, and one of the bytes that arrive besides, such as padding.
fn with_rest(route: WorkRoute, received: &[Bytes]) -> Vec<WorkRoute> {
    let mut routes = vec![route];
    let rest = unrouted(&nonzero_runs_of(received.iter().copied()), &routes);
    if !rest.is_empty() {
        let end = TileId(0) + u32::try_from(received.len()).unwrap_or(u32::MAX);
        routes.push(WorkRoute::of_unknown_order(RouteBytes::of(&rest, &rest), end));
    }
    routes
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
        let mut routes = Vec::new();
        for (operand, bytes) in [ConvOperand::Input, ConvOperand::Weights].into_iter().zip(moved_to)
        {
            if let Some(bytes) = bytes {
                let group = self.view_group(operand);
                routes.extend(self.moves_operand(operand, bytes, group));
            }
        }
        OperandPattern::Moves(routes)
    }

    /// Routes of the input that is expanded before it is moved to the layout of the plan.
    pub(super) fn expands_input(&mut self, bytes: &[Bytes]) -> OperandPattern {
        let group = self.view_group(ConvOperand::Input);
        OperandPattern::Moves(self.moves_operand(ConvOperand::Input, bytes, group))
    }

    /// Group of the input channels of an operand in the layout of the plan.
    fn view_group(&self, operand: ConvOperand) -> u64 {
        let is_tensor = !self.reshapes() && !self.places.in_view[operand as usize];
        if is_tensor { self.planned_group() } else { self.plan.vertex.in_chans_per_group }
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
            routes.extend(self.moves_operand(*operand, &bytes, blocks.blocks.to));
        }
        OperandPattern::Moves(routes)
    }

    /// Routes of an operand that moves to the tiles with `bytes`, in groups of `group` channels.
    /// Its elements get the order of the plan's view if that reshapes or pads them.
    fn moves_operand(
        &mut self,
        operand: ConvOperand,
        bytes: &[Bytes],
        group: u64,
    ) -> Vec<WorkRoute> {
        let at = operand as usize;
        if !self.reshapes() || self.places.in_view[at] {
            let place = &mut self.places.operands[at];
            if let Some(route) = place.as_mut().and_then(|place| place.move_to(bytes, group)) {
                return vec![route];
            }
        }
        let route =
            if self.places.in_view[at] { None } else { self.move_to_view(operand, bytes, group) };
        let place = &mut self.places.operands[at];
        match route {
            Some(route) => with_rest(route, bytes),
            None => vec![route_or_unknown(None, place, bytes)],
        }
    }

    /// Moves an operand to the tiles with `bytes`, in the order of the plan's view.
    fn move_to_view(
        &mut self,
        operand: ConvOperand,
        bytes: &[Bytes],
        group: u64,
    ) -> Option<WorkRoute> {
        let place = self.places.operands[operand as usize].as_ref()?;
        let view = self.view_of(operand, place, group)?;
        let element = place.ty.dtype.bytes();
        let [channels, rows] = view.padded;
        let mut left = rows * channels * view.sizes()[2];
        let mut elements = Vec::new();
        for bytes in bytes {
            let held = (*bytes / element).min(left);
            left -= held;
            elements.push(Elements(held));
        }
        if left > 0 || place.layout.elements.total() != place.ty.elements() {
            return None;
        }
        let elements = nonzero_runs_of(elements);
        let memory = RouteMemory {
            bytes: RouteBytes::of(
                &place.layout.bytes(element),
                &elements.map(|count| *count * element),
            ),
            receivers: None,
        };
        let blocks = view.blocks(&place.layout.order)?;
        let route = self.route_of(Rearrangement { unit: element, blocks, memory: Some(memory) })?;
        let shape = view.padded_shape();
        let order = ElementOrder::grouped(&shape, 1, group);
        let ty = TensorInfo { shape, ..place.ty.clone() };
        let layout = TensorLayout { elements, order };
        self.places.operands[operand as usize] = Some(TensorPlace { ty, layout, axis: 1, rows: 0 });
        self.places.in_view[operand as usize] = true;
        Some(route)
    }

    /// The view of an operand after the transform of the plan. `None` if the tensor is not the
    /// operand of one conv group, or if groups of channels are not whole in it.
    fn view_of(
        &self,
        operand: ConvOperand,
        place: &TensorPlace,
        group: u64,
    ) -> Option<OperandView> {
        let transform = self.plan.transform();
        let view = &self.plan.transformed.view;
        let swapped = view.swapped().ok();
        let is_input = operand == ConvOperand::Input;
        let shape = &place.ty.shape;
        let axes: Vec<usize> =
            (0..shape.len()).filter(|axis| ![place.axis, place.rows].contains(axis)).collect();
        let first = view.dims.len().checked_sub(axes.len()).filter(|_| view.conv_groups == 1)?;
        let measure = |dim: &FieldDim| if is_input { dim.input } else { dim.kernel };
        if place.axis == place.rows || view.dims[..first].iter().any(|dim| measure(dim) != 1) {
            return None;
        }
        let mut field = Vec::new();
        for (axis, dim) in axes.into_iter().zip(first..) {
            let own = &view.dims[dim];
            if measure(own) != shape[axis] {
                return None;
            }
            let expands = transform.expand_dims.contains(&dim);
            let flattens = transform.flatten_to_channels.contains(&dim);
            // Flattening expands the other operand of the swapped convolution.
            let expanded = match (expands, flattens) {
                (false, false) => {
                    field.push((axis, FieldView::Kept));
                    continue;
                }
                (true, false) => *own,
                (false, true) => swapped.as_ref()?.dims[dim],
                (true, true) => return None,
            };
            let kernel = &expanded.kernel_transform;
            if kernel.truncated(expanded.kernel) != expanded.kernel {
                return None;
            }
            field.push(if expands == is_input {
                (axis, FieldView::Expanded { dim: expanded, joins_rows: flattens })
            } else {
                (axis, FieldView::Channels { reversed: kernel.flip })
            });
        }
        let mut order = Vec::new();
        for dim in transform.expand_dims.iter().chain(&transform.flatten_to_channels) {
            order.push(dim.checked_sub(first)?);
        }
        let padded = &self.layout.padded;
        let slice = &self.layout.slice;
        let [real, all] = [slice, padded]
            .map(|shape| if is_input { shape.input_elements() } else { shape.weight_elements() });
        let found = OperandView {
            shape: shape.clone(),
            channels: place.axis,
            rows: place.rows,
            field,
            order,
            padded: [padded.in_channels, 0],
            group,
        };
        let [rows, channels, stays] = found.sizes();
        let rows_with_padding = if is_input { rows } else { padded.out_channels };
        let is_whole = Elements(rows * channels * stays) == real
            && Elements(rows_with_padding * padded.in_channels * stays) == all;
        let padded = [padded.in_channels, rows_with_padding];
        if is_whole { Some(OperandView { padded, ..found }) } else { None }
    }

    /// Returns true if the transform of the plan changes the shape of operands in more than merged
    /// dimensions.
    fn reshapes(&self) -> bool {
        let transform = self.plan.transform();
        !transform.expand_dims.is_empty() || !transform.flatten_to_channels.is_empty()
    }

    /// Senders and receivers of an operand that tiles read in its own layout, with the bytes that
    /// arrive on each.
    pub(super) fn reads_in_place(
        &self,
        operand: ConvOperand,
        received: &[Bytes],
    ) -> OperandPattern {
        match self.route_to_parts(operand) {
            Some(route) => OperandPattern::Moves(with_rest(route, received)),
            None => OperandPattern::Unknown,
        }
    }

    /// The route of an operand from its layout to the tiles whose parts read it.
    fn route_to_parts(&self, operand: ConvOperand) -> Option<WorkRoute> {
        let place = self.places.operands[operand as usize].as_ref()?;
        let readers = self.layout.readers(operand == ConvOperand::Input)?;
        let is_whole = Some(place.ty.shape[place.axis])
            == readers.channels.iter().copied().reduce(|a, b| a + b)
            && Elements(readers.rows.iter().sum::<u64>() * place.ty.shape[place.axis])
                == place.ty.elements();
        // Parts of equal size are groups of channels. The last one may be smaller.
        let (group, others) = readers.channels.split_first()?;
        let (last, middle) = others.split_last().unwrap_or((group, &[]));
        if !is_whole || last > group || middle.iter().any(|size| size != group) {
            return None;
        }
        let order = ElementOrder::grouped(&place.ty.shape, place.axis, *group);
        let to = TensorLayout { order, elements: place.layout.elements.clone() };
        let mut order = rearrangement(&place.ty, &place.layout, &to)?;
        for block in order.blocks.iter_mut().filter(|_| readers.users > 1) {
            let received_step = place.ty.elements().0;
            block.dims.insert(0, RouteDim { count: readers.users, sent_step: 0, received_step });
        }
        let element = place.ty.dtype.bytes();
        let of_parts = nonzero_runs_of(readers.elements.iter().map(|count| *count * element));
        let tiles = u32::try_from(self.layout.parts.len()).ok()?;
        order.memory = Some(RouteMemory {
            bytes: RouteBytes::of(&place.layout.bytes(element), &of_parts),
            receivers: Some(TileOrder::of_digits(tiles, readers.digits)),
        });
        self.route_of(order)
    }

    /// The route of data in blocks along the memory of the pass's own tiles.
    fn route_of(&self, order: Rearrangement) -> Option<WorkRoute> {
        match &self.places.start {
            Some(start) => start.route_of_memory(order),
            None => WorkRoute::of_memory(order),
        }
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

    /// Forgets the places of operands whose elements the transform mixes with those of other groups,
    /// or reshapes across serial slices.
    pub(super) fn forget_transformed_places(&mut self) {
        let slices_view = self.reshapes() && self.plan.partition.serial() > 1;
        if slices_view || self.plan.transform().combine_groups > 1 {
            self.places.operands = [None, None];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::WorkPhaseKind;
    use crate::poplin::ConvParams;
    use crate::poplin::conv::tile_parts::PartitionedConv;
    use crate::poplin::conv::{ConvPassOperands, OperandSource, TensorPlaces, lower_placed};
    use crate::poplin::planner::{ConvOptions, ConvPass, plan};
    use crate::poputil::rearranged_blocks::tests::{owners, positions};
    use crate::shape::DType;
    use crate::targets::{IpuTarget, MK2};
    use std::collections::BTreeMap;
    use tilescope_report::RoutePattern;

    /// Units from each sender to each receiver.
    fn links(route: &WorkRoute) -> BTreeMap<(TileId, TileId), u64> {
        let RoutePattern::Rearranged(order) = &route.pattern else { panic!("blocks") };
        let [sent, received] =
            order.memory_of(&route.tiles).map(|ends| owners(&ends, order.unit.0));
        let mut links = BTreeMap::new();
        for (from, to) in positions(&order.blocks) {
            let link = (sent[from as usize], received[to as usize]);
            *links.entry(link).or_default() += 1;
        }
        links
    }

    /// Products of odd sizes whose left operand is spread over all tiles in its own order: each
    /// element goes from its tile to every tile whose part reads it.
    #[test]
    fn operands_in_another_layout_go_to_the_tiles_that_read_them() {
        let machine = IpuTarget::all_tiles_of(MK2);
        let mut followed = 0;
        for [m, k, n] in
            [[800, 500, 400], [123, 77, 45], [901, 64, 33], [350, 250, 20], [64, 1000, 90]]
        {
            let params = ConvParams::matmul(DType::Half, 1, m, k, n);
            let plan = plan(&machine, &params, &ConvOptions::new(ConvPass::MatMul)).unwrap();
            let ty = TensorInfo { shape: vec![m, k], dtype: DType::Half };
            let layout = TensorLayout::linear(ty.elements(), DType::Half.bytes(), machine.tiles);
            let holders = owners(
                &layout
                    .elements
                    .iter()
                    .flat_map(|(tiles, count)| tiles.iter().map(move |tile| (tile, count.0)))
                    .scan(0, |end, (tile, count)| {
                        *end += count;
                        Some((tile, *end))
                    })
                    .collect::<Vec<_>>(),
                1,
            );
            let place = TensorPlace { ty, layout, axis: 1, rows: 0 };
            let places = TensorPlaces { operands: [Some(place), None], ..TensorPlaces::default() };
            let source = OperandSource::SameInnermost { group: k };
            let operands = ConvPassOperands::forward(source, OperandSource::Planned);
            let work = lower_placed(&machine, &plan, &operands, places).work;
            let mut routes = Vec::new();
            for (phase, _) in work.phases() {
                if let WorkPhaseKind::Exchange { routes: of_phase, .. } = &phase.kind
                    && phase.name.ends_with("Convolve/ExchangePre")
                {
                    routes.extend(of_phase.iter().cloned());
                }
            }
            let has_blocks =
                |route: &&WorkRoute| matches!(route.pattern, RoutePattern::Rearranged(_));
            let Some(route) = routes.iter().find(has_blocks) else { continue };
            followed += 1;
            // The parts of the left operand: rows in the order of tiles, channels apart.
            let split = &plan.partition;
            let swapped = plan.transform().swap_operands;
            let parts = PartitionedConv::from_plan(&plan);
            let mut wanted: BTreeMap<(TileId, TileId), u64> = BTreeMap::new();
            for (tile, part) in (0u32..).zip(&parts.parts) {
                let at = u64::from(tile);
                let [column, row] = [at % split.out_channels, at / split.out_channels];
                let row = row % (split.batch * split.field_parts());
                // Parts before this one with the same other indices.
                let sum_before = |of: u64, step: u64, size: &dyn Fn(usize) -> u64| -> u64 {
                    let first = at - of * step;
                    (0..of).map(|index| size((first + index * step) as usize)).sum()
                };
                let count_rows = |tile: usize| {
                    let part = &parts.parts[tile];
                    if swapped {
                        part.out_channels.real
                    } else {
                        part.field_elements() * part.batch
                    }
                };
                let [index, step] = if swapped { [column, 1] } else { [row, split.out_channels] };
                let first_row = sum_before(index, step, &count_rows);
                let inside = split.out_channels * split.batch * split.field_parts();
                let first_channel =
                    sum_before(at / inside, inside, &|tile| parts.parts[tile].in_channels.real);
                for row in first_row..first_row + count_rows(tile as usize) {
                    for channel in first_channel..first_channel + part.in_channels.real {
                        let holder = holders[(row * k + channel) as usize];
                        *wanted.entry((holder, TileId(tile))).or_default() += 1;
                    }
                }
            }
            assert_eq!(links(route), wanted, "{m} {k} {n}: {split:?}");
        }
        assert!(followed > 1, "{followed} products read their operand in place");
    }
}
