//! The fields of answers of tools, declared beside their arguments, for the schema that clients
//! read.

use serde_json::{Map, Value, json};

/// The type of a field of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerKind {
    Text,
    Texts,
    Number,
    /// Null if unknown.
    Numbers,
    Whole,
    Flag,
    /// A text, a number, an object or a list.
    Any,
    /// An object whose fields are not declared, such as the figures of a report.
    Object,
    /// An object with all of these fields.
    Fields(&'static [AnswerField]),
    /// Objects with some of these fields. The last may be the number of missing objects.
    Rows(&'static [AnswerField]),
    /// Rows that are lists of cells, or objects. The last may be the number of missing rows.
    Cells,
}

/// The presence of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Presence {
    Always,
    /// Always present, and null if unknown.
    OrNull,
    Sometimes,
}

/// A field of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerField {
    name: &'static str,
    kind: AnswerKind,
    presence: Presence,
    about: &'static str,
}

/// Further fields of answers about reports.
const OF_REPORTS: [AnswerField; 3] = [
    AnswerField::sometimes("link", AnswerKind::Text, "Link to the place: tilescope LINK opens it"),
    AnswerField::sometimes(
        "note",
        AnswerKind::Text,
        "A note if the report was simulated for this answer",
    ),
    AnswerField::sometimes(
        "warnings",
        AnswerKind::Texts,
        "Warnings about missing or inconsistent \
                                                           parts of the report",
    ),
];

impl AnswerField {
    /// A field that is always present.
    pub(super) const fn always(name: &'static str, kind: AnswerKind, about: &'static str) -> Self {
        Self { name, kind, presence: Presence::Always, about }
    }

    /// A field that is null if unknown.
    pub(super) const fn or_null(name: &'static str, kind: AnswerKind, about: &'static str) -> Self {
        Self { name, kind, presence: Presence::OrNull, about }
    }

    /// A field that only some answers have.
    pub(super) const fn sometimes(
        name: &'static str,
        kind: AnswerKind,
        about: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Sometimes, about }
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if self.presence == Presence::OrNull {
            schema["type"] = json!([schema["type"], "null"]);
        }
        schema["description"] = self.about.into();
        schema
    }
}

impl AnswerKind {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Number => json!({ "type": "number" }),
            Self::Numbers => json!({ "type": "array", "items": { "type": ["number", "null"] } }),
            Self::Whole => json!({ "type": "integer" }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Any => json!({}),
            Self::Object => json!({ "type": "object" }),
            Self::Fields(fields) => object(fields.iter(), true),
            Self::Rows(fields) => {
                let row = json!({ "type": "object", "properties": properties(fields.iter()) });
                json!({ "type": "array", "items": row })
            }
            Self::Cells => json!({ "type": "array", "items": { "type": ["array", "object"] } }),
        }
    }
}

/// The JSON schema of the answers of a tool.
pub(super) fn schema(fields: &[AnswerField]) -> Value {
    object(fields.iter().chain(&OF_REPORTS), false)
}

fn object<'a>(fields: impl Iterator<Item = &'a AnswerField> + Clone, is_open: bool) -> Value {
    let required = fields.clone().filter(|field| field.presence != Presence::Sometimes);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let properties = properties(fields);
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": is_open,
    })
}

fn properties<'a>(fields: impl Iterator<Item = &'a AnswerField>) -> Map<String, Value> {
    fields.map(|field| (field.name.to_owned(), field.schema())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_says_what_is_there() {
        const POINT: [AnswerField; 1] =
            [AnswerField::always("cycles", AnswerKind::Whole, "Cycles of the run")];
        let fields = [
            AnswerField::always("before", AnswerKind::Fields(&POINT), "A point"),
            AnswerField::or_null("gain", AnswerKind::Number, "A share"),
            AnswerField::sometimes("rows", AnswerKind::Rows(&POINT), "Points"),
        ];
        let schema = schema(&fields);
        assert_eq!(schema["required"], json!(["before", "gain"]));
        assert_eq!(schema["properties"]["gain"]["type"], json!(["number", "null"]));
        assert_eq!(schema["properties"]["before"]["required"], json!(["cycles"]));
        let row = &schema["properties"]["rows"]["items"];
        assert_eq!((&row["type"], row.get("required")), (&json!("object"), None));
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["properties"]["warnings"].is_object());
    }
}
