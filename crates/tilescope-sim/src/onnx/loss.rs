//! The loss of an imported model in training.

use super::importer::Importer;
use super::options::LossChoice;
use crate::graph::GraphError;
use crate::operators::{
    BinaryOp, CrossEntropyOp, ImportProblem, NllOp, Operator, ReduceOp, ReshapeOp, ScaleOp,
    TransposeOp, UnaryOp,
};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::ReduceOperation;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use tilescope_onnx::{OnnxGraph, OnnxValue, ValueId, ValueSource};

/// Nodes that are losses.
const LOSS_NODES: [&str; 2] = ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"];

/// The loss of the file: an output of a loss node, or an output without axes that depends on
/// weights.
pub(super) fn of_file(file: &OnnxGraph) -> Option<ValueId> {
    for output in &file.outputs {
        if let ValueSource::Node(node) = file.value(*output).source
            && LOSS_NODES.contains(&file.nodes[node].op.as_str())
        {
            return Some(*output);
        }
    }
    let mut outputs = file.outputs.iter().copied();
    let single = outputs
        .find(|output| is_single_float(file, *output) && file.value(*output).dims.is_empty())?;
    if !weights_lead_to(file, single) {
        return None;
    }
    Some(single)
}

/// True if a value depends on weights: floats with axes, or floats of another file.
pub(super) fn weights_lead_to(file: &OnnxGraph, output: ValueId) -> bool {
    let mut made = Vec::new();
    for value in &file.values {
        let has_axes = !value.dims.is_empty() || value.is_external;
        made.push(value.source == ValueSource::Initializer && value.element.is_float() && has_axes);
    }
    for node in &file.nodes {
        if node.inputs.iter().flatten().any(|input| made[input.index()]) {
            for output in node.outputs.iter().flatten() {
                made[output.index()] = true;
            }
        }
    }
    made[output.index()]
}

/// True if an output is a single number made by a node, which may be a loss, including the loss of
/// one sample.
fn is_single_float(file: &OnnxGraph, output: ValueId) -> bool {
    let value = file.value(output);
    let made = matches!(value.source, ValueSource::Node(_));
    made && value.element.is_float() && value.elements() == 1
}

/// Adds the loss that the spec selects.
pub(super) fn add(importer: &mut Importer) -> Result<(), GraphError> {
    match importer.settings.options.loss {
        LossChoice::Auto => of_the_file(importer),
        LossChoice::Identity => identity(importer),
        LossChoice::CrossEntropy => {
            let values = output(importer)?;
            labelled(importer, values, CrossEntropyOp)
        }
        LossChoice::Nll => {
            let values = output(importer)?;
            labelled(importer, values, NllOp)
        }
        LossChoice::Mse => distance(importer, UnaryOpType::Square),
        LossChoice::L1 => distance(importer, UnaryOpType::Absolute),
        LossChoice::None => Err(refuse(ImportProblem::UntrainedLoss)),
    }
}

fn refuse(problem: ImportProblem) -> GraphError {
    GraphError::new("model.loss", problem)
}

/// The loss of the file, or the output that the spec names, if it is one number.
fn of_the_file(importer: &mut Importer) -> Result<(), GraphError> {
    let file = importer.file;
    let value = if importer.settings.options.loss_output.is_empty() {
        of_file(file)
            .or_else(|| file.outputs.iter().copied().find(|of| is_single_float(file, *of)))
            .ok_or_else(|| refuse(ImportProblem::NoLoss { outputs: output_names(file) }))?
    } else {
        let value = named_output(importer)?;
        if !is_single_float(file, value) {
            let OnnxValue { name, element, dims, .. } = file.value(value);
            return Err(refuse(ImportProblem::LossNotOneNumber {
                name: name.clone(),
                element: element.to_string(),
                dims: dims.clone(),
            }));
        }
        value
    };
    let loss = importer.tensor(value)?;
    importer.graph.loss(loss);
    Ok(())
}

/// The names of the outputs of the file.
fn output_names(file: &OnnxGraph) -> String {
    let names = file.outputs.iter().map(|output| file.value(*output).name.clone());
    names.collect::<Vec<_>>().join(", ")
}

