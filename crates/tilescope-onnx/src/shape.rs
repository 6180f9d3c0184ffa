//! Shapes and element types of the results of operators, by operator and version.
//!
//! One file per family of operators; the rules are those of <https://onnx.ai/onnx/operators/>. A
//! rule gets the types of all operands, and the known values, such as lengths, axes and repeats.

mod convolution;
mod element_wise;
mod gather;
mod generator;
mod loss;
mod matmul;
mod movement;
mod normalization;
mod quantize;
mod recurrent;
mod reduce;
mod resize;
mod slice;

use crate::attributes::Attributes;
use crate::check;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{OnnxValue, ValueSource};

pub(crate) use gather::{MOST_KEY, counts_results};
pub(crate) use generator::shape_bounds;
pub(crate) use matmul::{AttentionDims, EinsumLabels};
pub(crate) use movement::{pad_amounts, transpose_order};
pub(crate) use reduce::reduced_axes;
pub(crate) use slice::slice_ranges;

/// Element type and shape of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorType {
    pub element: ElementKind,
    pub dims: Vec<u64>,
}

/// The data of a node that rules can use.
pub(crate) struct NodeView<'a> {
    pub name: &'a str,
    pub op: &'a str,
    /// Empty for the standard's own.
    pub domain: &'a str,
    /// Version of the set of operators.
    pub opset: u32,
    pub inputs: Vec<Option<&'a OnnxValue>>,
    pub attributes: &'a Attributes,
    /// Number of outputs, including absent ones.
    pub outputs: usize,
}

/// Returns types for at least as many outputs as the node has.
type ShapeRule = fn(&NodeView) -> Result<Vec<TensorType>, OnnxError>;

/// The lists of rules, a family each.
const FAMILIES: &[fn(&str) -> Option<ShapeRule>] = &[
    element_wise::rule,
    movement::rule,
    matmul::rule,
    convolution::rule,
    normalization::rule,
    reduce::rule,
    gather::rule,
    slice::rule,
    generator::rule,
    resize::rule,
    recurrent::rule,
    loss::rule,
    quantize::rule,
];

/// True if there is a rule for this standard operator.
pub(crate) fn is_known(op: &str) -> bool {
    FAMILIES.iter().any(|family| family(op).is_some())
}

/// The types of a node's outputs; `None` if its operator is not one of the known standard ones.
pub(crate) fn infer(view: &NodeView) -> Result<Option<Vec<TensorType>>, OnnxError> {
    if !view.domain.is_empty() {
        return Ok(None);
    }
    let rule = FAMILIES.iter().find_map(|family| family(view.op));
    rule.map(|rule| rule(view)).transpose()
}

/// The types of the outputs of an operator of a non-standard set: its operands, broadcast to one
/// shape. All element-wise operators of the standard have a rule.
pub(crate) fn as_element_wise(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let to_error = || {
        view.error("the operator is unknown, and the file does not state the shape of its output")
    };
    let is_foreign = !view.domain.is_empty();
    let first = view.inputs.iter().flatten().next().filter(|_| is_foreign).ok_or_else(to_error)?;
    let dims = view
        .inputs
        .iter()
        .flatten()
        .try_fold(Vec::new(), |dims, operand| broadcast(&dims, &operand.dims));
    let output = TensorType { element: first.element, dims: dims.ok_or_else(to_error)? };
    Ok(vec![output; view.outputs])
}

/// The shape to which two shapes broadcast, as in numpy; `None` if they are incompatible.
pub(crate) fn broadcast(left: &[u64], right: &[u64]) -> Option<Vec<u64>> {
    let rank = left.len().max(right.len());
    let get_dim = |dims: &[u64], axis: usize| {
        (axis + dims.len()).checked_sub(rank).and_then(|axis| dims.get(axis)).copied().unwrap_or(1)
    };
    (0..rank)
        .map(|axis| match (get_dim(left, axis), get_dim(right, axis)) {
            (left, right) if left == right => Some(left),
            (1, other) | (other, 1) => Some(other),
            _ => None,
        })
        .collect()
}

impl<'a> NodeView<'a> {
    /// An error at this node.
    pub(crate) fn error(&self, problem: impl Into<String>) -> OnnxError {
        OnnxError::Graph { place: check::place(self.name, self.op), problem: problem.into() }
    }

