//! Tables of a report as Arrow: the executed steps, the records behind the views, and the tables
//! that the views show. The command line writes them to files, the Python package hands them to
//! whatever reads Arrow.
//!
//! | file | what is in it |
//! |---|---|
//! | `table` | [`read_table`]: any table by name, as batches |
//! | `steps`, `step_columns` | executed steps, decoded batch by batch |
//! | `records` | the other records of a report, one row each |
//! | `views` | the tables of views, by what their cells hold |
//! | `row_selection` | which rows are asked for |
//! | `files` | Parquet and Arrow files, written as batches come (feature `files`) |
//! | `answer` | answers to questions in SQL as Parquet files (feature `files`) |

// A figure that is cut off without a word is a wrong figure; tests count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

#[cfg(feature = "files")]
mod answer;
#[cfg(feature = "files")]
mod files;
mod records;
mod row_selection;
mod step_columns;
mod steps;
mod table;
mod text_dictionary;
mod views;

#[cfg(feature = "files")]
pub use answer::{AnswerColumnKinds, AnswerFileError, write_answer};
#[cfg(feature = "files")]
pub use files::{ArrowFileError, ArrowFileFormat, write_batches};
pub use records::RecordTable;
pub use row_selection::{RowFilter, RowSelection};
pub use steps::StepTable;
pub use table::{ArrowTable, BatchIterator, TableError, TableListing, read_table, tables};
pub use views::batch as view_batch;
