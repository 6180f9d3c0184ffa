//! A location in the window, as the target of links from findings and differences.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use tilescope_report::remote::absolute_path;
use tilescope_report::units::{CycleRange, IpuId, OperationId, ProgramId, TileId, VariableId};

/// The scheme of links.
pub const LINK_SCHEME: &str = "tilescope:";

/// The prefix of the names of selected entities in a link.
pub const LINK_SELECTION: &str = "select.";

/// The location of an item: a view, and the selection in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewLocation {
    /// Name of the view, in the spelling of the command line.
    pub view: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiles: Vec<TileId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipu: Option<IpuId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<VariableId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CycleRange>,
}

impl ViewLocation {
    /// Creates the location of a view without a selection.
    pub fn view(view: &'static str) -> Self {
        Self { view, ..Self::default() }
    }

    /// A link to the location in a report: `tilescope:/path?view=memory&select.tiles=%5B3%5D`.
    pub fn link(&self, report: &Path) -> String {
        let report = absolute_path(report);
        let path = link_encoded(&report.to_string_lossy());
        let mut link = format!("{LINK_SCHEME}{path}?view={}", link_encoded(self.view));
        // A location consists of numbers and lists of them, which JSON can represent.
        let fields = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            if name != "view" {
                let value = link_encoded(&Value::to_string(value));
                // Writing to a string cannot fail.
                let _ = write!(link, "&{LINK_SELECTION}{name}={value}");
            }
        }
        link
    }
}

/// Text with special characters of links as percent signs and two hexadecimal digits.
pub fn link_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:,".contains(&byte) {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
