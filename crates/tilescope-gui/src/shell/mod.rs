//! The window: opens and saves, keeps the session, carries out commands, and puts menus, panels and
//! dialogs round the views.

pub mod action;
pub mod app;
pub(crate) mod appearance;
pub(crate) mod ask;
pub(crate) mod child;
pub(crate) mod export_task;
pub(crate) mod home;
pub(crate) mod messages_ui;
pub(crate) mod overlay;
pub(crate) mod passing;
pub(crate) mod picture;
pub(crate) mod report_locations;
pub mod session;
pub(crate) mod session_navigation;
pub(crate) mod session_what_if;
pub(crate) mod spec_queries;
pub(crate) mod store;
pub(crate) mod tabs;
pub(crate) mod watch;
pub(crate) mod window_frame;
