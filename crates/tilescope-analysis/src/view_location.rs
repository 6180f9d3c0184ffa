//! A place in the window that findings and differences lead to.

use serde::Serialize;
use tilescope_report::units::{CycleRange, IpuId, OperationId, ProgramId, TileId, VariableId};

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
}
