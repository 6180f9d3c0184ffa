//! A model that is imported from an ONNX file.

use super::ModelDef;
use super::model_spec::{ModelPrecision, ModelSpec};
use crate::graph::{GraphError, ImportProblem, ModelGraph};
use crate::onnx::{self, ImportSettings};

/// The model of every spec with `model.onnx`.
pub(crate) static IMPORTED: ModelDef = ModelDef {
    name: "onnx",
    about: "The graph of an ONNX file: model.onnx is its path",
    sizes: &[],
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let Some(file) = &spec.file else {
        return Err(GraphError::new("onnx", ImportProblem::NoFile));
    };
    let as_written = matches!(spec.number_formats, ModelPrecision::AsIs | ModelPrecision::Float32);
    let types = if as_written { None } else { Some((spec.precision, spec.parameter_type)) };
    let settings = ImportSettings { options: &spec.import, types, training: spec.training };
    onnx::import(file, &settings)
}
