//! The IPU simulator: model + target + options in, report out.

pub mod targets;
