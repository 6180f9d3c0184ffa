//! Answers about a report as plain structs: one file per view's numbers. Nothing here knows of
//! colours or widgets.

pub mod bank_map;
pub mod compare;
pub mod data_table;
pub mod exchange_code;
pub mod find;
pub mod insights;
pub mod json;
pub mod liveness;
pub mod measure;
pub mod memory;
mod names;
pub mod operation_debug;
pub mod operations;
pub mod operations_graph;
pub mod program_tree;
pub mod save;
pub mod summary;
pub mod tables;
pub mod tile_mapping;
pub mod tiles;
pub mod trace;
