//! A place in the window that findings and differences lead to.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use tilescope_report::remote::absolute_path;
use tilescope_report::units::{CycleRange, IpuId, OperationId, ProgramId, TileId, VariableId};

/// What links begin with.
pub const LINK_SCHEME: &str = "tilescope:";

/// What the names of things that a link selects begin with.
pub const LINK_SELECTION: &str = "select.";

/// Where something can be seen: a view, and what to choose there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewLocation {
    /// Name of the view, as the command line spells it.
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
    /// A view as it is.
    pub fn view(view: &'static str) -> Self {
        Self { view, ..Self::default() }
    }

    /// A link that opens the place in a report: `tilescope:/path?view=memory&select.tiles=%5B3%5D`.
    pub fn link(&self, report: &Path) -> String {
        let report = absolute_path(report);
        let path = link_encoded(&report.to_string_lossy());
        let mut link = format!("{LINK_SCHEME}{path}?view={}", link_encoded(self.view));
        // A place is numbers and lists of them: it has a JSON.
        let fields = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            if name != "view" {
                let value = link_encoded(&Value::to_string(value));
                // Writing into a text cannot fail.
                let _ = write!(link, "&{LINK_SELECTION}{name}={value}");
            }
        }
        link
    }
}

/// Text with signs that mean something in a link as percent and two digits.
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