    /// An operand that must be present.
    pub(crate) fn input(&self, at: usize) -> Result<&'a OnnxValue, OnnxError> {
        self.optional(at).ok_or_else(|| self.error(format!("its input {at} is missing")))
    }

    /// An operand that may be absent.
    pub(crate) fn optional(&self, at: usize) -> Option<&'a OnnxValue> {
        self.inputs.get(at).copied().flatten()
    }

    /// The type of an operand.
    pub(crate) fn like(&self, at: usize) -> Result<TensorType, OnnxError> {
        let value = self.input(at)?;
        Ok(TensorType { element: value.element, dims: value.dims.clone() })
    }

    /// Values of an operand that a shape depends on; `None` if it is absent.
    pub(crate) fn known_ints(&self, at: usize) -> Result<Option<Vec<i64>>, OnnxError> {
        let Some(value) = self.optional(at) else { return Ok(None) };
        match value.content.as_ref().and_then(|content| content.ints()) {
            Some(ints) => Ok(Some(ints)),
            None => Err(self.unknown_values(value)),
        }
    }

    /// The same for floats.
    pub(crate) fn known_floats(&self, at: usize) -> Result<Option<Vec<f64>>, OnnxError> {
        let Some(value) = self.optional(at) else { return Ok(None) };
        match &value.content {
            Some(content) => Ok(Some(content.floats())),
            None => Err(self.unknown_values(value)),
        }
    }

    fn unknown_values(&self, value: &OnnxValue) -> OnnxError {
        let why = match value.source {
            ValueSource::Initializer if value.is_external => {
                "which are in an external data file. External data is never opened: save the model \
                 with small tensors inside, as onnx.save does with size_threshold=1024"
            }
            ValueSource::Initializer | ValueSource::Constant => {
                "which are not in the file or are too many"
            }
            _ => {
                "which are computed at run time. Programs have fixed shapes: export the model with \
                 constants in their place, or pad to the largest size"
            }
        };
        self.error(format!("the shape of its output depends on values of {:?}, {why}", value.name))
    }

    /// Integers that were an attribute before version `since`, and are an input from then on.
    pub(crate) fn ints_since(
        &self,
        since: u32,
        input: usize,
        attribute: &str,
    ) -> Result<Option<Vec<i64>>, OnnxError> {
        if self.opset >= since {
            return self.known_ints(input);
        }
        Ok(self.attributes.ints(attribute)?.map(<[i64]>::to_vec))
    }

    /// An integer attribute, with its default.
    pub(crate) fn int_or(&self, name: &str, default: i64) -> Result<i64, OnnxError> {
        Ok(self.attributes.int(name)?.unwrap_or(default))
    }

    /// An axis from 0, for one that may count from the end.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, OnnxError> {
        let signed_rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let counted = if axis < 0 { axis.saturating_add(signed_rank) } else { axis };
        match usize::try_from(counted) {
            Ok(axis) if axis < rank => Ok(axis),
            _ => Err(self.error(format!("axis {axis} of a tensor of {rank} dimensions"))),
        }
    }

    /// Axes from 0 in ascending order; duplicates are refused.
    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, OnnxError> {
        let axes: Result<Vec<usize>, OnnxError> =
            axes.iter().map(|axis| self.axis(*axis, rank)).collect();
        let mut axes = axes?;
        axes.sort_unstable();
        if axes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.error("an axis is listed twice"));
        }
        Ok(axes)
    }

    /// A computed size, which may be invalid.
    pub(crate) fn size(&self, size: i128) -> Result<u64, OnnxError> {
        u64::try_from(size).map_err(|_| self.error(format!("a dimension of its output is {size}")))
    }

    /// The element type with the number in an attribute.
    pub(crate) fn element_attribute(&self, name: &str) -> Result<Option<ElementKind>, OnnxError> {
        let Some(number) = self.attributes.int(name)? else { return Ok(None) };
        let kind = u64::try_from(number).ok().and_then(ElementKind::from_number);
        kind.map(Some)
            .ok_or_else(|| self.error(format!("{name} = {number} is not an element type")))
    }
}
