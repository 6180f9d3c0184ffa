//! The reasons for refusing a file: the problem, its byte or node, and the remedy.

/// The reason why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// The file could not be read.
    #[error("cannot read the file: {0}")]
    Read(#[from] std::io::Error),
    /// Its bytes are not ONNX.
    #[error("byte {byte}: {problem}")]
    Syntax { byte: u64, problem: String },
    /// A node, value or input is invalid.
    #[error("{place}: {problem}")]
    Graph {
        /// The place, `node "/conv1/Conv" (Conv)` or `input "x"`.
        place: String,
        problem: String,
    },
    /// The file as a whole is not supported.
    #[error("{0}")]
    File(String),
    /// An attribute has another type than the operator needs.
    #[error("node {node:?}: attribute {name:?} is {found}, expected {expected}")]
    AttributeType { node: String, name: String, found: &'static str, expected: &'static str },
    /// Symbolic dimensions have no value.
    #[error(
        "these dimensions have no value: {}; set each of them, or export the model with fixed \
         sizes",
        .0.join(", ")
    )]
    OpenDimensions(Vec<String>),
    /// A value was given for a dimension that the file does not have.
    #[error("unknown dimension {name:?}{}", hint(known, nearest.as_deref()))]
    UnknownDimension { name: String, known: Vec<String>, nearest: Option<String> },
    /// A branch or a number of iterations was given for a node that did not need it.
    #[error(
        "node {name:?} has no unknown branch or trip count{}",
        if known.is_empty() { String::new() } else { format!("; known: {}", known.join(", ")) }
    )]
    UnknownDecision { name: String, known: Vec<String> },
}

/// The nearest known name, or else all known names.
fn hint(known: &[String], nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name:?}?"),
        None if known.is_empty() => ": all sizes are fixed in the file".to_owned(),
        None => format!(": the file has {}", known.join(", ")),
    }
}
