//! The number of samples in the inputs of a file.

use tilescope_onnx::{OnnxFile, OnnxGraph, OnnxValue};

/// The samples of a micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBatch {
    pub samples: u64,
    /// The assumption about the dimension that counts samples, if the file leaves it open.
    pub assumption: Option<String>,
}

impl FileBatch {
    /// The samples of a file: its batch symbol, the sequences of a recurrent layer, or the size
    /// that all inputs have in common as dimension 0 or another dimension. Otherwise dimension 0 of
    /// the first input.
    pub(crate) fn of(file: &OnnxFile, graph: &OnnxGraph) -> Self {
        let inputs: Vec<&OnnxValue> =
            graph.inputs.iter().map(|input| graph.value(*input)).collect();
        let with_dims: Vec<&OnnxValue> =
            inputs.iter().copied().filter(|input| !input.dims.is_empty()).collect();
        let Some(first) = with_dims.first() else {
            return Self { samples: 1, assumption: None };
        };
        let symbol = file.symbols().into_iter().find(|symbol| symbol.is_batch);
        let of_symbol = symbol.and_then(|symbol| {
            let (input, axis) = symbol.places.into_iter().next()?;
            let value = inputs.iter().find(|value| value.name == input)?;
            value.dims.get(axis).copied()
        });
        let plain = of_symbol
            .or_else(|| of_sequences(graph))
            .or_else(|| of_one_sample(graph))
            .or_else(|| shared(&with_dims, 0));
        if let Some(samples) = plain {
            return Self { samples, assumption: None };
        }
        let ranks = with_dims.iter().map(|input| input.dims.len()).min().unwrap_or(0);
        let other = (1..ranks).find_map(|axis| Some((axis, shared(&with_dims, axis)?)));
        let (samples, place) = match other {
            Some((axis, samples)) => (samples, format!("axis {axis}, which all inputs share")),
            None => (first.dims[0], format!("axis 0 of {:?}", first.name)),
        };
        let assumption = format!(
            "Samples are counted along {place}: {samples} in a micro-batch. The inputs have no \
             common first dimension; if this is wrong, set model.batch_size"
        );
        Self { samples, assumption: Some(assumption) }
    }

    /// True if the spec may set this number of samples in a micro-batch: an input has a dimension
    /// of that size, and the file leaves open which dimension counts samples.
    pub(crate) fn may_be(&self, samples: u64, graph: &OnnxGraph) -> bool {
        if self.samples == samples {
            return true;
        }
        let mut inputs = graph.inputs.iter().map(|input| graph.value(*input));
        self.assumption.is_some()
            && (samples == 1 || inputs.any(|input| input.dims.contains(&samples)))
    }
}

/// The number of sequences that a recurrent layer reads from an input of the file.
fn of_sequences(graph: &OnnxGraph) -> Option<u64> {
    for node in &graph.nodes {
        let data = node.inputs.first().copied().flatten();
        let (Some(axis), Some(data)) = (node.sequences_axis(), data) else { continue };
        if graph.inputs.contains(&data) {
            return graph.value(data).dims.get(axis).copied();
        }
    }
    None
}

/// Channels, rows and columns.
const IMAGE_AXES: usize = 3;

/// The longest chain of operations before the axis of samples is added.
const MAX_CHAIN: usize = 8;

/// One sample, if the graph itself adds an axis of samples to its only input, an image: torchvision's
/// detectors do so after they have scaled its colours.
fn of_one_sample(graph: &OnnxGraph) -> Option<u64> {
    let [input] = graph.inputs[..] else { return None };
    if graph.value(input).dims.len() != IMAGE_AXES {
        return None;
    }
    let mut data = input;
    for _ in 0..MAX_CHAIN {
        let mut readers = graph.nodes.iter().filter(|node| node.inputs.contains(&Some(data)));
        let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
        match reader.op.as_str() {
            "Add" | "Cast" | "Div" | "Mul" | "Sub" => data = reader.outputs.first().copied()??,
            "Unsqueeze" => {
                let given = reader.inputs.get(1).copied().flatten();
                let known = given.and_then(|axes| graph.value(axes).content.as_ref()?.ints());
                let own = reader.attributes.ints("axes").ok().flatten().map(<[i64]>::to_vec);
                return (known.or(own)?.contains(&0)).then_some(1);
            }
            _ => return None,
        }
    }
    None
}

/// The size of an axis that all inputs have in common. Inputs of size 1 are repeated for each
/// sample.
fn shared(inputs: &[&OnnxValue], axis: usize) -> Option<u64> {
    let mut common = 1;
    for input in inputs {
        match *input.dims.get(axis)? {
            1 => {}
            size if common == 1 || common == size => common = size,
            _ => return None,
        }
    }
    Some(common)
}
