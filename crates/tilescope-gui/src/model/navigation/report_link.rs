//! Places as text: `tilescope:/path/of/report?view=memory&select.tiles=[3]&breakdown=categories`.
//!
//! Values are JSON; text that is not valid JSON stands for itself. Reserved characters of an
//! address are written as a percent sign and two digits. A comparison has `compare` with the path
//! of the target, `compare.…` for the layout, and `target.…` for the state of the right side.

use super::navigation_state::{NavigationState, TargetNavigationState};
use crate::model::selection::Selection;
use crate::model::view_id::{UnknownViewName, known_view_names};
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tilescope_analysis::view_location::{
    LINK_SCHEME as SCHEME, LINK_SELECTION as SELECTION, link_encoded as encoded,
};
use tilescope_report::remote::absolute_path;

const PREFS: &str = "prefs.";
const COMPARE: &str = "compare";
const LAYOUT: &str = "compare.";
const TARGET: &str = "target.";
const TARGET_SELECTION: &str = "target.select.";

/// A report and a place in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportLink {
    /// The path of the report; empty for the open one.
    pub report: PathBuf,
    pub place: NavigationState,
}

/// An error from parsing a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportLinkError {
    /// The text does not begin with the scheme of links.
    #[error("a link begins with tilescope:, this one does not: {0:?}")]
    Scheme(String),
    /// A percent sign is not followed by two digits, or the bytes are not valid UTF-8.
    #[error("this link is damaged at {0:?}")]
    Damaged(String),
    /// The link names no view, or an unknown one.
    #[error("this link names an unknown view {0:?}; known: {known}", known = known_view_names())]
    View(String),
    /// A selection in the link is invalid.
    #[error("this link has an invalid selection: {0}")]
    Selection(String),
}

impl ReportLink {
    /// Creates a link to a place in a report.
    pub(crate) fn new(report: &Path, place: NavigationState) -> Self {
        Self { report: absolute_path(report), place }
    }
}

impl fmt::Display for ReportLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NavigationState { view, selection, state, prefs, target: beside } = &self.place;
        let path = self.report.to_string_lossy();
        write!(f, "{SCHEME}{}?view={}", encoded(&path), encoded(view.name()))?;
        let parts = [(SELECTION, &to_view_state(selection)), ("", state), (PREFS, prefs)];
        write_fields(f, &parts)?;
        let Some(beside) = beside else { return Ok(()) };
        let TargetNavigationState { report, selection, state, layout } = beside.as_ref();
        write!(f, "&{COMPARE}={}", encoded(&report.to_string_lossy()))?;
        let chosen = to_view_state(selection);
        write_fields(f, &[(LAYOUT, layout), (TARGET_SELECTION, &chosen), (TARGET, state)])
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, parts: &[(&str, &ViewState)]) -> fmt::Result {
    for (prefix, fields) in parts {
        for (name, value) in fields.iter() {
            write!(f, "&{prefix}{}={}", encoded(name), encoded(&written(value)))?;
        }
    }
    Ok(())
}

impl FromStr for ReportLink {
    type Err = ReportLinkError;

    fn from_str(text: &str) -> Result<Self, ReportLinkError> {
        let text = text.trim();
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(ReportLinkError::Scheme(text.chars().take(60).collect()));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut place = NavigationState::default();
        let mut view = String::new();
        let mut selection = ViewState::new();
        let mut selection_beside = ViewState::new();
        let mut beside = TargetNavigationState::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name)?;
            let value = decoded(value)?;
            if name == "view" {
                view = value;
            } else if name == COMPARE {
                beside.report = PathBuf::from(value);
            } else if let Some(name) = name.strip_prefix(LAYOUT) {
                beside.layout.insert(name.to_owned(), read(&value));
            } else if let Some(name) = name.strip_prefix(TARGET_SELECTION) {
                selection_beside.insert(name.to_owned(), read(&value));
            } else if let Some(name) = name.strip_prefix(TARGET) {
                beside.state.insert(name.to_owned(), read(&value));
            } else if let Some(name) = name.strip_prefix(SELECTION) {
                selection.insert(name.to_owned(), read(&value));
            } else if let Some(name) = name.strip_prefix(PREFS) {
                place.prefs.insert(name.to_owned(), read(&value));
            } else {
                place.state.insert(name, read(&value));
            }
        }
        place.view = view.parse().map_err(|UnknownViewName(name)| ReportLinkError::View(name))?;
        place.selection = chosen(&selection)?;
        if !beside.report.as_os_str().is_empty() {
            beside.selection = chosen(&selection_beside)?;
            place.target = Some(Box::new(beside));
        }
        Ok(Self { report: PathBuf::from(decoded(path)?), place })
    }
}

fn chosen(fields: &ViewState) -> Result<Selection, ReportLinkError> {
    let (chosen, strange) = from_view_state::<Selection>(fields);
    if strange.is_empty() {
        Ok(chosen)
    } else {
        Err(ReportLinkError::Selection(strange.join(", ")))
    }
}

/// Returns text unquoted if that is unambiguous, and any other value as JSON.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) if read(text) == *value => text.clone(),
        value => value.to_string(),
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn decoded(text: &str) -> Result<String, ReportLinkError> {
    let make_error = || ReportLinkError::Damaged(text.chars().take(60).collect());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or_else(make_error)?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| make_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_report::units::{IpuId, StepId, TileId};
    use tilescope_test_tiers::cases;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            proptest::num::f64::NORMAL.prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[0-9.e-]{1,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            proptest::collection::vec(inner, 0..4).prop_map(Value::from)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn links_survive_a_round_trip(
            path in "/[^\0]{0,20}",
            tiles in proptest::collection::vec(any::<u32>().prop_map(TileId), 0..4),
            step in any::<Option<u64>>(),
            state in proptest::collection::btree_map("[a-z_]{1,6}", value(), 0..4),
            compared in any::<bool>(),
        ) {
            let step = step.map(|id| crate::model::command::SelectedStep {
                at: IpuId(3).into(), sub_lane: 1, position: id, step: StepId(id),
            });
            let selection = Selection { tiles, step, ..Selection::default() };
            let mut state: ViewState = state.into_iter().collect();
            state.remove("view");
            let beside = if compared {
                Some(Box::new(TargetNavigationState {
                    report: PathBuf::from("/b c"),
                    selection: selection.clone(),
                    state: state.clone(),
                    layout: state.clone(),
                }))
            } else {
                None
            };
            let prefs = state.clone();
            let view = crate::model::view_id::ViewId::Memory;
            let place = NavigationState { view, selection, state, prefs, target: beside };
            let link = ReportLink { report: PathBuf::from(path), place };
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in "(tilescope:)?[ -~]{0,40}|\\PC{0,20}") {
            let _ = text.parse::<ReportLink>();
        }
    }

    #[test]
    fn damaged_links_are_rejected() {
        let error = |text: &str| text.parse::<ReportLink>().unwrap_err().to_string();
        assert!(error("http://example.org").contains("tilescope:"));
        assert!(error("tilescope:/a?view=nowhere").contains("execution-trace"));
        assert!(error("tilescope:/a%2?view=memory").contains("damaged"));
        assert!(error("tilescope:/a?view=memory&select.tiles=banana").contains("tiles"));
    }
}
