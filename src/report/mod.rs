//! The contract between those who make reports and those who read them: what a report says, and
//! the `profile.pop` file it is kept in.

mod model;

pub use model::*;
