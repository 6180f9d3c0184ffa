//! Controls in the strips above views, for the command palette: whoever looks for one need not know
//! which view has it.

use crate::model::view_id::ViewId;

/// Boxes to tick, choices and buttons of each view's strip, by their names. Some are only there
/// where the report or another control gives them something to do.
pub const VIEW_CONTROLS: &[(ViewId, &[&str])] = &[
    (
        ViewId::Memory,
        &[
            "Graph",
            "Breakdown",
            "Tiles",
            "Logarithmic colours",
            "Include gaps",
            "Show max memory",
            "Per IPU",
            "Whole chip",
        ],
    ),
    (ViewId::Liveness, &["Source", "Include always live", "Show max memory", "All steps", "Peak"]),
    (ViewId::ProgramTree, &["Show ids", "Unfold all", "Fold all"]),
    (ViewId::Operations, &["Layer"]),
    (
        ViewId::OperationsGraph,
        &[
            "Colour",
            "Show backward pass",
            "Show weight updates",
            "Edge labels",
            "Whole graph",
            "Unfold all",
            "Fold all",
        ],
    ),
    (
        ViewId::ExecutionTrace,
        &[
            "View",
            "Group executions",
            "Group syncs",
            "Tile balance",
            "Shares",
            "Marks",
            "Arrows",
            "BSP",
            "Whole run",
        ],
    ),
    (
        ViewId::ExchangeCode,
        &["Show", "Tiles", "Per IPU", "Whole chip", "Link", "All programs", "Show in trace"],
    ),
    (ViewId::TileMapping, &["Map", "Show", "Logarithmic colours"]),
];
