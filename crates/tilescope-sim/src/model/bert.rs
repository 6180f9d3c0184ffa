//! BERT (Devlin et al., arXiv 1810.04805). Pre-training follows graphcore/examples nlp/bert/pytorch
//! modeling.py: masked tokens are picked before the language-model head, whose decoder shares the
//! word embedding, and the next-sentence head reads the first token. Question answering (SQuAD)
//! follows nlp/bert/popart bert_model.py: two values per token, for the start and the end of an
//! answer.
//!
//! Blocks for stages: `embeddings`, `layer0` to `layerN`, `head`. The decoder belongs to `head`. If
//! `head` is on another IPU than `embeddings`, that IPU also keeps the weights of the decoder.

use super::layer_builder::{AttentionParams, ModelBuilder};
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{
    ActivationOp, BinaryOp, CastOp, CrossEntropyOp, EmbeddingOp, MatMulOp, ReshapeOp, ScaleOp,
    SliceOp,
};
use crate::shape::{DType, TensorId};
use crate::spec_keys::{Framework, SpecKey, SpecKeyType};
use std::borrow::Cow;

/// Sizes of BERT-Large for phase 1. A spec can set other sizes. The last one applies to
/// pre-training only.
const SIZES: &[SpecKey] = &[
    super::depth("24"),
    size("model.hidden", "1024", "Channels of a token, a multiple of heads"),
    size("model.heads", "16", "Heads of attention"),
    size("model.intermediate", "4096", "Channels inside the feed-forward layers"),
    size("model.vocab_size", "30522", "Words"),
    size("model.max_positions", "512", "Rows of the position embedding"),
    size("model.sequence_length", "128", "Tokens of a sequence"),
    SpecKey::of_model(
        "model.masked_tokens",
        SpecKeyType::Integer(1, 1 << 24),
        "20",
        "Masked tokens of a sequence",
        &[(Framework::Applications, Cow::Borrowed("max_predictions_per_seq"))],
    ),
];

/// The number of segments that a token can belong to.
const SEGMENTS: u64 = 2;

/// Sizes of the encoder.
const ENCODER_SIZES: &[SpecKey] = SIZES.split_at(SIZES.len() - 1).0;

/// BERT with both heads of pre-training.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "bert",
    about: "BERT pre-training, Large by default; blocks embeddings, layer0, ..., head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

/// BERT with the question-answering head.
pub(crate) const SQUAD: ModelDef = ModelDef {
    name: "bert_squad",
    about: "BERT for question answering (SQuAD), Large by default; blocks embeddings, layer0, ..., \
    head",
    sizes: ENCODER_SIZES,
    build: build_squad,
    ..MODEL
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let masked = spec.batch_size * spec.size("masked_tokens");
    let EncodedTokens { mut model, x, words, shape } = encoder(spec)?;
    language_head(&mut model, x, words, masked)?;
    sentence_head(&mut model, x, shape)?;
    Ok(model.finish())
}

fn build_squad(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let EncodedTokens { mut model, x, shape, .. } = encoder(spec)?;
    answer_head(&mut model, x, shape)?;
    Ok(model.finish())
}

/// A model up to its heads.
struct EncodedTokens {
    model: ModelBuilder,
    /// The encoder's result, a row for each token.
    x: TensorId,
    /// The word embedding.
    words: TensorId,
    /// Samples, tokens and channels.
    shape: [u64; 3],
}

fn encoder(spec: &ModelSpec) -> Result<EncodedTokens, GraphError> {
    let [layers, hidden, heads, inner, vocabulary, positions, tokens] = [
        "layers",
        "hidden",
        "heads",
        "intermediate",
        "vocab_size",
        "max_positions",
        "sequence_length",
    ]
    .map(|name| spec.size(name));
    super::expect_divides("hidden", hidden, "heads", heads)?;
    super::expect_at_most("sequence_length", tokens, "max_positions", positions)?;
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("embeddings");
    let words = model.parameter("embeddings/word", &[vocabulary, hidden])?;
    let mut x = embeddings(&mut model, words, [batch * tokens, positions, hidden])?;
    let mask = attention_mask(&mut model, batch, tokens)?;
    let sizes = AttentionParams { batch, tokens, heads, mask: Some(mask) };
    for layer in 0..layers {
        let name = format!("layer{layer}");
        model.block(&name);
        x = post_norm_layer(&mut model, &name, x, sizes, inner)?;
    }
    model.block("head");
    Ok(EncodedTokens { model, x, words, shape: [batch, tokens, hidden] })
}

/// The sum of word, position and segment embeddings. `sizes` are tokens, positions and channels.
fn embeddings(
    model: &mut ModelBuilder,
    words: TensorId,
    sizes: [u64; 3],
) -> Result<TensorId, GraphError> {
    let [tokens, positions, hidden] = sizes;
    let positions = model.parameter("embeddings/position", &[positions, hidden])?;
    let segments = model.parameter("embeddings/token_type", &[SEGMENTS, hidden])?;
    let mut sum = None;
    let tables = [("input_ids", words), ("position_ids", positions), ("token_type_ids", segments)];
    for (name, table) in tables {
        let ids = model.input(name, &[tokens], DType::Int);
        let rows =
            model.apply(&format!("embeddings/{name}"), EmbeddingOp::default(), &[table, ids])?;
        sum = Some(match sum {
            None => rows,
            Some(sum) => {
                model.apply(&format!("embeddings/{name}/add"), BinaryOp::ADD, &[sum, rows])?
            }
        });
    }
    let x = sum.unwrap_or(words);
    let x = model.layer_norm("embeddings/norm", x)?;
    model.dropout("embeddings/dropout", x)
}

