//! Sweeps of a stencil over a field: heat diffusion (simehaa/IPU HeatEquation2D), and the blur of
//! an image (thorbenlouw/lbm-graphcore GaussianBlurLowLevel).

use super::{ModelDef, ModelSpec, size};
use crate::custom::stencil::StencilNeighbourhood;
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::StencilOp;
use crate::shape::{TensorInfo, TensorRole};
use crate::spec_keys::{SpecKey, SpecKeyType};

const SIZES: &[SpecKey] = &[
    size("model.height", "1000", "Rows of the field"),
    size("model.width", "1000", "Columns of the field"),
    size("model.channels", "1", "Channels of a cell: 4 for an image with transparency"),
    SpecKey::of_model(
        "model.corners",
        SpecKeyType::Integer(0, 1),
        "0",
        "1 also reads corner cells (9 points); 0 reads 5 points",
        &[],
    ),
    SpecKey::of_model(
        "model.sweeps",
        SpecKeyType::Integer(1, 64),
        "1",
        "Sweeps over the field",
        &[],
    ),
];

/// Sweeps over a field.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "stencil",
    about: "Sweeps of a 5 or 9 point stencil over a field[height,width,channels]",
    sizes: SIZES,
    trainable: false,
    batched: false,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let sizes = ["height", "width", "channels"].map(|name| spec.size(name));
    let neighbours = if spec.size("corners") == 1 {
        StencilNeighbourhood::NinePoint
    } else {
        StencilNeighbourhood::FivePoint
    };
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let mut field =
        graph.tensor("field", TensorInfo::new(sizes, spec.precision), TensorRole::Input);
    for sweep in 0..spec.size("sweeps") {
        field =
            graph.apply(&format!("sweep{sweep}"), StencilOp::over_field(neighbours), &[field])?;
    }
    Ok(graph.finish())
}
