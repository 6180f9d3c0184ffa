//! Tensors joined along one axis, by copies on the tiles they lie on.

use super::{Operator, Split};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise;
use crate::lower::layout::Layout;
use crate::lower::{LowerError, Lowering, runs, work::Work};
use tilescope_report::units::TileRuns;

/// The operands one after the other along `axis`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Concat {
    pub axis: usize,
}

impl Operator for Concat {
    fn kind(&self) -> &'static str {
        "concat"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let Some(first) = inputs.first().filter(|ty| self.axis < ty.shape.len()) else {
            return Err(format!("there is nothing to join along axis {}", self.axis));
        };
        let mut whole = first.clone();
        for part in &inputs[1..] {
            let mut expected = first.clone();
            let size = part.shape.get(self.axis).copied().unwrap_or(0);
            expected.shape[self.axis] = size;
            if *part != expected {
                return Err(format!("{first} and {part} differ beside axis {}", self.axis));
            }
            let sum = whole.shape[self.axis].checked_add(size);
            whole.shape[self.axis] = sum.ok_or_else(|| "the result is too large".to_string())?;
        }
        Ok(vec![whole])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let inputs = 0..backward.node.inputs.len();
        let sizes = inputs.map(|input| backward.input_type(input).shape[self.axis]).collect();
        let parts = backward.apply_all("grad", Split { axis: self.axis, sizes }, &[gradient])?;
        Ok(parts.into_iter().map(Some).collect())
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.outputs[0]).dtype;
        let parts: Vec<Layout> =
            node.inputs.iter().map(|part| lowering.layout_or_linear(*part)).collect();
        let elements =
            parts.iter().fold(TileRuns::empty(), |sum, part| runs::add(&sum, &part.elements));
        let mut work = Work::default();
        work.push(elementwise::cast("Concat/OnTileCopy", dtype, dtype, &elements));
        lowering.lay_out(node.outputs[0], Layout { elements, order: parts[0].order });
        Ok(work)
    }
}
