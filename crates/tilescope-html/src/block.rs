//! The building blocks of the sections of a page. The template handles exactly these.

use crate::names::prose;
use crate::table::HtmlTable;
use minijinja::Value;
use serde::Serialize;

/// A part of a section.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Block {
    /// A sentence: the meaning of a figure, or the reason why a part is absent.
    Note {
        text: String,
    },
    /// A heading within the section.
    Heading {
        text: String,
    },
    /// Highlighted figures.
    Cards {
        cards: Vec<Card>,
    },
    /// Names and values, one below the other.
    Facts {
        rows: Vec<Fact>,
    },
    /// A picture with its description and the meaning of its colours.
    Figure {
        svg: Value,
        caption: String,
        legend: Vec<LegendEntry>,
    },
    Table {
        table: HtmlTable,
    },
    /// Sentences about several things, one per line.
    Sentences {
        sentences: Vec<Sentence>,
    },
    /// Findings and their proposals.
    Findings {
        findings: Vec<FindingText>,
    },
    /// Chains of answers, each explained by the next one.
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

/// A highlighted figure.
#[derive(Serialize)]
pub(crate) struct Card {
    pub title: String,
    pub value: String,
    pub about: String,
    /// Its formula; empty if the title states it.
    pub formula: String,
    /// True if it is the reason why the program cannot run.
    pub bad: bool,
}

/// A name with its value.
#[derive(Serialize)]
pub(crate) struct Fact {
    pub name: String,
    pub value: String,
    /// Its formula; empty for values read from the report.
    pub formula: String,
}

impl Fact {
    pub(crate) fn new(name: impl Into<String>, value: impl AsRef<str>) -> Self {
        Self { name: name.into(), value: prose(value.as_ref()), formula: String::new() }
    }
}

/// A sentence about one thing.
#[derive(Serialize)]
pub(crate) struct Sentence {
    pub subject: String,
    pub text: String,
}

/// The meaning of a colour.
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

/// A finding as text.
#[derive(Serialize)]
pub(crate) struct FindingText {
    pub subject: &'static str,
    pub sentence: String,
    pub advice: String,
    pub formula: String,
    pub gain: String,
    /// Its share of the longest gain, for a bar; `None` if the gain is not known.
    pub gain_percent: Option<u32>,
    /// The claimed gain of a tested proposal on the same scale.
    pub claimed_percent: Option<u32>,
    /// The 90 % interval of its measured gain on the same scale: start and length.
    pub interval_percent: Option<(u32, u32)>,
    pub proposal: Option<String>,
    pub cost: Option<String>,
    /// The result of trying it.
    pub tried: Option<String>,
    /// True if it was tried with a gain.
    pub gained: bool,
    /// True if it was tried without a gain.
    pub without_gain: bool,
    pub rule: String,
}

/// The reason for the duration of a step.
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
