//! GPT-2 language model (Radford et al. 2019) as graphcore/examples nlp/gpt2/pytorch trains it:
//! every token predicts the next one, through a decoder that shares the word embedding.
//!
//! Blocks for stages: `embeddings`, `layer0` to `layerN`, `head`. The decoder belongs to `head`. If
//! `head` is on another IPU than `embeddings`, that IPU also keeps the weights of the decoder.

use super::layer_builder::{AttentionParams, ModelBuilder};
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{BinaryOp, CrossEntropyOp, EmbeddingOp, MatMulOp};
use crate::shape::DType;
use crate::spec_keys::SpecKey;

/// Sizes of GPT-2 Small. A spec can set other sizes.
const SIZES: &[SpecKey] = &[
    super::depth("12"),
    size("model.hidden", "768", "Channels of a token, a multiple of heads"),
    size("model.heads", "12", "Heads of attention"),
    size("model.vocab_size", "50257", "Words"),
    size("model.max_positions", "1024", "Rows of the position embedding"),
    size("model.sequence_length", "1024", "Tokens of a sequence"),
];

/// GPT-2 with a language-model head.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "gpt2",
    about: "GPT-2 language model, Small by default; blocks embeddings, layer0, ..., head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [layers, hidden, heads, vocabulary, positions, tokens] =
        ["layers", "hidden", "heads", "vocab_size", "max_positions", "sequence_length"]
            .map(|name| spec.size(name));
    super::expect_divides("hidden", hidden, "heads", heads)?;
    super::expect_at_most("sequence_length", tokens, "max_positions", positions)?;
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("embeddings");
    let words = model.parameter("embeddings/word", &[vocabulary, hidden])?;
    let places = model.parameter("embeddings/position", &[positions, hidden])?;
    let ids = model.input("input_ids", &[batch * tokens], DType::Int);
    let x = model.apply("embeddings/input_ids", EmbeddingOp::default(), &[words, ids])?;
    let ids = model.input("position_ids", &[batch * tokens], DType::Int);
    let y = model.apply("embeddings/position_ids", EmbeddingOp::default(), &[places, ids])?;
    let x = model.apply("embeddings/add", BinaryOp::ADD, &[x, y])?;
    let mut x = model.dropout("embeddings/dropout", x)?;
    for layer in 0..layers {
        let name = format!("layer{layer}");
        model.block(&name);
        let mask = model.resident(&format!("{name}/causal_mask"), &[1, 1, tokens, tokens]);
        let sizes = AttentionParams { batch, tokens, heads, mask: Some(mask) };
        x = model.pre_norm_layer(&name, x, sizes, 4 * hidden)?;
    }
    model.block("head");
    let x = model.layer_norm("norm", x)?;
    let x = model.apply("head/decoder", MatMulOp::TRANSPOSED, &[x, words])?;
    if spec.training {
        let labels = model.input("labels", &[batch * tokens], DType::Int);
        model.loss("loss", CrossEntropyOp, &[x, labels])?;
    } else {
        model.output(x);
    }
    Ok(model.finish())
}
