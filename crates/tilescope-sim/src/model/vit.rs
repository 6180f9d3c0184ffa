//! Vision Transformer, base size with patches of 16 x 16 (Dosovitskiy et al., arXiv 2010.11929;
//! graphcore/examples vision/vit/pytorch).
//!
//! Blocks for stages: `embeddings`, `layer0` to `layer11`, `head`.

use super::layer_builder::{AttentionParams, ModelBuilder};
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{BinaryOp, ConcatOp, RepeatOp, SliceOp, TransposeOp};
use crate::shape::TensorInfo;
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size("model.image_size", "224", "Side of the square RGB images, a multiple of patch_size"),
    size("model.patch_size", "16", "Side of a patch"),
    super::depth("12"),
    size("model.hidden", "768", "Channels of a token, a multiple of heads"),
    size("model.heads", "12", "Heads of attention"),
    size("model.intermediate", "3072", "Channels inside the feed-forward layers"),
    size("model.classes", "1000", "Classes"),
];

/// ViT-B/16 with its default sizes.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "vit",
    about: "Vision Transformer, ViT-B/16 by default; blocks embeddings, layer0, ..., head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [side, patch, layers, hidden, heads, inner, classes] =
        ["image_size", "patch_size", "layers", "hidden", "heads", "intermediate", "classes"]
            .map(|name| spec.size(name));
    let batch = spec.batch_size;
    super::expect_divides("image_size", side, "patch_size", patch)?;
    super::expect_divides("hidden", hidden, "heads", heads)?;
    let mut model = ModelBuilder::new(spec);
    model.block("embeddings");
    let x = model.input("image", &[batch, 3, side, side], model.dtype);
    // Patches do not overlap: the convolution of the paper is a product with flattened patches.
    let rows = side / patch;
    let count = rows * rows;
    let x = model.reshape("patches/split", x, &[batch, 3, rows, patch, rows, patch])?;
    let together = TransposeOp { permutation: vec![0, 2, 4, 1, 3, 5] };
    let x = model.apply("patches/together", together, &[x])?;
    let x = model.reshape("patches/flat", x, &[batch * count, 3 * patch * patch])?;
    let x = model.linear("patches", x, hidden)?;
    let x = model.reshape("patches/split_batch", x, &[batch, count, hidden])?;
    let class = model.parameter("class_token", &[1, hidden])?;
    let ty = TensorInfo::new([batch, 1, hidden], model.dtype);
    let class = model.apply("class_token/repeat", RepeatOp { ty, axes: vec![0] }, &[class])?;
    let x = model.apply("tokens", ConcatOp { axis: 1 }, &[class, x])?;
    let tokens = count + 1;
    let positions = model.parameter("positions", &[tokens, hidden])?;
    let x = model.apply("positions/add", BinaryOp::ADD, &[x, positions])?;
    let mut x = model.reshape("tokens/flat", x, &[batch * tokens, hidden])?;
    x = model.dropout("embeddings/dropout", x)?;
    let sizes = AttentionParams { batch, tokens, heads, mask: None };
    for layer in 0..layers {
        let name = format!("layer{layer}");
        model.block(&name);
        x = model.pre_norm_layer(&name, x, sizes, inner)?;
    }
    model.block("head");
    let x = model.layer_norm("norm", x)?;
    let x = model.reshape("tokens/split", x, &[batch, tokens, hidden])?;
    let x = model.apply("class", SliceOp { axis: 1, range: 0..1 }, &[x])?;
    let x = model.reshape("class/flat", x, &[batch, hidden])?;
    let x = model.linear("head", x, classes)?;
    model.classify(x)?;
    Ok(model.finish())
}
