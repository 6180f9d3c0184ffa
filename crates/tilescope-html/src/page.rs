//! Renders facts to the text of a page.

use crate::block::Block;
use crate::colours;
use crate::names::{is_order, shown};
use crate::sections::{PageFacts, SECTIONS};
use base64::Engine;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tilescope_analysis::compare::ComparedReports;
use tilescope_analysis::summary::ReportSummary;
use tilescope_report::{REPORT_FILE, Report, ReportError};

const TEMPLATE: &str = include_str!("../../../assets/report/page.html.j2");
const STYLE: &str = include_str!("../../../assets/report/page.css");
/// The style sheet of shapes and text in pictures, with one rule per line.
pub(crate) const PICTURE_STYLE: &str = include_str!("../../../assets/report/picture.css");
const SCRIPT: &str = include_str!("../../../assets/report/page.js");

/// The reason why no page was written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlPageError {
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The template of this program does not match its data.
    #[error("cannot create the page: {0}")]
    Template(#[from] minijinja::Error),
    #[error("cannot create the page: {0}")]
    Json(#[from] serde_json::Error),
    /// More figures than a page can show. None of them is left out silently.
    #[error(
        "a page shows at most {most} figures over runs, but {count} are selected: choose fewer \
         with --figure"
    )]
    TooManyFigures { count: usize, most: usize },
}

/// A report and its display name.
#[derive(Clone, Copy)]
pub struct PageReport<'a> {
    pub report: &'a Report,
    /// The path or the spec that the user gave.
    pub name: &'a str,
}

/// The other side of a comparison.
#[derive(Clone, Copy)]
pub struct ComparedPage<'a> {
    /// Both reports; the target is that of the page.
    pub sides: ComparedReports<'a>,
    /// Name of the source.
    pub source: &'a str,
    /// Gates, each with the reason if it is violated.
    pub gates: &'a [(String, Option<String>)],
}

/// A section of a page.
#[derive(Serialize)]
pub(crate) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// The head of a page.
pub(crate) struct PageHead {
    pub title: String,
    /// Lines below the title.
    pub subtitle: Vec<String>,
}

/// The page of a report, compared with another one if that is given. The same reports give the same
/// bytes.
///
/// # Errors
/// A part of the files cannot be read.
pub fn page(
    of: PageReport<'_>,
    compared: Option<ComparedPage<'_>>,
) -> Result<String, HtmlPageError> {
    let facts = PageFacts::read(of, compared)?;
    let mut sections = Vec::new();
    for entry in SECTIONS {
        sections.extend(entry.of((entry.build)(&facts)?));
    }
    sections.extend(crate::sections::topics::sections(&facts)?);
    let head = PageHead { title: title(&facts), subtitle: subtitle(&facts)? };
    rendered(head, &sections, Some(&facts.summary))
}

/// The text of a page: its sections in the common frame. For programs that read it, it contains the
/// summary of its report, if it has one.
pub(crate) fn rendered(
    head: PageHead,
    sections: &[Section],
    summary: Option<&ReportSummary>,
) -> Result<String, HtmlPageError> {
    let style = format!("{}{STYLE}{PICTURE_STYLE}", colours::style_sheet());
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        digest(&style),
        digest(SCRIPT)
    );
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE)?;
    let text = environment.get_template("page.html")?.render(context! {
        title => head.title,
        subtitle => head.subtitle,
        version => env!("CARGO_PKG_VERSION"),
        policy => policy,
        style => Value::from_safe_string(style),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        rows => Value::from_safe_string(in_script(&script_rows(sections))?),
        summary => summary.map(in_script).transpose()?.map(Value::from_safe_string),
        sections => Value::from(Serde(sections)),
    })?;
    // Texts other than names follow the same rules.
    Ok(if text.contains(|letter| is_order(letter) && letter != '\n') {
        text.chars()
            .map(|letter| if is_order(letter) && letter != '\n' { '\u{fffd}' } else { letter })
            .collect()
    } else {
        text
    })
}

/// The hash by which a security policy allows one text.
fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// A value for a script element; no name in it can end the element.
fn in_script(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

/// All rows, by table, for tables whose text has only the first ones.
fn script_rows(sections: &[Section]) -> BTreeMap<&str, serde_json::Value> {
    let blocks = sections.iter().flat_map(|section| &section.blocks);
    let rows = blocks.filter_map(|block| match block {
        Block::Table { table } => Some((table.id.as_str(), table.script_rows()?)),
        _ => None,
    });
    rows.collect()
}

/// The title of a page: the name of the report without its directories.
fn title(facts: &PageFacts<'_>) -> String {
    match &facts.compared {
        Some(compared) => format!("From {} to {}", last(compared.source), last(facts.name)),
        None => last(facts.name),
    }
}

/// The last part of a path, or that of its directory if the file has the standard name.
pub(crate) fn last(name: &str) -> String {
    let mut parts = name.split(['/', '\\']).filter(|part| !part.is_empty() && *part != REPORT_FILE);
    shown(parts.next_back().unwrap_or(name))
}

/// The program of the report, in a line or two.
fn subtitle(facts: &PageFacts<'_>) -> Result<Vec<String>, ReportError> {
    let target = &facts.summary.target;
    let machine = target.machine.clone().filter(|_| !target.machine_changes.is_empty());
    let architecture = match target.architecture.as_str() {
        "" => "IPU of unknown generation",
        architecture => architecture,
    };
    let mut line = format!("{} × {}", target.num_ipus, shown(architecture));
    if target.replicas > 1 {
        let replicas = target.replicas;
        let each = target.ipus_per_replica;
        line.push_str(&format!(", {replicas} replicas of {each} IPUs"));
    }
    line.push_str(if target.kind == "ipu" { "" } else { ", IPU Model" });
    let mut lines = vec![line];
    lines.extend(
        (last(facts.name) != facts.name && facts.compared.is_none()).then(|| shown(facts.name)),
    );
    lines.extend(machine.map(|machine| format!("Not a real machine: {}", shown(&machine))));
    if facts.compared.is_some() {
        let name = shown(facts.name);
        lines.push(format!("All sections below What changed describe the target, {name}."));
    }
    Ok(lines)
}
