//! Sync points, at which lanes wait for each other. The critical path and slack are derived from
//! them.
//!
//! # The idea
//!
//! Steps of a lane follow each other; lanes depend on each other only at a few *sync points*. At a
//! join, several lanes continue when the last of them has arrived. At a hand-over, tiles of an IPU
//! continue when other tiles of it are done. The points are stored in the order of the program,
//! each with the sums over the steps of the awaited lane since its previous point:
//!
//! ```text
//!  IPU 0  |---- a ----|sync      |-- d --|sync|--- g
//!  IPU 1  |------ b ------|sync  |----- e ----|sync|-      from the end: g, e, b; hops at
//!                         ^ release           ^            both syncs
//! ```
//!
//! A walk backwards over the points, without reading steps, gives the critical path. With a slack
//! for each lane, it also gives the slack of every step.
//!
//! # Cost
//!
//! Writing: a sum per step, some bytes per point and lane, and at the end one pass over the points,
//! from the last to the first. For every block, the file stores the state of all lanes (since
//! version 2.10). The content of a block is recomputed from that state when it is needed.

mod critical_path;
mod overlap;
mod path_check;
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
pub(super) use path_check::PathCheck;
pub(super) use path_file::{PathIndexReader, unpack as unpack_path};
pub(super) use path_index::{BlockDetails, PathIndex, PathIndexBuilder};
pub use path_index::{LaneSlack, PathLead};
pub(super) use point::{SyncPoint, decode, unpack};
pub use program_cycles::PathProgram;
pub(crate) use recorder::SyncPrograms;
pub(super) use recorder::{LaneIndex, SyncPointRecorder};
pub(super) use replay::make;
pub use waits::LaneWait;
pub(super) use walk::LanePlaces;
pub use walk::PathHop;

#[cfg(test)]
mod tests;
