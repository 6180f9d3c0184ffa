//! Linear layers computed in parts, one after the other (poptorch.SerializedMatMul, PopART
//! willow/src/transforms/serializematmuls.cpp): temporaries of one part at a time.
//!
//! One dimension of the layer is cut. In each of its three products that dimension belongs to two
//! of the three tensors: operands that have it are sliced, a result that has it is put together,
//! and a result that lacks it is added up.

use super::{LoweringContext, MatMulPhase, MatMulSizes, NodeOperands};
use crate::poplar::work::{
    MemoryConstraint, OperationWork, OperationWorkItem, TemporaryVariable, WorkPhase,
};
use crate::poplin::planner::{PoplibsOptions, SerializeMatMulOption};
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::popops::planner_cycles::dynamic_slice;
use crate::shape::TensorId;
use tilescope_report::MemoryCategory;
use tilescope_report::units::TileRuns;

/// Dimension of a layer `x[m,k] . w[k,n]` that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatMulSerializationMode {
    /// `m`, rows of the input.
    InputChannels,
    /// `k`, which is summed over.
    ReducingDim,
    /// `n`, columns of the weights.
    OutputChannels,
}

/// How layers are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatMulSerialization {
    pub dim: MatMulSerializationMode,
    /// Into how many parts.
    pub parts: u64,
}

/// Into how many parts the tensors of a layer are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatMulSerialParts {
    /// `x[m,k]` and its gradient.
    pub x: u64,
    /// `w[k,n]` and its gradient.
    pub w: u64,
    /// `y[m,n]` and its gradient.
    pub y: u64,
}

impl MatMulSerialParts {
    pub(crate) const NONE: Self = Self { x: 1, w: 1, y: 1 };

    /// The two operands and the result of a product.
    fn operand_and_result_parts(self, product: MatMulPhase) -> ([u64; 2], u64) {
        match product {
            MatMulPhase::Forward => ([self.x, self.w], self.y),
            MatMulPhase::InputGradient => ([self.y, self.w], self.x),
            MatMulPhase::WeightGradient => ([self.x, self.y], self.w),
        }
    }

    /// Parts of the loop.
    fn parts(self) -> u64 {
        self.x.max(self.w).max(self.y)
    }
}

impl MatMulSerialization {
    /// The cut that was asked for, if any was.
    pub(crate) fn chosen(options: &PoplibsOptions) -> Option<Self> {
        let dim = match options.serialize_matmul {
            SerializeMatMulOption::None => return None,
            SerializeMatMulOption::InputChannels => MatMulSerializationMode::InputChannels,
            SerializeMatMulOption::ReducingDim => MatMulSerializationMode::ReducingDim,
            SerializeMatMulOption::OutputChannels => MatMulSerializationMode::OutputChannels,
        };
        Some(Self { dim, parts: options.serialize_matmul_factor })
    }

    /// Sizes of one part of a layer, and how its tensors are cut. Products side by side, as in
    /// attention, are no layer, and what does not divide evenly stays whole.
    pub(crate) fn split_sizes(
        self,
        whole: MatMulSizes,
    ) -> Option<(MatMulSizes, MatMulSerialParts)> {
        let Self { dim, parts } = self;
        let mut part = whole;
        let size = match dim {
            MatMulSerializationMode::InputChannels => &mut part.m,
            MatMulSerializationMode::ReducingDim => &mut part.k,
            MatMulSerializationMode::OutputChannels => &mut part.n,
        };
        if whole.groups > 1 || parts < 2 || !size.is_multiple_of(parts) {
            return None;
        }
        *size /= parts;
        let cut = match dim {
            MatMulSerializationMode::InputChannels => {
                MatMulSerialParts { x: parts, w: 1, y: parts }
            }
            MatMulSerializationMode::ReducingDim => MatMulSerialParts { x: parts, w: parts, y: 1 },
            MatMulSerializationMode::OutputChannels => {
                MatMulSerialParts { x: 1, w: parts, y: parts }
            }
        };
        Some((part, cut))
    }
}

