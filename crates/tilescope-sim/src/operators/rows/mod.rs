//! Operators on some rows of a field, for IPUs that share it.

mod halo;
mod joined;
mod window;

pub(crate) use halo::{GatherRowsOp, HaloRowsOp};
pub(crate) use joined::JoinedRowsOp;
pub use window::{FieldEdges, RowWindow};
