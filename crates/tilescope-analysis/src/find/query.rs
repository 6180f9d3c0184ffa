//! Search queries: terms that must all hold, and their syntax.

use crate::comparison::LimitComparison;
use std::fmt;

/// Terms that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// The terms, in the order in which they were written.
    pub terms: Vec<QueryTerm>,
}

/// One condition of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    /// Whether it must not hold.
    pub negated: bool,
    pub test: QueryCondition,
}

/// The condition of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryCondition {
    Name(TextPattern),
    /// Its kind, such as `StreamCopyMid` or `Convolution`, in any case.
    Type(TextPattern),
    /// Which list it is in.
    In(SearchList),
    /// On one of these IPUs.
    Ipu(Vec<NumberRange>),
    /// On one of these tiles.
    Tile(Vec<NumberRange>),
    /// How much of something it has.
    Amount(QueryAmount, LimitComparison, u64),
}

/// A condition on text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPattern {
    /// Holds this text, in any case.
    Contains(String),
    /// Is this very text.
    Equals(String),
    /// Matches this regular expression, in any case.
    Regex(String),
}

/// Lists of things that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchList {
    /// Executed steps, by the program they ran.
    Steps,
    /// Nodes of the compiled program.
    Programs,
    /// Operations of the model.
    Operations,
    Variables,
    /// Variables that hold data of the model.
    Tensors,
    Vertices,
}

impl SearchList {
    /// Every list, in the order of results.
    pub(crate) const ALL: [Self; 6] = [
        Self::Steps,
        Self::Operations,
        Self::Programs,
        Self::Variables,
        Self::Tensors,
        Self::Vertices,
    ];

    /// Its name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Programs => "programs",
            Self::Operations => "operations",
            Self::Variables => "variables",
            Self::Tensors => "tensors",
            Self::Vertices => "vertices",
        }
    }
}

/// Numbers `first` to `last`, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    pub first: u32,
    pub last: u32,
}

impl NumberRange {
    /// Whether a number is one of them.
    pub(crate) fn holds(self, number: u32) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// A quantity that things have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryAmount {
    /// Cycles: of each single step; of all executions of a program or an operation.
    Cycles,
    /// Bytes: moved by a single step; moved by all executions of a program; held by a variable.
    Bytes,
    /// Number of instances or executions.
    Count,
}

impl QueryAmount {
    /// All amounts that a query can ask for.
    pub const ALL: [Self; 3] = [Self::Cycles, Self::Bytes, Self::Count];

    /// Its name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

/// A syntax error in a query, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at character {})", .at + 1)]
pub struct SearchQueryError {
    /// The letter it is about, counted from 0.
    pub at: usize,
    /// The problem and what was expected.
    pub problem: String,
}

impl fmt::Display for SearchQuery {
    /// As it could have been typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for QueryTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("-")?;
        }
        match &self.test {
            QueryCondition::Name(TextPattern::Equals(text)) => write!(f, "name={}", quoted(text)),
            QueryCondition::Name(pattern) => write!(f, "{}", written(pattern)),
            QueryCondition::Type(TextPattern::Equals(text)) => write!(f, "type={}", quoted(text)),
            QueryCondition::Type(pattern) => write!(f, "type:{}", written(pattern)),
            QueryCondition::In(source) => write!(f, "in:{}", source.name()),
            QueryCondition::Ipu(spans) => write!(f, "ipu:{}", spans_text(spans)),
            QueryCondition::Tile(spans) => write!(f, "tile:{}", spans_text(spans)),
            QueryCondition::Amount(amount, comparison, value) => {
                let sign = match comparison {
                    LimitComparison::Equal => "=",
                    _ => comparison.sign(),
                };
                write!(f, "{}{sign}{value}", amount.name())
            }
        }
    }
}

fn written(pattern: &TextPattern) -> String {
    match pattern {
        TextPattern::Contains(text) | TextPattern::Equals(text) => quoted(text),
        TextPattern::Regex(text) => format!("/{}/", text.replace('/', "\\/")),
    }
}

/// Text in quotes; a quote or a backslash in it has a backslash before it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if letter == '"' || letter == '\\' {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

fn spans_text(spans: &[NumberRange]) -> String {
    let one = |span: &NumberRange| match *span {
        NumberRange { first, last } if first == last => first.to_string(),
        NumberRange { first, last } => format!("{first}..{last}"),
    };
    spans.iter().map(one).collect::<Vec<_>>().join(",")
}
