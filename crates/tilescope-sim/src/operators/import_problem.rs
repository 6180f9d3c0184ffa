//! Errors for ONNX files that cannot be imported: a variant for each kind of failure, with its
//! message.

use tilescope_onnx::OnnxError;
use tilescope_report::UnknownOperator;

/// The reason why the graph of a file cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ImportProblem {
    #[error("model.onnx names no file")]
    NoFile,
    #[error("{0:?} is no regular expression: {1}")]
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
    #[error("it has no weights")]
    NoWeights,
    #[error("{0} is not known before the model runs")]
    NotConstant(String),
    #[error("the mask has no constant")]
    MaskWithoutConstant,
    #[error("{0} is not modelled")]
    NotModelled(String),
    #[error("{name} = {values:?} are no {count} sizes")]
    Sizes { name: String, values: Vec<i64>, count: usize },
    #[error("{name} = {value} is no count")]
    Count { name: String, value: i64 },
    #[error("there is no axis {axis} of {rank}")]
    NoAxis { axis: i64, rank: usize },
    #[error("there is no direction {0:?}")]
    Direction(String),
    #[error("{0} is expected")]
    Operand(&'static str),
    #[error("{0} are expected")]
    Operands(&'static str),
    #[error(
        "[batch, channels, field..] and weights of as many axes are expected, not {field:?} and \
         {kernel:?}"
    )]
    ConvOperands { field: Vec<u64>, kernel: Vec<u64> },
    #[error("{queries} heads do not share {keys}")]
    Heads { queries: u64, keys: u64 },
    #[error("there is nothing to join")]
    NothingToJoin,
    #[error("the parts are not as long as the axis together")]
    SplitSizes,
    #[error("{scales:?} scales are none of an axis of {shape:?}")]
    Scales { scales: Vec<u64>, shape: Vec<u64> },
    #[error(
        "numbers of few bits have no gradient, and weights that are trained lead to this one: only \
         where nothing but DequantizeLinear reads them is it passed straight through; keep those \
         weights with model.frozen, or set model.training = false"
    )]
    QuantizedWeights,
    #[error("model.loss = \"none\": set model.training = false")]
    UntrainedLoss,
    #[error(
        "the file has no loss: set model.loss to cross_entropy, nll, mse, l1 or identity, and \
         model.loss_output to what it reads ({outputs}); or model.training = false"
    )]
    NoLoss { outputs: String },
    #[error(
        "{name:?} is {element} {dims:?}, not a number that a node makes: model.loss = \"identity\" \
         makes the sum of all elements small, cross_entropy, nll, mse and l1 compare them with labels"
    )]
    LossNotOneNumber { name: String, element: String, dims: Vec<u64> },
    #[error("no output of the file is of floats")]
    NoFloatOutput,
    #[error("there is no output {name:?}; model.loss_output is one of {outputs}")]
    UnknownOutput { name: String, outputs: String },
    #[error("{0:?} has no axis of classes")]
    NoClasses(Vec<u64>),
    #[error("{key} = {value:?} is none of {known}")]
    Property { key: String, value: String, known: &'static str },
    #[error("{name} {is}")]
    Annotation { name: &'static str, is: &'static str },
    #[error("{name} = {value} is none of 0 to 3")]
    Recomputation { name: &'static str, value: i64 },
    #[error("{name} has the storage {value}, not 0 or 1")]
    Storage { name: &'static str, value: i64 },
    #[error("no node has __pipeline_stage, __execution_phase or __ipu_number")]
    NoAnnotations,
    #[error("no numbered modules do most of the work")]
    NoModules,
    #[error("{count} {are}, more than {most}")]
    TooManyBlocks { count: usize, are: &'static str, most: usize },
    /// A node without annotation between two nodes with different annotations.
    #[error(
        "it has no {key} and lies between {word} {from} ({maker:?}) and {word} {to} ({reader:?})"
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
        "it has no __ipu_number and reads what IPU {one} ({maker:?}) and IPU {other} \
         ({other_maker:?}) make in phase {phase}"
    )]
    ReadsTwoIpus { one: u32, maker: String, other: u32, other_maker: String, phase: u32 },
    #[error(
        "{word} {reader} reads what {maker:?} of {word} {later} makes: {word}s follow the order of \
         the data"
    )]
    AgainstTheData { word: &'static str, reader: u32, later: u32, maker: String },
    #[error(
        "stage {stage} is on IPU {here} here and on IPU {first} at {first_node:?}: a stage runs on \
         one IPU; give the nodes of each IPU a {key} of their own"
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
        1 => "1 node is of an operator that is".to_string(),
        _ => format!("{nodes} nodes are of operators that are"),
    };
    format!(
        "{operators} not modelled: {}; model.allow_unknown = true prices each as one pass over its \
         operands",
        list.join("; ")
    )
}
