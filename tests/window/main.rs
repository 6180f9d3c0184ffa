//! Tests of the desktop app, driven through its accessibility tree; no display is needed.
//!
//! One program, and not one for each file: linking is most of the cost of building tests.

#![cfg(feature = "gui")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../gui_support/mod.rs"]
mod gui_support;
#[path = "../report_support/mod.rs"]
mod report_support;

mod actions;
mod app;
mod broken;
mod compare;
mod critical_path;
#[cfg(unix)]
mod failures;
mod groups;
mod keep;
mod keyboard;
mod layout;
mod limits;
mod marks;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
mod messages;
mod models;
mod numbers;
mod pairs;
mod pictures;
mod proof;
mod reading;
#[cfg(unix)]
mod remote;
mod replicas;
mod searches;
mod series;
mod shares;
mod tasks;
mod tiles;
mod topics;
mod tour;
mod tuning_loop;
mod what_if;
mod workplace;
