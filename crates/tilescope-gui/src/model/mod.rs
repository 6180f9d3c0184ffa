//! The state of a window as plain data: reports, selection, navigation, preferences, commands.
//! Nothing here depends on how it is displayed.

pub(crate) mod command;
pub(crate) mod export_request;
pub(crate) mod mechanism_page;
pub mod message;
pub mod navigation;
pub(crate) mod open_report;
pub(crate) mod preferences;
pub(crate) mod report_tab;
pub(crate) mod selection;
pub(crate) mod selection_query;
pub(crate) mod tab_list;
pub(crate) mod three_way_merge;
pub(crate) mod view_id;
pub(crate) mod view_state;
