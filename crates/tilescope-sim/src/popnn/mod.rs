//! Operations of popnn: poolings, recurrent layers, non-linearities.

mod nonlinearity;
pub mod pool;
pub(crate) mod recurrent;

pub(crate) use nonlinearity::NonLinearityType;
