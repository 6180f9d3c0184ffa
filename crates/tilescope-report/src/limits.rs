//! Bounds on the values of a report.
//!
//! They are far above anything real and low enough that sums over a whole report fit 64 bits. The
//! writer refuses larger values. The reader, whose file may be hostile, treats them as missing.

use crate::units::{Bytes, Cycles};

/// Bytes of one thing on one tile; a tile has less than 1 MB, overflowed variables a few GB.
pub(crate) const MAX_TILE_BYTES: Bytes = Bytes(1 << 36);
/// Cycles of a compute set on one tile: at 1.85 GHz, ten minutes.
pub(crate) const MAX_TILE_CYCLES: Cycles = Cycles(1 << 40);
/// Vertices of one kind on one tile.
pub(crate) const MAX_TILE_VERTICES: u64 = 1 << 36;
/// Bytes that a step moves on one IPU.
pub(crate) const MAX_STEP_BYTES: Bytes = Bytes(1 << 44);
/// Cycles since the start of the trace: at 1.85 GHz, 21 hours. Times a 16-bit balance it fits 64 bits.
pub(crate) const MAX_CYCLES: Cycles = Cycles(1 << 47);
/// Vertices of a graph, repeats, floating point operations and the like.
pub(crate) const MAX_COUNT: u64 = 1 << 56;
/// Executed steps of one report.
pub(crate) const MAX_STEPS: u64 = 1 << 40;
/// Tiles of one replica; [`MAX_IPUS`] of Mk2 have 1,507,328.
pub const MAX_TILES: u32 = 1 << 21;
/// Runs of tiles of all things of a kind that share patterns: a hundred times those of BERT-Large.
pub(crate) const MAX_PATTERN_RUNS: usize = 1 << 27;
/// A constant of a machine: its clock in hertz, bytes per second of a link, watts, a price.
pub(crate) const MAX_MACHINE_AMOUNT: f64 = 1e18;
/// IPUs of one replica.
pub(crate) const MAX_IPUS: u32 = 1024;
/// Lanes of work side by side on one IPU.
pub(crate) const MAX_SUB_LANES: u8 = 8;
/// Replicas of a program: of one IPU each they fill the largest pod four times.
pub(crate) const MAX_REPLICAS: u32 = 1024;
/// IPUs of all replicas up to which links are analysed: all of the largest pod, four times.
pub(crate) const MAX_LINKED_IPUS: u64 = 1024;
/// Rings in which replicas exchange data; a program has one or two for each group of replicas.
pub(crate) const MAX_REPLICA_RINGS: u32 = 16;
/// Bytes of one text or blob in a file.
pub(crate) const MAX_VALUE_BYTES: i32 = 32 << 20;
/// Bytes of one name; longer ones are cut.
pub(crate) const MAX_NAME_BYTES: usize = 64 << 10;
/// Bytes of all rows of one list that the reader holds in memory at once.
pub(crate) const MAX_LIST_BYTES: usize = 256 << 20;
/// Bytes of texts among them.
pub(crate) const MAX_LIST_TEXT_BYTES: usize = 64 << 20;
/// Bytes of names in one list that rows share by id while each item holds its own copy.
pub(crate) const MAX_SHARED_NAME_BYTES: usize = 64 << 20;
/// Bytes of such a name after the limit on all of them is reached.
pub(crate) const SHORT_NAME_BYTES: usize = 128;
