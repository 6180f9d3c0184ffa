//! Types of outputs, and of weights that are wider in the file than the operands they meet.

use super::Resolver;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{ValueId, ValueSource};
use crate::shape::{self, NodeView, TensorType};

/// Types of a node's outputs: from the rule of its operator, or else from the file, or else as for
/// an element-wise operation.
pub(super) fn of_outputs(
    view: &NodeView,
    written: &dyn Fn(usize) -> Option<TensorType>,
) -> Result<Vec<TensorType>, OnnxError> {
    let inferred = shape::infer(view);
    let file_decides = match &inferred {
        Ok(types) => types.is_none(),
        Err(_) => shape::counts_results(view.op),
    };
    if file_decides && let Some(types) = (0..view.outputs).map(written).collect() {
        return Ok(types);
    }
    match inferred? {
        Some(types) => Ok(types),
        None => shape::as_element_wise(view),
    }
}

/// Operators whose floating-point operands all have one type.
const OF_ONE_TYPE: &[&str] = &[
    "Add",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Div",
    "Einsum",
    "GRU",
    "Gemm",
    "LSTM",
    "MatMul",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "PRelu",
    "RNN",
    "Sub",
    "Sum",
    "Where",
];

impl Resolver<'_> {
    /// Gives weights the 16-bit type of the other operands. Exporters that fold norms into weights
    /// of a bfloat16 model write those as float32, which the standard does not allow: operands must
    /// have one type.
    pub(super) fn match_weight_types(&mut self, op: &str, inputs: &[Option<ValueId>]) {
        let is_half =
            |element: ElementKind| [ElementKind::Float16, ElementKind::BFloat16].contains(&element);
        let is_weight = |source: ValueSource| {
            [ValueSource::Initializer, ValueSource::Constant].contains(&source)
        };
        let mut half = None;
        for id in inputs.iter().flatten() {
            let value = &self.values[id.index()];
            if !is_weight(value.source) && is_half(value.element) {
                half = Some(value.element);
            }
        }
        let Some(half) = half.filter(|_| OF_ONE_TYPE.contains(&op)) else { return };
        for id in inputs.iter().flatten() {
            let value = &mut self.values[id.index()];
            if is_weight(value.source) && value.element == ElementKind::Float32 {
                value.element = half;
            }
        }
    }
}
