//! The trace of a report as other tools read it, written as it is decoded: in memory is a piece of
//! one lane, however long the run.
//!
//! | file | what is in it |
//! |---|---|
//! | `timeline` | the walk over all lanes, which tells a writer what to draw |
//! | `lane_marks` | runs, iterations, stages, … as slices that nest over the steps of a lane |
//! | `data_flows` | which slice an arrow leads from and to |
//! | `live_memory` | bytes live on an IPU while a program runs |
//! | `clock` | cycles to nanoseconds |
//! | `perfetto`, `chrome_trace` | the writers |

// A figure that is cut off without a word is a wrong figure; tests count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod chrome_trace;
mod clock;
mod data_flows;
mod lane_marks;
mod live_memory;
mod perfetto;
mod timeline;

pub use clock::NanosecondClock;
pub use timeline::{TraceExportError, TraceFormat, TraceSelection, write_trace};
