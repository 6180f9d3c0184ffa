//! The operations that connect the body of a repeat with the operations around it: tensors that
//! pass from one iteration to the next, parts of tensors that iterations read, and parts that they
//! write (popart willow/src/popx/op/{loopx,dynamic/dynamicslicex,dynamic/dynamicupdatex}.cpp).

use super::{
    LoweredOperation, LoweringContext, LoweringResult, NodeOperands, Operator, OutputAlias,
    ShapeError, Unwinding, expect_operands, expect_same,
};
use crate::poplar::exchange;
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, cycles};
use crate::popops::relayout;
use crate::poputil::tensor_layout::{ElementOrder, LOAD_BYTES, TensorLayout, linear_mapping};
use crate::shape::{DType, TensorId, TensorInfo};
use std::fmt;
use tilescope_report::units::{Elements, TileRange, TileRuns};

/// An operation at the border of a repeat.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RepeatPartOp {
    /// The operand in a tensor that the iterations change.
    State,
    /// The second operand, a state, overwritten with the first at the end of an iteration.
    Update,
    /// The operand in a layout in which each tile has the same elements of all parts of the first
    /// axis.
    Operand,
    /// The part of the first operand for the iteration that the second counts.
    Slice,
    /// A tensor of this type without values, whose parts the iterations write.
    Buffer(TensorInfo),
    /// The first operand, a buffer, with the second as the part of the iteration that the third
    /// counts.
    Write,
}

impl fmt::Debug for RepeatPartOp {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("RepeatPartOp").field(&self.kind()).finish()
    }
}

impl Operator for RepeatPartOp {
    fn kind(&self) -> &'static str {
        match self {
            Self::State => "loop_state",
            Self::Update => "loop_update",
            Self::Operand => "loop_operand",
            Self::Slice => "dynamic_slice",
            Self::Buffer(_) => "loop_buffer",
            Self::Write => "dynamic_update",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let result = match self {
            Self::State | Self::Operand => {
                expect_operands(inputs, 1)?;
                inputs[0].clone()
            }
            Self::Update => {
                expect_operands(inputs, 2)?;
                expect_same(&inputs[0], &inputs[1])?;
                inputs[1].clone()
            }
            Self::Slice => {
                expect_operands(inputs, 2)?;
                part_type(&inputs[0])
            }
            Self::Buffer(ty) => {
                expect_operands(inputs, 0)?;
                ty.clone()
            }
            Self::Write => {
                expect_operands(inputs, 3)?;
                expect_same(&inputs[1], &part_type(&inputs[0]))?;
                inputs[0].clone()
            }
        };
        Ok(vec![result])
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        match self {
            Self::Operand => {
                vec![Some(sliceable(lowering.tensor_type(node.inputs[0]), lowering.tiles))]
            }
            _ => Vec::new(),
        }
    }

    fn readers_create_result(&self) -> bool {
        *self == Self::State
    }

    fn unwinding(&self, _: &[TensorInfo], _: usize) -> Unwinding {
        match self {
            Self::State => Unwinding::InOrder,
            _ => Unwinding::DeadEnd,
        }
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let result = node.outputs[0];
        let mut work = OperationWork::default();
        match self {
            Self::State => {
                let own = lowering.layout_or_linear(node.inputs[0]);
                let layout = lowering.layout(result).cloned().unwrap_or(own);
                work = copy(lowering, node.inputs[0], &layout, "State");
                lowering.set_layout(result, layout);
            }
            Self::Update => {
                let layout = lowering.layout_or_linear(node.inputs[1]);
                work = copy(lowering, node.inputs[0], &layout, "Next");
                lowering.set_layout(result, layout);
            }
            Self::Operand => {
                let ty = lowering.tensor_type(result);
                let layout = sliceable(ty, lowering.tiles);
                work = copy(lowering, node.inputs[0], &layout, "Sliceable");
                lowering.set_layout(result, layout);
            }
            Self::Slice => {
                let part = lowering.tensor_type(result);
                let layout = part_layout(part, lowering.tiles);
                spread_number(&mut work, lowering, node.inputs[1], &layout);
                push_dynamic(&mut work, "dynamicSlice", "DynamicSlice1D", part.dtype, &layout);
                lowering.set_layout(result, layout);
            }
            Self::Buffer(_) => {}
            Self::Write => {
                let part = lowering.tensor_type(node.inputs[1]);
                let layout = lowering.layout_or_linear(node.inputs[1]);
                spread_number(&mut work, lowering, node.inputs[2], &layout);
                push_dynamic(
                    &mut work,
                    "dynamicUpdate",
                    "DynamicUpdateSlice1D",
                    part.dtype,
                    &layout,
                );
                let shape = &lowering.tensor_type(result).shape;
                let stack = stacked(&layout, shape);
                lowering.set_layout(node.inputs[0], stack.clone());
                lowering.set_layout(result, stack);
            }
        }
        Ok(LoweredOperation::from(work))
    }

