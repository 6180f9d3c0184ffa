//! Tables of a report as Arrow: the executed steps, the records behind the views, and the tables
//! that the views show. The command line writes them to files, and the Python package passes them
//! to libraries that read Arrow.
//!
//! | file | content |
//! |---|---|
//! | `table` | [`read_table`]: any table by name, as batches |
//! | `records` | rows that are built while they are read, executed steps batch by batch |
//! | `views` | tables that are built at once, by the contents of their cells |
//! | `column` | columns, by their declarations |
//! | `metadata` | units of columns, and the report of a table |
//! | `files` | Parquet and Arrow files, written as batches come (feature `files`) |
//! | `answer` | answers to questions in SQL as Parquet files (feature `files`) |

// A figure that is truncated silently is wrong; tests count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

#[cfg(feature = "files")]
mod answer;
mod column;
#[cfg(feature = "files")]
mod files;
mod metadata;
mod records;
mod table;
mod text_dictionary;
mod views;

#[cfg(feature = "files")]
pub use answer::{AnswerColumnKinds, AnswerFileError, write_answer};
#[cfg(feature = "files")]
pub use files::{ArrowFileError, ArrowFileFormat, write_batches};
pub use records::SelectedRecords;
pub use table::{ArrowTable, BatchIterator, TableError, read_groups, read_table};
pub use tilescope_analysis::grouping::GroupKey;
pub use tilescope_analysis::records::{RowFilter, RowSelection};
pub use tilescope_analysis::tables::{TableListing, listed as tables};
pub use views::batch as view_batch;