/// The mask that is added to the scores of tokens that attention must ignore.
fn attention_mask(
    model: &mut ModelBuilder,
    batch: u64,
    tokens: u64,
) -> Result<TensorId, GraphError> {
    let mask = model.input("attention_mask", &[batch, tokens], DType::Int);
    let to = model.dtype;
    let mask = model.apply("mask/cast", CastOp { to }, &[mask])?;
    let mask = model.apply("mask/scale", ScaleOp::by(-10_000.0), &[mask])?;
    model.reshape("mask", mask, &[batch, 1, 1, tokens])
}

/// A transformer layer that norms the sums after attention and feed-forward.
fn post_norm_layer(
    model: &mut ModelBuilder,
    name: &str,
    x: TensorId,
    sizes: AttentionParams,
    inner: u64,
) -> Result<TensorId, GraphError> {
    let named = |part: &str| format!("{name}/{part}");
    let y = model.attention(&named("attention"), x, sizes)?;
    let y = model.dropout(&named("attention/dropout_out"), y)?;
    let y = model.apply(&named("attention/residual"), BinaryOp::ADD, &[y, x])?;
    let x = model.layer_norm(&named("norm1"), y)?;
    let y = model.feed_forward(name, x, inner)?;
    let y = model.dropout(&named("ff_dropout"), y)?;
    let y = model.apply(&named("residual"), BinaryOp::ADD, &[y, x])?;
    model.layer_norm(&named("norm2"), y)
}

/// Adds the head that predicts the masked tokens.
fn language_head(
    model: &mut ModelBuilder,
    x: TensorId,
    words: TensorId,
    masked: u64,
) -> Result<(), GraphError> {
    let [vocabulary, hidden] = [0, 1].map(|axis| model.ty(words).shape[axis]);
    let places = model.input("masked_lm_positions", &[masked], DType::Int);
    let x = model.apply("head/masked", EmbeddingOp::default(), &[x, places])?;
    let x = model.linear("head/transform", x, hidden)?;
    let x = model.apply("head/gelu", ActivationOp::GELU, &[x])?;
    let x = model.layer_norm("head/norm", x)?;
    let x = model.apply("head/decoder", MatMulOp::TRANSPOSED, &[x, words])?;
    let x = model.bias("head/decoder", x, vocabulary)?;
    loss_or_logits(model, "masked_lm", x)
}

/// Adds the head that predicts if the second sentence follows the first.
fn sentence_head(model: &mut ModelBuilder, x: TensorId, shape: [u64; 3]) -> Result<(), GraphError> {
    let [batch, _, hidden] = shape;
    let x = model.reshape("head/tokens", x, &shape)?;
    let x = model.apply("head/first", SliceOp { axis: 1, range: 0..1 }, &[x])?;
    let x = model.apply("head/first/flat", ReshapeOp { shape: vec![batch, hidden] }, &[x])?;
    let x = model.linear("head/pooler", x, hidden)?;
    let x = model.apply("head/pooler/tanh", ActivationOp::TANH, &[x])?;
    let x = model.linear("head/next_sentence", x, 2)?;
    loss_or_logits(model, "next_sentence", x)
}

/// Adds the head that scores each token as the start and the end of an answer. Without training the
/// scores are one tensor. With training each is a choice among tokens.
fn answer_head(model: &mut ModelBuilder, x: TensorId, shape: [u64; 3]) -> Result<(), GraphError> {
    let [batch, tokens, _] = shape;
    let x = model.linear("head/answer", x, 2)?;
    if !model.training {
        model.output(x);
        return Ok(());
    }
    for (index, end) in ["start", "end"].into_iter().enumerate() {
        let range = index as u64..index as u64 + 1;
        let name = format!("head/answer/{end}");
        let logits = model.apply(&name, SliceOp { axis: 1, range }, &[x])?;
        let shape = vec![batch, tokens];
        let logits = model.apply(&format!("{name}/flat"), ReshapeOp { shape }, &[logits])?;
        loss_or_logits(model, end, logits)?;
    }
    Ok(())
}

/// Adds a loss if the model is trained, and outputs the logits otherwise.
fn loss_or_logits(
    model: &mut ModelBuilder,
    name: &str,
    logits: TensorId,
) -> Result<(), GraphError> {
    if !model.training {
        model.output(logits);
        return Ok(());
    }
    let samples = model.ty(logits).shape[0];
    let labels = model.input(&format!("{name}_labels"), &[samples], DType::Int);
    model.loss(&format!("{name}_loss"), CrossEntropyOp, &[logits, labels])
}
