//! tilescope: see why a program is slow or does not fit on Graphcore IPUs, and what would change it.
//!
//! An embedded simulator compiles and runs a model at tile level and writes a `profile.pop` report;
//! analyses answer questions about a report; a desktop app and a command line show the answers.
//! The report is the only thing simulator and views share.
//!
//! # The house
//!
//! Strict layers: a module may use `crate::` paths of the layers in its row and of itself, nothing
//! else. `tests/headless/layers.rs` reads this table and enforces it.
//!
//! | layer | may import |
//! |---|---|
//! | `units` | - |
//! | `report` | `units` |
//! | `sim` | `units`, `report` |
//! | `analysis` | `units`, `report` |
//! | `cli` | `units`, `report`, `sim`, `analysis`, `gui` |
//! | `gui` | `units`, `report`, `analysis` |
//!
//! `gui` exists with the cargo feature of that name. It never imports `sim`: to simulate, it starts
//! its own executable as a child process and opens the report that comes out.

pub mod analysis;
pub mod cli;
#[cfg(feature = "gui")]
pub mod gui;
pub mod report;
pub mod sim;
pub mod units;
