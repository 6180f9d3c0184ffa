//! Unknown operators, if the spec allows them.

use crate::graph::{GraphError, ImportProblem};
use crate::onnx::node_import::NodeImport;
use crate::operators::UnknownOp;
use crate::shape::TensorInfo;

/// Prices a node as one pass over its operands.
pub(in crate::onnx) fn build(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut inputs = Vec::new();
    for input in 0..node.node.inputs.len() {
        inputs.extend(node.optional(input)?);
    }
    let asked: Vec<usize> =
        (0..node.node.outputs.len()).filter(|output| node.output_type(*output).is_some()).collect();
    let mut outputs = Vec::new();
    for output in &asked {
        let dtype = node.output_type(*output);
        let dtype = dtype.ok_or_else(|| node.refuse(ImportProblem::OutputWithoutType))?;
        outputs.push(TensorInfo::new(node.output_dims(*output)?, dtype));
    }
    let made = node.apply_all("", UnknownOp { outputs }, &inputs)?;
    for (output, tensor) in asked.into_iter().zip(made) {
        node.set(output, tensor)?;
    }
    Ok(())
}
