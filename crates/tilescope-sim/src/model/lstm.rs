//! A recurrent classifier of word sequences: embedding, LSTM, and a linear layer on its last
//! output, with the sizes of the Keras example on IMDB reviews (keras examples/imdb_lstm.py).
//!
//! Blocks for stages: `embedding`, `lstm`, `head`.

use super::layer_builder::ModelBuilder;
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{EmbeddingOp, RnnOp, SliceOp};
use crate::shape::DType;
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size("model.vocab_size", "20000", "Words"),
    size("model.embedding", "128", "Channels of a word"),
    size("model.hidden", "128", "Outputs of the LSTM"),
    size("model.sequence_length", "80", "Words of a sequence"),
    size("model.classes", "2", "Classes"),
];

pub(crate) const MODEL: ModelDef = ModelDef {
    name: "lstm",
    about: "LSTM classifier of word sequences; blocks embedding, lstm, head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [words, width, hidden, steps, classes] =
        ["vocab_size", "embedding", "hidden", "sequence_length", "classes"]
            .map(|name| spec.size(name));
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("embedding");
    let table = model.parameter("embedding/word", &[words, width])?;
    let ids = model.input("input_ids", &[steps * batch], DType::Int);
    let x = model.apply("embedding", EmbeddingOp::default(), &[table, ids])?;
    let x = model.reshape("steps", x, &[steps, batch, width])?;
    model.block("lstm");
    let weights = model.parameter("lstm/weight", &[width + hidden, 4 * hidden])?;
    let bias = model.parameter("lstm/bias", &[4, hidden])?;
    let lstm = RnnOp::lstm(hidden, spec.training);
    let x = model.apply_all("lstm", lstm, &[x, weights, bias])?[0];
    model.block("head");
    let last = SliceOp { axis: 0, range: steps - 1..steps };
    let x = model.apply("last", last, &[x])?;
    let x = model.reshape("last/flat", x, &[batch, hidden])?;
    let x = model.linear("fc", x, classes)?;
    model.classify(x)?;
    Ok(model.finish())
}
