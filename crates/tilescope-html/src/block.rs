//! What sections of a page are made of. The template knows nothing else.

use crate::names::prose;
use crate::table::HtmlTable;
use minijinja::Value;
use serde::Serialize;

/// A part of a section.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Block {
    /// A sentence: what a figure means, or why a part is absent.
    Note {
        text: String,
    },
    /// A heading within the section.
    Heading {
        text: String,
    },
    /// Figures that stand out.
    Cards {
        cards: Vec<Card>,
    },
    /// Names and values, one below the other.
    Facts {
        rows: Vec<Fact>,
    },
    /// A picture with what it shows, and what its colours stand for.
    Figure {
        svg: Value,
        caption: String,
        legend: Vec<LegendEntry>,
    },
    Table {
        table: HtmlTable,
    },
    /// What is said of several things, a line each.
    Sentences {
        sentences: Vec<Sentence>,
    },
    /// What is worth doing.
    Findings {
        findings: Vec<FindingText>,
    },
    /// Answers, each explained by the next one.
    Chains {
        chains: Vec<ChainText>,
    },
}

impl Block {
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    pub(crate) fn heading(text: impl Into<String>) -> Self {
        Self::Heading { text: text.into() }
    }

    pub(crate) fn figure(
        svg: String,
        caption: impl Into<String>,
        legend: Vec<LegendEntry>,
    ) -> Self {
        Self::Figure { svg: Value::from_safe_string(svg), caption: caption.into(), legend }
    }
}

/// A figure that stands out.
#[derive(Serialize)]
pub(crate) struct Card {
    pub title: String,
    pub value: String,
    pub about: String,
    /// How it is worked out; empty where the title says it.
    pub formula: String,
    /// Whether it is what keeps the program from running.
    pub bad: bool,
}

/// A name with its value.
#[derive(Serialize)]
pub(crate) struct Fact {
    pub name: String,
    pub value: String,
    /// How it is worked out; empty for what is read from the report.
    pub formula: String,
}

impl Fact {
    pub(crate) fn new(name: impl Into<String>, value: impl AsRef<str>) -> Self {
        Self { name: name.into(), value: prose(value.as_ref()), formula: String::new() }
    }
}

/// What is said of something.
#[derive(Serialize)]
pub(crate) struct Sentence {
    pub subject: String,
    pub text: String,
}

/// What a colour stands for.
#[derive(Serialize)]
pub(crate) struct LegendEntry {
    pub colour: &'static str,
    pub name: String,
}

impl LegendEntry {
    pub(crate) fn new(colour: &'static str, name: impl Into<String>) -> Self {
        Self { colour, name: name.into() }
    }
}

/// A finding in words.
#[derive(Serialize)]
pub(crate) struct FindingText {
    pub subject: &'static str,
    pub sentence: String,
    pub advice: String,
    pub formula: String,
    pub gain: String,
    /// Share of the longest bar of gains; none where none is known.
    pub gain_percent: Option<u32>,
    pub proposal: Option<String>,
    pub cost: Option<String>,
    /// What came of it when it was tried.
    pub tried: Option<String>,
    /// Whether that was a gain.
    pub gained: bool,
    /// Whether it was tried and gained nothing.
    pub in_vain: bool,
    pub rule: String,
}

/// Why a step takes as long as it does.
#[derive(Serialize)]
pub(crate) struct ChainText {
    pub links: Vec<ChainLink>,
    pub options: String,
}

#[derive(Serialize)]
pub(crate) struct ChainLink {
    pub text: String,
    pub detail: String,
}
