//! Search queries: terms that are combined by and, and their syntax.

use crate::comparison::LimitComparison;
use std::fmt;

/// A query; a match satisfies all terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// The terms in their written order.
    pub terms: Vec<QueryTerm>,
}

/// One condition of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    /// True if the condition is negated.
    pub negated: bool,
    pub test: QueryCondition,
}

/// The condition of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryCondition {
    Name(TextPattern),
    /// The kind of the entity, such as `StreamCopyMid` or `Convolution`, case-insensitive.
    Type(TextPattern),
    /// The list of the entity.
    In(SearchList),
    /// On one of these IPUs.
    Ipu(Vec<NumberRange>),
    /// On one of these tiles.
    Tile(Vec<NumberRange>),
    /// A limit on a quantity of the entity.
    Amount(QueryAmount, LimitComparison, u64),
}

/// A condition on text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPattern {
    /// Contains this text, case-insensitive.
    Contains(String),
    /// Equals this text.
    Equals(String),
    /// Matches this regular expression, case-insensitive.
    Regex(String),
}

/// A list of entities that is searched.
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
    /// Variables with data of the model.
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

/// The numbers from `first` to `last`, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    pub first: u32,
    pub last: u32,
}

impl NumberRange {
    /// True if a number is in the range.
    pub(crate) fn holds(self, number: u32) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// A quantity of entities.
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
    /// All amounts that a query can name.
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
    /// Index of the character, from 0.
    pub at: usize,
    /// The problem and the expected input.
    pub problem: String,
}

impl fmt::Display for SearchQuery {
    /// Writes a query that parses to the same terms.
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

/// The text in quotes, with a backslash before each quote and backslash.
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
