//! Answers about a report as plain structs: one file per view's numbers. Nothing here knows of
//! colours or widgets.

pub mod bank_map;
pub mod compare;
pub mod confidence;
pub mod critical_path;
pub mod data_table;
pub mod distribution;
pub mod exchange_code;
pub mod find;
pub mod gates;
mod graph_layout;
pub mod host;
pub mod imported_model;
pub mod insights;
pub mod json;
mod label_conventions;
pub mod limits;
pub mod liveness;
pub mod memory;
pub mod operation_debug;
pub mod operations;
pub mod operations_graph;
pub mod pipeline_schedule;
mod program_names;
pub mod program_tree;
pub mod replica_classes;
pub mod replica_rings;
pub mod replicas;
pub mod running_costs;
pub mod sensitivity;
pub mod statistics;
pub mod summary;
pub mod tables;
pub mod tile_curves;
pub mod tile_mapping;
pub mod trace;
pub mod view_location;
