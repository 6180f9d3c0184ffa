//! The contract between those who make reports and those who read them: what a report says, and
//! the `profile.pop` file it is kept in.

mod builder;
mod db;
mod error;
pub mod limits;
mod model;
mod open;
mod reader;
mod rows;
pub mod schema;
pub mod trace;
mod writer;

pub use builder::ReportBuilder;
pub use error::ReportError;
pub use model::*;
pub use open::REPORT_FILE;
pub use reader::*;
pub use writer::{ReportMeta, ReportWriter};