/// The output that the spec names, or the first output of floats.
fn named_output(importer: &Importer) -> Result<ValueId, GraphError> {
    let file = importer.file;
    let name = &importer.settings.options.loss_output;
    let mut outputs = file.outputs.iter();
    if name.is_empty() {
        return outputs
            .find(|output| file.value(**output).element.is_float())
            .copied()
            .ok_or_else(|| refuse(ImportProblem::NoFloatOutput));
    }
    let found = outputs.find(|output| file.value(**output).name == *name).copied();
    found.ok_or_else(|| {
        let outputs = output_names(file);
        refuse(ImportProblem::UnknownOutput { name: name.clone(), outputs })
    })
}

/// The tensor of that output.
fn output(importer: &mut Importer) -> Result<TensorId, GraphError> {
    let value = named_output(importer)?;
    importer.tensor(value)
}

/// Adds an operation on the last block.
fn apply(
    importer: &mut Importer,
    name: &str,
    operator: impl Operator + 'static,
    inputs: &[TensorId],
) -> Result<TensorId, GraphError> {
    let name = importer.unique(name);
    importer.graph.apply(&name, operator, inputs)
}

/// Uses an output as the loss. Several elements are added up.
fn identity(importer: &mut Importer) -> Result<(), GraphError> {
    let x = output(importer)?;
    let axes = (0..importer.ty(x).shape.len()).collect();
    let sum = ReduceOp::new(ReduceOperation::Add, axes);
    let loss = apply(importer, "loss", sum, &[x])?;
    end(importer, loss)
}

fn end(importer: &mut Importer, loss: TensorId) -> Result<(), GraphError> {
    importer.graph.output(loss);
    importer.graph.loss(loss);
    Ok(())
}

/// Adds a loss of values `[rows, classes]` against labels that the host sends. With more than two
/// axes, classes are axis 1, as in the losses of the standard.
fn labelled(
    importer: &mut Importer,
    values: TensorId,
    operator: impl Operator + 'static,
) -> Result<(), GraphError> {
    importer.graph.output(values);
    let shape = importer.ty(values).shape.clone();
    let Some(classes) = shape.get(1).copied() else {
        return Err(refuse(ImportProblem::NoClasses(shape)));
    };
    let mut rows = values;
    if shape.len() > 2 {
        let permutation = (0..shape.len()).filter(|axis| *axis != 1).chain([1]).collect();
        rows = apply(importer, "loss/classes", TransposeOp { permutation }, &[rows])?;
        let count = shape.iter().product::<u64>() / classes.max(1);
        rows = apply(importer, "loss/rows", ReshapeOp { shape: vec![count, classes] }, &[rows])?;
    }
    let count = importer.ty(rows).shape[0];
    let name = importer.unique("labels");
    let labels = TensorInfo::new([count], DType::Int);
    let labels = importer.graph.tensor(&name, labels, TensorRole::Input);
    let name = importer.unique("loss");
    let loss = importer.graph.apply_all(&name, operator, &[rows, labels])?[0];
    end(importer, loss)
}

/// Adds the mean of a function of the distance from targets that the host sends.
fn distance(importer: &mut Importer, of: UnaryOpType) -> Result<(), GraphError> {
    let x = output(importer)?;
    importer.graph.output(x);
    let ty = importer.ty(x).clone();
    let name = importer.unique("targets");
    let targets = importer.graph.tensor(&name, ty.clone(), TensorRole::Input);
    let distance = BinaryOp(BinaryOpType::Subtract);
    let distance = apply(importer, "loss/difference", distance, &[x, targets])?;
    let each = apply(importer, "loss/each", UnaryOp(of), &[distance])?;
    let axes = (0..ty.shape.len()).collect();
    let sum = ReduceOp::new(ReduceOperation::Add, axes);
    let sum = apply(importer, "loss/sum", sum, &[each])?;
    let mean = ScaleOp::by(1.0 / ty.elements().0.max(1) as f64);
    let loss = apply(importer, "loss", mean, &[sum])?;
    end(importer, loss)
}
