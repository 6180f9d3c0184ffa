//! Writes the trace of a report in formats of other tools while it is decoded: in memory is a piece
//! of one lane, for a run of any length.
//!
//! | file | content |
//! |---|---|
//! | `timeline` | the walk over all lanes, which calls a writer |
//! | `lane_marks` | runs, iterations, stages, … as slices that nest over the steps of a lane |
//! | `data_flows` | the slices at both ends of an arrow |
//! | `live_memory` | bytes live on an IPU while a program runs |
//! | `clock` | cycles to nanoseconds |
//! | `perfetto`, `chrome_trace` | the writers |

// A figure that is truncated silently is wrong; tests count small things.
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
