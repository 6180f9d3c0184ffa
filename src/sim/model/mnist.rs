//! The network of the PopTorch pipelining tutorial (SDK 3.0): two convolution layers and two
//! linear ones on MNIST images, in blocks B1 to B4.

use super::ModelDef;
use crate::sim::graph::{DType, Graph, GraphBuilder, GraphError, Role, TensorId, TensorType};
use crate::sim::ops::{Activation, BiasAdd, Conv2d, CrossEntropy, Pool, Reshape};
use crate::sim::spec::ModelSpec;

/// Images are 28 x 28 in one channel; ten classes.
const IMAGE: u64 = 28;
const CLASSES: u64 = 10;

/// The MNIST network.
pub const MODEL: ModelDef = ModelDef {
    name: "mnist",
    about: "MNIST: conv 5x5 1-10, conv 5x5 10-20, linear 320-256, linear 256-10; blocks B1 to B4",
    sizes: &[],
    trainable: true,
    batched: true,
    build,
};

fn build(spec: &ModelSpec) -> Result<Graph, GraphError> {
    let (batch, dtype) = (spec.batch_size, spec.precision);
    let mut graph = GraphBuilder::new();
    graph.block("B1");
    let image = TensorType::new([batch, 1, IMAGE, IMAGE], dtype);
    let mut x = graph.tensor("image", image, Role::Input);
    x = conv_layer(&mut graph, "layer1", x, 10, dtype)?;
    graph.block("B2");
    x = conv_layer(&mut graph, "layer2", x, 20, dtype)?;
    graph.block("B3");
    x = graph.apply("flatten", Reshape { shape: vec![batch, 320] }, &[x])?;
    x = super::linear(&mut graph, "layer3", x, 256, dtype)?;
    x = graph.apply("layer3_act", Activation::RELU, &[x])?;
    graph.block("B4");
    x = super::linear(&mut graph, "layer4", x, CLASSES, dtype)?;
    graph.output(x);
    if spec.training {
        let labels = TensorType::new([batch], DType::Int);
        let labels = graph.tensor("labels", labels, Role::Input);
        let loss = graph.apply("loss", CrossEntropy, &[x, labels])?;
        graph.output(loss);
        graph.loss(loss);
    }
    Ok(graph.finish())
}

/// Convolution 5 x 5 with bias, max-pool 2, ReLU: `ConvLayer` of the tutorial.
fn conv_layer(
    graph: &mut GraphBuilder,
    name: &str,
    x: TensorId,
    filters: u64,
    dtype: DType,
) -> Result<TensorId, GraphError> {
    let channels = graph.graph().tensor(x).ty.shape[1];
    let weights = TensorType::new([filters, channels, 5, 5], dtype);
    let weights = graph.tensor(&format!("{name}/conv/weight"), weights, Role::Parameter);
    let bias = TensorType::new([filters], dtype);
    let bias = graph.tensor(&format!("{name}/conv/bias"), bias, Role::Parameter);
    let x = graph.apply(&format!("{name}/conv"), Conv2d::default(), &[x, weights])?;
    let x = graph.apply(&format!("{name}/conv/bias"), BiasAdd { axis: 1 }, &[x, bias])?;
    let x = graph.apply(&format!("{name}/pool"), Pool::max(2, 2, 0), &[x])?;
    graph.apply(&format!("{name}/relu"), Activation::RELU, &[x])
}
