//! The contract between writers and readers of reports: the content of a report, and the
//! `profile.pop` file that stores it.
//!
//! | file | content |
//! |---|---|
//! | `model` | the content of a report, as plain data |
//! | `schema` | every table and column of the file |
//! | `writer` | [`ReportWriter`]: a compilation, then steps and marks as they come |
//! | `reader` | [`Report`]: opens any report in milliseconds and answers queries |
//! | `trace` | executed steps at any zoom: the index in the file, and the answers from it |
//! | `profile_readers` | profiles of other tools, converted to reports when they are opened |
//! | `table_checksums`, `packed_columns` | checksums of tables; many rows in few bytes |
//! | `mark_blocks` | marks of long runs in counted blocks |
//! | `slice` | a part of a run as a report of its own |
//! | `atomic_file`, `temporary_directory` | files that are replaced whole or not at all; files that end with the process |
//! | `text_file` | small untrusted texts |
//! | `remote` | reports on other machines, copied through the user's `ssh` |
//! | `debug_cbor` | names that frameworks give to operations, in a file beside a report |
//! | `open`, `report_location` | from a path or an address to an open report |
//! | `database`, `open_file`, `held_file`, `limits` | reading untrusted files |
//!
//! Text, numbers and invariants only: no view, no colour, no judgement of good or bad.

// A figure that is truncated silently is wrong; tests count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod address_blob;
pub mod atomic_file;
mod bounded_connection;
mod cache_directory;
mod codec;
mod database;
mod debug_cbor;
mod error;
mod held_file;
pub(crate) mod limits;
mod mark_blocks;
mod model;
mod open;
mod open_file;
mod packed_columns;
mod profile_readers;
mod reader;
pub mod remote;
mod report_location;
mod report_warnings;
mod row_cells;
mod row_writer;
pub mod schema;
mod slice;
mod strided_tile_runs;
mod table_checksums;
pub mod temporary_directory;
pub mod text_file;
pub mod trace;
pub mod units;
mod writer;

pub use debug_cbor::DebugFrame;
pub use error::ReportError;
pub use held_file::check_open_reports;
pub use limits::MAX_TILES as MAX_TILES_PER_REPLICA;
pub use mark_blocks::{CountedMarks, MarkBlock, MarkRowId, PassCycles, PhaseRanges, is_ramp};
pub use model::*;
pub use open::convert_profile;
pub use open_file::REPORT_FILE;
pub use profile_readers::{PROFILE_READERS, ProfileReader};
pub use reader::*;
pub use report_location::holds_report;
pub use slice::SliceSelection;
pub use writer::{Recorder, ReportMeta, ReportWriter, StepLayout};
