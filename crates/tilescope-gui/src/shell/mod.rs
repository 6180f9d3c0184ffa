//! The window: it opens and saves reports, owns the session, applies commands, and arranges menus,
//! panels and dialogs around the views.

pub mod action;
pub mod app;
pub(crate) mod appearance;
pub(crate) mod child_program;
pub(crate) mod dialog;
mod export_task;
pub(crate) mod home;
pub(crate) mod messages_ui;
pub(crate) mod model_dialog;
pub(crate) mod overlay;
pub(crate) mod picture_export;
pub(crate) mod preferences_file;
pub(crate) mod quit_dialog;
pub(crate) mod remote_form;
pub(crate) mod report_check;
pub(crate) mod report_choice;
pub(crate) mod report_chooser;
pub(crate) mod report_file_watcher;
pub(crate) mod report_locations;
pub(crate) mod report_tabs;
pub(crate) mod search_dialog;
pub(crate) mod search_process;
mod series_dialog;
pub mod session;
pub(crate) mod simulation_process;
pub(crate) mod spec_queries;
pub(crate) mod unmodelled_line;
pub(crate) mod what_if_panel_ui;
pub(crate) mod window_frame;
