//! PopART's attributes of single nodes: `__available_memory`, `__partials_type` and others have the
//! same meaning as in PopART (popart willow/include/popart/names.hpp, builder.hpp). The attributes
//! of stages, IPUs and phases are read where blocks are made.

use crate::graph::{GraphError, ImportProblem, NodeOptions, NodeRecomputation, OutputLocation};
use crate::poplin::matmul::MatMulSerializationMode;
use crate::poplin::planner::OperationPlanning;
use crate::shape::DType;
use crate::spec_keys::Proportion;
use std::collections::{BTreeMap, HashMap};
use tilescope_onnx::{AttributeValue, OnnxGraph, OnnxNode, ValueSource};

const MEMORY: &str = "__available_memory";
const PARTIALS: &str = "__partials_type";
const DITHERING: &str = "__enable_conv_dithering";
const SERIALIZE_MODE: &str = "__serialize_matmul_mode";
const SERIALIZE_FACTOR: &str = "__serialize_matmul_factor";
const RECOMPUTE: &str = "__recompute_output_in_backward_pass";
const LOCATION: &str = "__output_tensor_location";

/// The supported attributes, which are read here or where blocks are made.
const FOLLOWED: [&str; 10] = [
    MEMORY,
    PARTIALS,
    DITHERING,
    SERIALIZE_MODE,
    SERIALIZE_FACTOR,
    RECOMPUTE,
    LOCATION,
    "__pipeline_stage",
    "__ipu_number",
    "__execution_phase",
];

/// The prefix of PopART's attributes.
const PREFIX: &str = "__";

/// `TensorStorage::OnChip` and `TensorStorage::OffChip` (popart
/// willow/include/popart/tensorlocation.hpp).
const ON_CHIP: i64 = 0;
const OFF_CHIP: i64 = 1;
/// `TileSet::IO` of PopART.
const IO_TILES: i64 = 1;

/// The attributes of the nodes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations {
    /// The options of the nodes that have attributes, by node.
    options: HashMap<usize, NodeOptions>,
    /// Unsupported attributes, each with the number of nodes that have it.
    pub ignored: BTreeMap<String, u64>,
}

impl Annotations {
    /// Reads the attributes of all nodes of a file.
    ///
    /// # Errors
    /// Returns an error for values that PopART does not accept.
    pub(super) fn of(file: &OnnxGraph) -> Result<Self, GraphError> {
        let mut found = Self::default();
        // Backwards, so that a checkpoint after another reaches the node that makes the data.
        for (at, node) in file.nodes.iter().enumerate().rev() {
            for attribute in node.attributes.iter().filter(|of| of.name.starts_with(PREFIX)) {
                if !FOLLOWED.contains(&attribute.name.as_str()) {
                    *found.ignored.entry(attribute.name.clone()).or_default() += 1;
                }
            }
            let mut options = read(node)?;
            let before = found.options.get(&at).and_then(|known| known.recomputation);
            options.recomputation = options.recomputation.or(before);
            if options == NodeOptions::default() {
                continue;
            }
            // `builder.checkpointOutput` adds a separate node, whose result is its operand.
            if node.op == "Identity" && options.recomputation.is_some() {
                let made = node.inputs.iter().flatten().map(|input| file.value(*input).source);
                for source in made {
                    if let ValueSource::Node(maker) = source {
                        found.options.entry(maker).or_default().recomputation =
                            options.recomputation;
                    }
                }
            }
            found.options.insert(at, options);
        }
        Ok(found)
    }

    /// The options of a node.
    pub(super) fn node(&self, at: usize) -> NodeOptions {
        self.options.get(&at).copied().unwrap_or_default()
    }

    /// The options of the node that replaces several nodes; the last of these provides its results.
    /// `None` if the options contradict each other.
    pub(super) fn joined(&self, nodes: &[usize], last: usize) -> Option<NodeOptions> {
        let mut joined = self.node(last);
        for at in nodes {
            let Some(NodeOptions { planning, recomputation, output_location }) =
                self.options.get(at)
            else {
                continue;
            };
            let of_results = recomputation.is_none_or(|own| joined.recomputation == Some(own))
                && output_location.is_none_or(|own| joined.output_location == Some(own));
            if !of_results {
                return None;
            }
            joined.planning = both(joined.planning, *planning)?;
        }
        Some(joined)
    }
}

/// The options of two nodes together. `None` if they contradict each other.
fn both(a: OperationPlanning, b: OperationPlanning) -> Option<OperationPlanning> {
    fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => None,
            (a, b) => Some(a.or(b)),
        }
    }
    Some(OperationPlanning {
        available_memory_proportion: agree(
            a.available_memory_proportion,
            b.available_memory_proportion,
        )?,
        partials_type: agree(a.partials_type, b.partials_type)?,
        conv_dithering: agree(a.conv_dithering, b.conv_dithering)?,
        serialization: agree(a.serialization, b.serialization)?,
    })
}

