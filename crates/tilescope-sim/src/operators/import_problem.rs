//! Errors for ONNX files that cannot be imported: a variant for each kind of failure, with its
//! message.

use tilescope_onnx::OnnxError;
use tilescope_report::UnknownOperator;

/// The reason why the graph of a file cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ImportProblem {
    #[error("model.onnx is not the path of a file")]
    NoFile,
    #[error("{0:?} is not a valid regular expression: {1}")]
    Pattern(String, regex::Error),
    #[error("{}", unknown_words(.0))]
    UnknownOperators(Vec<UnknownOperator>),
    #[error(transparent)]
    Attribute(#[from] OnnxError),
    #[error("input {0} is missing")]
    MissingInput(usize),
    #[error("output {0} is missing")]
    MissingOutput(usize),
    #[error("an output has no type")]
    OutputWithoutType,
    #[error("the operator has no weights")]
    NoWeights,
    #[error("{0} must be constant, but is computed at run time")]
    NotConstant(String),
    #[error("the mask is not constant")]
    MaskWithoutConstant,
    #[error("{0} is not modelled")]
    NotModelled(String),
    #[error("{name} = {values:?} must be {count} sizes")]
    Sizes { name: String, values: Vec<i64>, count: usize },
    #[error("{name} = {value} must not be negative")]
    Count { name: String, value: i64 },
    #[error("axis {axis} is out of range for {rank} axes")]
    NoAxis { axis: i64, rank: usize },
    #[error("unknown direction {0:?}")]
    Direction(String),
    #[error("expected {0}")]
    Operand(&'static str),
    #[error("expected {0}")]
    Operands(&'static str),
    #[error(
        "expected [batch, channels, field..] and weights with the same number of axes, found \
         {field:?} and {kernel:?}"
    )]
    ConvOperands { field: Vec<u64>, kernel: Vec<u64> },
    #[error("{queries} query heads are not divisible by {keys} key heads")]
    Heads { queries: u64, keys: u64 },
    #[error("no tensors to join")]
    NothingToJoin,
    #[error("the split sizes do not add up to the axis")]
    SplitSizes,
    #[error("scales of shape {scales:?} match no axis of {shape:?}")]
    Scales { scales: Vec<u64>, shape: Vec<u64> },
    #[error(
        "quantised numbers have no gradient, but this node depends on trained weights. A gradient \
         passes straight through only if DequantizeLinear is the only reader. Freeze those weights \
         with model.frozen, or set model.training = false"
    )]
    QuantizedWeights,
    #[error("model.loss = \"none\": set model.training = false")]
    UntrainedLoss,
    #[error(
        "the file has no loss: set model.loss to cross_entropy, nll, mse, l1 or identity, and \
         model.loss_output to its input ({outputs}); or set model.training = false"
    )]
    NoLoss { outputs: String },
    #[error(
        "{name:?} is {element} {dims:?}, not a scalar computed by a node: model.loss = \
         \"identity\" minimises the sum of all elements, and cross_entropy, nll, mse and l1 \
         compare them with labels"
    )]
    LossNotOneNumber { name: String, element: String, dims: Vec<u64> },
    #[error("the file has no floating-point output")]
    NoFloatOutput,
    #[error("unknown output {name:?}; model.loss_output must be one of {outputs}")]
    UnknownOutput { name: String, outputs: String },
    #[error("{0:?} has no class axis")]
    NoClasses(Vec<u64>),
    #[error("{key} = {value:?} must be one of {known}")]
    Property { key: String, value: String, known: &'static str },
    #[error("{name} {is}")]
    Annotation { name: &'static str, is: &'static str },
    #[error("{name} = {value} must be from 0 to 3")]
    Recomputation { name: &'static str, value: i64 },
    #[error("{name} has storage {value}; it must be 0 or 1")]
    Storage { name: &'static str, value: i64 },
    #[error("no node has __pipeline_stage, __execution_phase or __ipu_number")]
    NoAnnotations,
    #[error("no numbered modules account for most of the work")]
    NoModules,
    #[error("{count} {are}, but at most {most} are supported")]
    TooManyBlocks { count: usize, are: &'static str, most: usize },
    /// A node without annotation between two nodes with different annotations.
    #[error(
        "it has no {key}, but connects {word} {from} ({maker:?}) and {word} {to} ({reader:?}); \
         annotate it"
    )]
    Between {
        key: &'static str,
        word: &'static str,
        from: u32,
        maker: String,
        to: u32,
        reader: String,
    },
    /// A node without annotation that reads results of two IPUs.
    #[error(
        "it has no __ipu_number, but reads results of IPU {one} ({maker:?}) and IPU {other} \
         ({other_maker:?}) in phase {phase}; annotate it"
    )]
    ReadsTwoIpus { one: u32, maker: String, other: u32, other_maker: String, phase: u32 },
    #[error(
        "{word} {reader} reads the result of {maker:?} in {word} {later}: {word}s must follow the \
         data flow"
    )]
    AgainstTheData { word: &'static str, reader: u32, later: u32, maker: String },
    #[error(
        "stage {stage} is on IPU {here} here and on IPU {first} at {first_node:?}. A stage runs on \
         one IPU: set a different {key} for the nodes of each IPU"
    )]
    StageOnTwoIpus { stage: u32, here: u32, first: u32, first_node: String, key: &'static str },
}

/// Lists all unknown operators, with the names of some of their nodes.
fn unknown_words(unknown: &[UnknownOperator]) -> String {
    let mut list: Vec<String> = Vec::new();
    for operator in unknown {
        let names: Vec<String> = operator.nodes.iter().map(|name| format!("{name:?}")).collect();
        let more = match operator.count - names.len() as u64 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        list.push(format!("{} at {}{more}", operator.source, names.join(", ")));
    }
    let nodes: u64 = unknown.iter().map(|operator| operator.count).sum();
    let operators = match nodes {
        1 => "1 node has an operator that is".to_string(),
        _ => format!("{nodes} nodes have operators that are"),
    };
    format!(
        "{operators} not modelled: {}; model.allow_unknown = true estimates each as one pass over \
         its operands",
        list.join("; ")
    )
}
