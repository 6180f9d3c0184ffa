//! Arguments of tools: declared once, for the schema sent to clients and for the check of their
//! input.

use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Map, Value, json};
use tilescope_analysis::insights::SpecChanges;

/// The default number of entries of a list.
const DEFAULT_LIMIT: usize = 20;

/// The maximum number of entries of a list; the size of answers is limited too.
const MAX_LIMIT: usize = 1_000;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ArgumentKind {
    Text,
    Texts,
    Flag,
    /// Keys of a spec with values, as proposed by insights.
    Changes,
    /// The number of entries of a list.
    Limit,
    /// A whole number in a range.
    Whole {
        least: u64,
        most: u64,
        default: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// An argument of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ToolArgument {
    pub name: &'static str,
    pub kind: ArgumentKind,
    pub required: bool,
    pub about: &'static str,
}

impl ToolArgument {
    /// An optional argument.
    pub(super) const fn optional(
        name: &'static str,
        kind: ArgumentKind,
        about: &'static str,
    ) -> Self {
        Self { name, kind, required: false, about }
    }

    /// A required argument.
    pub(super) const fn required(
        name: &'static str,
        kind: ArgumentKind,
        about: &'static str,
    ) -> Self {
        Self { name, kind, required: true, about }
    }
}

impl ArgumentKind {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Changes => json!({ "type": "object", "additionalProperties": true }),
            Self::Limit => json!({
                "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
            }),
            Self::Whole { least, most, default } => json!({
                "type": "integer", "minimum": least, "maximum": most, "default": default,
            }),
            Self::Word(words) => json!({ "type": "string", "enum": words }),
        }
    }

    /// A description of the expected value.
    fn expects(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Changes => {
                "an object of keys and values, as in {\"options.num_io_tiles\": 32}".to_owned()
            }
            Self::Limit => format!("a whole number from 1 to {MAX_LIMIT}"),
            Self::Whole { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Word(words) => format!("one of {}", words.join(", ")),
        }
    }

    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            Self::Flag => value.is_boolean(),
            Self::Changes => value.is_object(),
            Self::Limit => {
                value.as_u64().is_some_and(|limit| (1..=MAX_LIMIT as u64).contains(&limit))
            }
            Self::Whole { least, most, .. } => {
                value.as_u64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        }
    }
}

/// The JSON schema of the arguments of a tool.
pub(super) fn schema(arguments: &[ToolArgument]) -> Value {
    let required = arguments.iter().filter(|argument| argument.required);
    json!({
        "type": "object",
        "properties": arguments.iter().map(|argument| {
        let mut schema = argument.kind.schema();
        schema["description"] = argument.about.into();
        (argument.name.to_owned(), schema)
    }).collect::<Map<String, Value>>(),
        "required": required.map(|argument| argument.name).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

/// Arguments of a call, checked against the declaration.
#[derive(Debug)]
pub(super) struct CheckedArguments<'a>(Option<&'a Map<String, Value>>);

impl<'a> CheckedArguments<'a> {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// The wrong argument, the problem and the expected value.
    pub(super) fn of(declared: &[ToolArgument], sent: &'a Value) -> Result<Self, CliError> {
        let fields = match sent {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            _ => {
                let problem = "arguments must be an object of names and values";
                return Err(UsageError::Request(problem).into());
            }
        };
        for (name, value) in fields.into_iter().flatten() {
            let Some(argument) = declared.iter().find(|argument| argument.name == name) else {
                let known: Vec<&str> = declared.iter().map(|argument| argument.name).collect();
                let hint = format!("; known: {}", known.join(", "));
                return Err(UsageError::unknown("argument", name, hint).into());
            };
            if !argument.kind.accepts(value) {
                let option = name.clone();
                let expects = argument.kind.expects();
                let found = excerpt(value);
                return Err(UsageError::OptionExpects { option, expects, found }.into());
            }
        }
        let is_sent = |name: &str| fields.is_some_and(|fields| fields.contains_key(name));
        let missing = declared.iter().find(|argument| argument.required && !is_sent(argument.name));
        match missing {
            Some(of) => Err(UsageError::MissingArgument { name: of.name, about: of.about }.into()),
            None => Ok(Self(fields)),
        }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.and_then(|fields| fields.get(name))
    }

    /// A text or word, if given.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(Value::as_str)
    }

    /// A required text, whose presence was checked.
    pub(super) fn required_text(&self, name: &str) -> &'a str {
        self.text(name).unwrap_or_default()
    }

    /// All texts of a list.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let texts = self.value(name).and_then(Value::as_array);
        texts.into_iter().flatten().filter_map(Value::as_str)
    }

    /// True if a flag is set.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Changes of a spec; empty if there are none.
    pub(super) fn changes(&self, name: &str) -> SpecChanges {
        let fields = self.value(name).and_then(Value::as_object);
        fields.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A whole number, or its declared default.
    pub(super) fn whole(&self, argument: &ToolArgument) -> u64 {
        let default = match argument.kind {
            ArgumentKind::Whole { default, .. } => default,
            _ => 0,
        };
        self.value(argument.name).and_then(Value::as_u64).unwrap_or(default)
    }

    /// The requested number of entries of a list.
    pub(super) fn limit(&self) -> usize {
        let limit = self.value("limit").and_then(Value::as_u64);
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT)
    }
}

/// The beginning of an argument's value.
fn excerpt(value: &Value) -> String {
    const LETTERS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [ToolArgument; 3] = [
        ToolArgument::required("report", ArgumentKind::Text, "a report"),
        ToolArgument::optional("limit", ArgumentKind::Limit, "entries"),
        ToolArgument::optional("per", ArgumentKind::Word(&["run", "sample"]), "unit"),
    ];

    #[test]
    fn errors_name_the_expected_value() {
        let cases = [
            (json!([]), "an object"),
            (json!({}), "report is missing: a report"),
            (json!({ "report": 1 }), "report expects a string, not 1"),
            (json!({ "report": "a", "limit": 0 }), "limit expects a whole number from 1 to 1000"),
            (json!({ "report": "a", "limit": 2.5 }), "not 2.5"),
            (json!({ "report": "a", "per": "day" }), "per expects one of run, sample"),
            (json!({ "report": "a", "repot": 1 }), "unknown argument \"repot\"; known: report,"),
        ];
        for (sent, expected) in cases {
            let problem = CheckedArguments::of(&DECLARED, &sent).expect_err("refused").to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        let sent = json!({ "report": "a", "limit": 7 });
        let arguments = CheckedArguments::of(&DECLARED, &sent).expect("accepted");
        assert_eq!((arguments.required_text("report"), arguments.limit()), ("a", 7));
    }

    #[test]
    fn the_schema_agrees_with_the_check() {
        let schema = schema(&DECLARED);
        assert_eq!(schema["required"], json!(["report"]));
        assert_eq!(schema["properties"]["per"]["enum"], json!(["run", "sample"]));
        assert_eq!(schema["additionalProperties"], false);
    }
}