    fn output_alias(&self) -> OutputAlias {
        match self {
            Self::State | Self::Slice | Self::Buffer(_) => OutputAlias::NoAlias,
            Self::Update => OutputAlias::View(1),
            Self::Operand => OutputAlias::ViewIfAlike(0),
            Self::Write => OutputAlias::View(0),
        }
    }

    fn copied_operand(&self) -> Option<usize> {
        match self {
            Self::Update | Self::Operand => Some(0),
            _ => None,
        }
    }

    fn overwritten_operand(&self) -> Option<usize> {
        match self {
            Self::Update => Some(1),
            Self::Write => Some(0),
            _ => None,
        }
    }
}

/// The type of the parts along the first axis.
fn part_type(whole: &TensorInfo) -> TensorInfo {
    TensorInfo::new(whole.shape.get(1..).unwrap_or_default(), whole.dtype)
}

/// The layout of one part of a sliceable tensor: on as many tiles as have a load each, because each
/// tile holds its elements of all parts.
fn part_layout(part: &TensorInfo, tiles: u32) -> TensorLayout {
    let elements = linear_mapping(part.elements(), part.dtype.bytes(), LOAD_BYTES, tiles);
    TensorLayout { elements, order: ElementOrder::Linear }
}

/// The layout in which each tile has the same elements of all parts along the first axis, so that
/// no slice needs an exchange (poplibs lib/popops/DynamicSlice.cpp, createSliceableTensor).
fn sliceable(whole: &TensorInfo, tiles: u32) -> TensorLayout {
    let part = part_type(whole);
    let layout = part_layout(&part, tiles);
    let parts = whole.shape.first().copied().unwrap_or(1);
    // In memory, the elements of all parts follow one another.
    let in_memory: Vec<u64> = part.shape.iter().copied().chain([parts]).collect();
    let last = part.shape.len();
    let from_memory: Vec<usize> = std::iter::once(last).chain(0..last).collect();
    let order = ElementOrder::Linear.permuted(&in_memory, &from_memory);
    TensorLayout { elements: layout.elements.map(|count| *count * parts), order }
}

/// The layout of a tensor of `shape` whose parts along the first axis have a layout, in place.
fn stacked(part: &TensorLayout, shape: &[u64]) -> TensorLayout {
    let parts = shape.first().copied().unwrap_or(1);
    let mut one = shape.to_vec();
    one[0] = 1;
    let order = part.order.resized(&one, shape);
    TensorLayout { elements: part.elements.map(|count| *count * parts), order }
}

/// The work that copies a tensor to another one with this layout.
fn copy(
    lowering: &mut LoweringContext,
    from: TensorId,
    to: &TensorLayout,
    name: &str,
) -> OperationWork {
    let layout = lowering.layout_or_linear(from);
    let dtype = lowering.tensor_type(from).dtype;
    if layout == *to {
        // Each tile copies whole variables, which begin at double words.
        let piece = LOAD_BYTES / dtype.bytes();
        return OperationWork::of_phase(relayout::copy(name, dtype, &to.elements, piece.max(1)));
    }
    let mut work = lowering.relayout_tensor(from, to, name);
    if layout.order == to.order {
        // The exchange writes the result itself.
        work.temporaries.clear();
    }
    work
}

/// Adds the exchange that sends the number of the iteration to the tiles of a part.
fn spread_number(
    work: &mut OperationWork,
    lowering: &mut LoweringContext,
    number: TensorId,
    part: &TensorLayout,
) {
    let bytes = lowering.tensor_type(number).dtype.bytes();
    let holders = lowering.layout_or_linear(number).bytes(bytes);
    let receivers = TileRange::first_tiles(part.elements.tile_count());
    let speed = lowering.exchange_speed();
    let phase = exchange::broadcast("iteration", &holders, receivers, lowering.tiles, speed);
    work.push_some(phase);
}

/// Adds the vertices that copy one part of a tensor, whose place is known at run time.
fn push_dynamic(
    work: &mut OperationWork,
    name: &str,
    vertex: &str,
    dtype: DType,
    part: &TensorLayout,
) {
    let elements: &TileRuns<Elements> = &part.elements;
    let vertex = format!("popops::{vertex}<{}>", dtype.poplar_name());
    work.push(elementwise::phase(name, vertex, 3, elements, |count| {
        cycles::dynamic_slice(dtype, *count, 1)
    }));
}
