//! Compares two reports, with gates.

use super::super::answer::first;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, OpenedReport, json_of};
use super::{LIMIT, McpTool, PER, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use crate::cli::gates::{CheckedGates, read_gate};
use serde_json::{Value, json};
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ComparisonRow, ComparisonTable, ReportAlignment, WorkUnit,
    comparison, overview,
};
use tilescope_report::units::NumberFormat;

const SOURCE: ToolArgument = ToolArgument::required(
    "source",
    ArgumentKind::Text,
    "Baseline: a report, or a spec, which is simulated",
);
const TARGET: ToolArgument = ToolArgument::required(
    "target",
    ArgumentKind::Text,
    "Target: a report, or a spec, which is simulated",
);
const TARGET_CHANGES: ToolArgument = ToolArgument::optional(
    "target_changes",
    ArgumentKind::Changes,
    "Keys of the target's spec to change before it is simulated",
);
const VIEW: ToolArgument = ToolArgument::optional(
    "view",
    ArgumentKind::Text,
    "A view whose figures are compared, for example \"operations\" or \"memory\"; without it, a \
     page of the main changes",
);
const GATES: ToolArgument = ToolArgument::optional(
    "gates",
    ArgumentKind::Texts,
    "Conditions that fail the comparison, for example [\"cycles > +2%\", \
     \"memory.max_tile_including_gaps > 600 KiB\"]: a dotted path of summary, or cycles, \
     throughput, memory, max_tile; > >= < <= ==; a limit with a unit, with a sign for a change \
     relative to the source",
);
/// One of the two reports.
const SIDE: [AnswerField; 1] =
    [AnswerField::always("report", AnswerKind::Text, "The name of the report, as given")];

pub(super) const TOOL: McpTool = McpTool {
    name: "compare",
    about: "Compares two reports or specs: the verdict, the significance of the difference given \
            the errors of the model, its causes (critical path, operations, steps) and the changed \
            settings; and evaluates gates. Differences are target - source, the largest first.",
    arguments: &[SOURCE, TARGET, TARGET_CHANGES, VIEW, GATES, PER, LIMIT],
    answer: &[
        AnswerField::always("source", AnswerKind::Fields(&SIDE), "The baseline"),
        AnswerField::always("target", AnswerKind::Fields(&SIDE), "The target"),
        AnswerField::always("normalization", AnswerKind::Object, "Unit of work of the figures"),
        AnswerField::sometimes("verdict", AnswerKind::Text, "The change in a sentence"),
        AnswerField::sometimes(
            "distinction",
            AnswerKind::Any,
            "True if the difference exceeds the errors of the model",
        ),
        AnswerField::always(
            "tables",
            AnswerKind::Rows(&[
                AnswerField::always("title", AnswerKind::Text, "Its title"),
                AnswerField::always("of", AnswerKind::Text, "The meaning of its rows"),
                AnswerField::always(
                    "rows",
                    AnswerKind::Rows(&[]),
                    "Rows, the largest change first",
                ),
                AnswerField::always("total", AnswerKind::Any, "Their sum"),
            ]),
            "Differences, target - source",
        ),
        AnswerField::always(
            "gates",
            AnswerKind::Rows(&[
                AnswerField::always("gate", AnswerKind::Text, "The gate"),
                AnswerField::always("violated", AnswerKind::Flag, "True if the gate is violated"),
                AnswerField::or_null("why", AnswerKind::Text, "The figure that violates it"),
            ]),
            "Each gate with its verdict",
        ),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let view = arguments.text(VIEW.name);
    let known_view = view.map(known_view).transpose()?;
    let gates = arguments.texts(GATES.name).map(read_gate).collect::<Result<Vec<_>, _>>()?;
    let source = session.open(arguments.required_text(SOURCE.name), &Default::default())?;
    let changes = arguments.changes(TARGET_CHANGES.name);
    let target = session.open(arguments.required_text(TARGET.name), &changes)?;
    let alignment = ReportAlignment::without_links(&source.report, &target.report)?;
    let unit = arguments.text(PER.name);
    let unit = WorkUnit::ALL.into_iter().find(|known| Some(known.name()) == unit);
    let sides = ComparedReports {
        source: &source.report,
        target: &target.report,
        alignment: &alignment,
        numbers: NumberFormat::default(),
        unit: unit.unwrap_or_default(),
    };
    let normalization = sides.normalization()?;
    let gates = CheckedGates::of(gates, (&source.report, &target.report), &normalization)?;
    let mut answer = json!({ "normalization": json_of(&normalization)? });
    let tables = match known_view {
        Some(view) => (view.tables)(&sides)?,
        None => {
            let page = overview(&sides)?;
            answer["verdict"] = page.verdict.into();
            answer["distinction"] = json_of(&page.distinction)?;
            page.tables
        }
    };
    let limit = arguments.limit();
    let tables = tables.iter().filter(|table| !table.rows.is_empty());
    let tables = tables.map(|table| table_json(table, limit, [&source, &target]));
    answer["tables"] = Value::Array(tables.collect());
    answer["gates"] = gates
        .each()
        .map(|(gate, violation)| {
            let sentence = violation.map(|violation| violation.sentence.as_str());
            json!({ "gate": gate, "violated": violation.is_some(), "why": sentence })
        })
        .collect();
    answer["source"] = source.answer(json!({}))?;
    answer["target"] = target.answer(json!({}))?;
    Ok(answer.into())
}

fn known_view(
    view: &str,
) -> Result<&'static tilescope_analysis::compare::ViewComparison, CliError> {
    let found = comparison(view).ok_or_else(|| {
        let known: Vec<&str> = COMPARISONS.iter().map(|one| one.view).collect();
        UsageError::unknown("view", view, format!("; views to compare: {}", known.join(", ")))
    });
    Ok(found?)
}

fn table_json(table: &ComparisonTable, limit: usize, sides: [&OpenedReport; 2]) -> Value {
    json!({
        "title": table.title,
        "of": table.heading(),
        "rows": first(table.rows.iter(), limit, |row| row_json(row, sides)),
        "total": table.total,
    })
}

/// A row, with a link to its place in the target, or otherwise in the source.
fn row_json(row: &ComparisonRow, [source, target]: [&OpenedReport; 2]) -> Value {
    let in_target = row.target_place.as_ref().and_then(|place| target.link(place));
    let mut value = json!(row);
    if let Some(link) =
        in_target.or_else(|| row.source_place.as_ref().and_then(|place| source.link(place)))
    {
        value["link"] = link.into();
    }
    value
}
