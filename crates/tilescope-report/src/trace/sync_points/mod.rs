//! Where lanes wait for each other: what a critical path and slack follow from.
//!
//! # The idea
//!
//! Steps of a lane follow each other; between lanes, only few places say who waits for whom. Those
//! are the *sync points*: joins, at which several lanes go on when the last of them has come, and
//! hand-overs, at which tiles of an IPU go on when others of it are done. They are kept, in the order
//! of the program, with what the lane that was waited for did since its own last point, summed up:
//!
//! ```text
//!  IPU 0  |---- a ----|sync      |-- d --|sync|--- g
//!  IPU 1  |------ b ------|sync  |----- e ----|sync|-      from the end: g, e, b; hops at
//!                         ^ release           ^            both syncs
//! ```
//!
//! Walking back over the points, without looking at steps, gives the critical path; doing so with
//! a slack for each lane gives the slack of every step.
//!
//! # Cost
//!
//! Writing: a sum per step, some bytes per point and lane, and at the end one pass over the points,
//! from the last to the first. Of it every block leaves the state of all lanes, which the file has
//! since version 2.10; what lies in a block is made again of that when it is looked at.

mod critical_path;
mod overlap;
mod path_file;
mod path_index;
mod point;
mod program_cycles;
mod recorder;
mod replay;
mod waits;
mod walk;

pub use critical_path::{BesideProgram, CriticalPath, PathSpan, PathStretch};
pub(super) use overlap::BesideCompute;
pub(super) use path_file::{PathIndexReader, unpack as unpack_path};
pub(super) use path_index::{BlockDetails, PathIndex, PathIndexBuilder};
pub use path_index::{LaneSlack, PathLead};
pub(super) use point::{SyncPoint, decode, unpack};
pub use program_cycles::PathProgram;
pub(crate) use recorder::SyncPrograms;
pub(super) use recorder::{LaneIndex, SyncPointRecorder};
pub(super) use replay::{compare, make};
pub use waits::LaneWait;
pub(super) use walk::LanePlaces;
pub use walk::PathHop;

#[cfg(test)]
mod tests;
