//! Why a file was refused: what is wrong, at which byte or node, and what would be right.

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// It could not be read.
    #[error("cannot read the file: {0}")]
    Read(#[from] std::io::Error),
    /// Its bytes are no ONNX.
    #[error("byte {byte}: {problem}")]
    Syntax { byte: u64, problem: String },
    /// A node, value or input does not make sense.
    #[error("{place}: {problem}")]
    Graph {
        /// What is meant, `node "/conv1/Conv" (Conv)` or `input "x"`.
        place: String,
        problem: String,
    },
    /// The file as a whole cannot be understood.
    #[error("{0}")]
    File(String),
    /// An attribute has another type than the operator asks for.
    #[error("node {node:?}: attribute {name:?} is {found}, expected {expected}")]
    AttributeType { node: String, name: String, found: &'static str, expected: &'static str },
    /// Symbolic dimensions have no value.
    #[error(
        "these dimensions have no value: {}; set each, or export the model with fixed sizes",
        .0.join(", ")
    )]
    OpenDimensions(Vec<String>),
    /// A value was given for a dimension that the file does not have.
    #[error("there is no dimension {name:?}{}", hint(known, nearest.as_deref()))]
    UnknownDimension { name: String, known: Vec<String>, nearest: Option<String> },
    /// A branch or a number of turns was given for a node that did not need it.
    #[error(
        "no node {name:?} leaves its branch or turns open{}",
        if known.is_empty() { String::new() } else { format!(": {} do", known.join(", ")) }
    )]
    UnknownDecision { name: String, known: Vec<String> },
}

/// What could have been meant, else what there is.
fn hint(known: &[String], nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name:?}?"),
        None if known.is_empty() => ": all sizes are fixed in the file".to_owned(),
        None => format!(": the file has {}", known.join(", ")),
    }
}