/// Reads the options of one node.
fn read(node: &OnnxNode) -> Result<NodeOptions, GraphError> {
    let reader = AnnotationReader { node };
    Ok(NodeOptions {
        planning: OperationPlanning {
            available_memory_proportion: reader.memory()?,
            partials_type: reader.partials()?,
            conv_dithering: reader.ints(DITHERING)?.map(|values| values.contains(&1)),
            serialization: reader.serialization()?,
        },
        recomputation: reader.recomputation()?,
        output_location: reader.location()?,
    })
}

struct AnnotationReader<'a> {
    node: &'a OnnxNode,
}

impl AnnotationReader<'_> {
    fn refuse(&self, problem: ImportProblem) -> GraphError {
        GraphError::new(format!("{} ({})", self.node.path(), self.node.op), problem)
    }

    fn wrong(&self, name: &'static str, is: &'static str) -> GraphError {
        self.refuse(ImportProblem::Annotation { name, is })
    }

    /// Reads one number, or one for each pass of a convolution.
    fn ints(&self, name: &'static str) -> Result<Option<Vec<i64>>, GraphError> {
        match self.node.attributes.get(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(vec![*value])),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.wrong(name, "must be an integer")),
        }
    }

    /// The share of memory for the forward pass. PopART's convolutions may have one for each pass.
    fn memory(&self) -> Result<Option<Proportion>, GraphError> {
        let share = match self.node.attributes.get(MEMORY) {
            None => return Ok(None),
            Some(AttributeValue::Float(value)) => Some(*value),
            Some(AttributeValue::Floats(values)) => values.first().copied(),
            Some(_) => None,
        };
        // With 0, poplibs selects the plan with the smallest temporaries.
        let valid = share.filter(|share| (0.0..=1.0).contains(share));
        let share = valid
            .ok_or_else(|| self.wrong(MEMORY, "must be a share of tile memory, from 0 to 1"))?;
        Ok(Some(Proportion::new(as_written(share))))
    }

    /// The type of partials, `half` or `float`. A convolution may have one for each pass.
    fn partials(&self) -> Result<Option<DType>, GraphError> {
        let word = match self.node.attributes.get(PARTIALS) {
            None => return Ok(None),
            Some(AttributeValue::Text(word)) => Some(word.as_str()),
            Some(AttributeValue::Texts(words)) => words.first().map(String::as_str),
            Some(_) => None,
        };
        match word.map(str::to_lowercase).as_deref() {
            Some("half") => Ok(Some(DType::Half)),
            Some("float") => Ok(Some(DType::Float)),
            _ => Err(self.wrong(PARTIALS, "must be half or float")),
        }
    }

    fn serialization(&self) -> Result<Option<(MatMulSerializationMode, u64)>, GraphError> {
        let mode = match self.node.attributes.get(SERIALIZE_MODE) {
            None => return Ok(None),
            Some(AttributeValue::Text(word)) => match word.as_str() {
                "none" => return Ok(None),
                "input_channels" => Some(MatMulSerializationMode::InputChannels),
                "reducing_dim" => Some(MatMulSerializationMode::ReducingDim),
                "output_channels" => Some(MatMulSerializationMode::OutputChannels),
                _ => None,
            },
            Some(_) => None,
        };
        let words = "must be none, input_channels, reducing_dim or output_channels";
        let mode = mode.ok_or_else(|| self.wrong(SERIALIZE_MODE, words))?;
        // PopTorch writes 0 if no factor is given. The product then stays whole.
        let factor = self.ints(SERIALIZE_FACTOR)?.and_then(|values| values.first().copied());
        let parts = u64::try_from(factor.unwrap_or(0)).ok();
        let parts =
            parts.ok_or_else(|| self.wrong(SERIALIZE_FACTOR, "must be a number of parts"))?;
        Ok(Some((mode, parts)))
    }

    /// `RecomputeType`: 0 undefined, 1 checkpoint, 2 recompute, 3 recomputed.
    fn recomputation(&self) -> Result<Option<NodeRecomputation>, GraphError> {
        match self.ints(RECOMPUTE)?.and_then(|values| values.first().copied()) {
            None | Some(0) => Ok(None),
            Some(1) => Ok(Some(NodeRecomputation::Checkpoint)),
            Some(2 | 3) => Ok(Some(NodeRecomputation::Recompute)),
            Some(value) => {
                Err(self.refuse(ImportProblem::Recomputation { name: RECOMPUTE, value }))
            }
        }
    }

    /// `TensorLocation::serialize`: storage, tile sets that load and store, replicated sharding.
    fn location(&self) -> Result<Option<OutputLocation>, GraphError> {
        let Some(values) = self.ints(LOCATION)? else { return Ok(None) };
        match values.first().copied() {
            None => Ok(None),
            Some(storage @ (ON_CHIP | OFF_CHIP)) => Ok(Some(OutputLocation {
                on_chip: storage == ON_CHIP,
                use_io_tiles: values.get(1..3).is_some_and(|sets| sets.contains(&IO_TILES)),
            })),
            Some(value) => Err(self.refuse(ImportProblem::Storage { name: LOCATION, value })),
        }
    }
}

/// Rounds a number that a file stores in single precision to the decimal that was written: 0.2 for
/// 0.20000000298.
#[expect(clippy::cast_possible_truncation, reason = "it comes from single precision")]
fn as_written(number: f64) -> f64 {
    (number as f32).to_string().parse().unwrap_or(number)
}
