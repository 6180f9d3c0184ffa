//! The controls of views, for the command palette. Users find a control without knowing its view.

use crate::model::view_id::ViewId;

/// The controls of a view, by their visible names. Some exist only if the report or another control
/// makes them useful.
#[derive(Clone, Copy, Debug)]
pub struct ViewControls {
    /// The view that has them.
    pub view: ViewId,
    /// The checkboxes, choices, menus, text boxes and buttons of its toolbar.
    pub strip: &'static [&'static str],
    /// The tabs of its tables. A tab with a count is listed without the number.
    pub tabs: &'static [&'static str],
}

/// All views with controls.
pub const VIEW_CONTROLS: &[ViewControls] = &[
    ViewControls {
        view: ViewId::Insights,
        strip: &["Scope"],
        tabs: &["Largest vertices", "Largest exchanges", "Largest variables", "Live at the peak"],
    },
    ViewControls {
        view: ViewId::Memory,
        strip: &[
            "Graph",
            "Breakdown",
            "Tiles",
            "Logarithmic colours",
            "At the trace's cursor",
            "Include gaps",
            "Show max memory",
            "Per IPU",
            "Whole chip",
            "Select tiles",
            "Group by",
        ],
        tabs: &["Details", "Compute sets", "Variables", "Vertices", "Exchanges", "Memory map"],
    },
    ViewControls {
        view: ViewId::Liveness,
        strip: &[
            "Graph",
            "Source",
            "Tile",
            "Filter steps",
            "Include always live",
            "Show max memory",
            "All steps",
            "Peak",
            "Group by",
        ],
        tabs: &[
            "Always live variables",
            "Not always live variables",
            "Vertices",
            "Cycle estimates",
            "Free blocks",
            "Step",
        ],
    },
    ViewControls {
        view: ViewId::ProgramTree,
        strip: &["Program", "Search for steps", "Show ids", "Unfold all", "Fold all"],
        tabs: &[],
    },
    ViewControls {
        view: ViewId::Operations,
        strip: &["Layer", "Columns", "Group by"],
        tabs: &["Summary", "Steps", "Code", "Cycles", "FLOPs", "Plan", "Debug"],
    },
    ViewControls {
        view: ViewId::Limits,
        strip: &["IPU", "Plots", "Whole plot", "Group by"],
        tabs: &["Operations", "Where cycles go", "Roofline", "Waterfall", "Details"],
    },
    ViewControls {
        view: ViewId::OperationsGraph,
        strip: &[
            "Colour",
            "Show backward pass",
            "Show weight updates",
            "Edge labels",
            "Whole graph",
            "Unfold all",
            "Fold all",
        ],
        tabs: &[],
    },
    ViewControls {
        view: ViewId::ExecutionTrace,
        strip: &[
            "View",
            "Lanes",
            "Ruler",
            "Tile rows",
            "IPU",
            "Go to",
            "Filter steps",
            "Micro-batch",
            "Group executions",
            "Group syncs",
            "Tile balance",
            "Shares",
            "Marks",
            "Critical path",
            "Arrows",
            "All replicas",
            "Links",
            "BSP",
            "Key",
            "Cycles on the screen",
            "Whole run",
            "Group by",
        ],
        tabs: &[
            "Summary",
            "Details",
            "Statistics",
            "Critical path",
            "Schedule",
            "Tiles",
            "Samples",
        ],
    },
    ViewControls {
        view: ViewId::ExchangeCode,
        strip: &[
            "Show",
            "Tiles",
            "Per IPU",
            "Whole chip",
            "Link",
            "All programs",
            "Show in trace",
            "At the trace's cursor",
            "Select tiles",
            "Group by",
        ],
        tabs: &["Overview", "Programs", "Cycles", "Details", "Hot tiles", "IPU pairs", "Tiles"],
    },
    ViewControls {
        view: ViewId::TileMapping,
        strip: &[
            "Map",
            "Show",
            "Logarithmic colours",
            "At the trace's cursor",
            "Select tiles",
            "Group by",
        ],
        tabs: &["Choose", "Regions", "Vertices", "Rearrangements", "Replicas"],
    },
    ViewControls { view: ViewId::Topics, strip: &["Topic", "Table", "Group by"], tabs: &[] },
];
