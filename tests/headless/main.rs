//! Tests of everything except the window: simulator, reports, analyses, command line, documents.
//!
//! One program instead of one for each file: linking takes most of the time of building tests.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../report_support/mod.rs"]
mod report_support;

mod balanced_split;
mod calibration;
mod causality;
mod cited_figures;
mod cli;
mod commands_document;
mod compare;
mod confidence;
mod cost_laws;
mod critical_path;
mod documents;
mod domain_sharding;
mod enough_ipus;
mod exchange;
mod exports;
mod field_inputs;
mod find;
mod format_document;
mod fuzzing;
mod goldens;
mod host;
mod host_paths;
mod html_report;
mod insights;
mod layers;
mod layouts;
mod limits;
mod liveness;
mod machine;
mod matmul_tutorial;
mod mcp;
mod merged_stages;
mod model_document;
mod models;
mod neighbour_laws;
mod number_law;
mod onnx_annotations;
mod onnx_command;
mod onnx_import;
mod onnx_report;
mod options;
mod outlining;
mod outputs;
mod phases;
mod pipeline;
mod planner_properties;
mod proven_insights;
mod published_programs;
mod query;
mod readme;
mod refusals;
mod remote;
mod remote_query;
mod repeats;
mod replicas;
mod replicated_sharding;
mod report_damage;
mod report_foreign;
mod report_round_trip;
mod report_trace;
mod report_writer;
mod run_length;
mod samples;
mod scheme_laws;
mod schemes;
mod sensitivity;
mod series;
mod sweep;
mod tables;
mod tile_profiles;
mod totals;
mod tune;
mod validate;
mod verify;
mod versions;