impl LoweringContext<'_> {
    /// The loop over the parts of a product, around the `work` of one part.
    pub(super) fn loop_over_serial_parts(
        &mut self,
        node: &NodeOperands,
        product: MatMulPhase,
        cut: MatMulSerialParts,
        work: OperationWork,
    ) -> OperationWork {
        let (operands, result) = cut.operand_and_result_parts(product);
        let mut body = OperationWork::default();
        let mut temporaries = Vec::new();
        for ((tensor, parts), name) in node.inputs.iter().zip(operands).zip(["input", "weights"]) {
            if parts > 1 {
                let name = format!("serialSlice/{name}");
                body.push(self.slices(*tensor, parts, &name, "DynamicSlice1d"));
                temporaries.push((name, self.part_bytes(*tensor, parts), 0));
            }
        }
        let before = body.phases().len();
        body.append(work);
        let made = node.outputs[0];
        let dtype = self.tensor_type(made).dtype;
        let elements = self.part_elements(made, result);
        temporaries.push(("serialResult".to_string(), self.part_bytes(made, result), before));
        let mut whole = OperationWork::default();
        if result > 1 {
            body.push(self.slices(made, result, "serialUpdate", "DynamicUpdateSlice1D"));
        } else {
            whole.push(elementwise::fill("serialResult/zero", dtype, &elements));
            let name = "serialResult/add";
            body.push(elementwise::binary_in_place(name, BinaryOpType::Add, dtype, &elements));
        }
        let end = body.phases().len();
        body.temporaries.extend(temporaries.into_iter().map(|(name, bytes, from)| {
            TemporaryVariable {
                name,
                category: MemoryCategory::Variable,
                bytes,
                memory_constraint: MemoryConstraint::Any,
                live: from..end,
            }
        }));
        let start = whole.phases().len();
        whole.items.push(OperationWorkItem::Loop { times: cut.parts(), body: body.items });
        whole.temporaries.extend(body.temporaries.into_iter().map(|each| each.shifted_by(start)));
        whole
    }

    /// Elements of one part on each tile: every tile holds its share of all parts.
    fn part_elements(&mut self, tensor: TensorId, parts: u64) -> TileRuns<u64> {
        self.layout_or_linear(tensor).elements.map(|count| count.div_ceil(parts))
    }

    fn part_bytes(&mut self, tensor: TensorId, parts: u64) -> TileRuns<u64> {
        let bytes = self.tensor_type(tensor).dtype.bytes();
        self.part_elements(tensor, parts).map(|count| count * bytes)
    }

    /// Copies of one part out of a tensor, or into it.
    fn slices(&mut self, tensor: TensorId, parts: u64, name: &str, vertex: &str) -> WorkPhase {
        let (dtype, machine) = (self.tensor_type(tensor).dtype, self.machine);
        let elements = self.part_elements(tensor, parts);
        let vertex = format!("popops::{vertex}<{}>", dtype.poplar_name());
        elementwise::phase(name, vertex, 2, &elements, |count| {
            dynamic_slice(&machine, *count, dtype)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: MatMulSizes = MatMulSizes { groups: 1, m: 6, k: 8, n: 10 };

    #[test]
    fn a_dimension_belongs_to_two_tensors() {
        for (dim, cut) in [
            (MatMulSerializationMode::InputChannels, MatMulSerialParts { x: 2, w: 1, y: 2 }),
            (MatMulSerializationMode::ReducingDim, MatMulSerialParts { x: 2, w: 2, y: 1 }),
            (MatMulSerializationMode::OutputChannels, MatMulSerialParts { x: 1, w: 2, y: 2 }),
        ] {
            let (part, is) =
                MatMulSerialization { dim, parts: 2 }.split_sizes(SIZES).expect("even sizes");
            assert_eq!(is, cut);
            assert_eq!(2 * part.m * part.k * part.n, 6 * 8 * 10);
        }
    }

    #[test]
    fn what_does_not_divide_stays_whole() {
        let cut = |parts| MatMulSerialization { dim: MatMulSerializationMode::ReducingDim, parts };
        assert_eq!(cut(3).split_sizes(SIZES), None);
        assert_eq!(cut(1).split_sizes(SIZES), None);
        assert_eq!(cut(2).split_sizes(MatMulSizes { groups: 4, ..SIZES }), None);
    }
}
