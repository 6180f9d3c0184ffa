//! Operations of popnn: pooling, recurrent layers, non-linearities, norms, softmax and losses.

mod arg_extrema;
mod nonlinearity;
pub(crate) mod norm;
pub mod pool;
pub(crate) mod rnn;
mod softmax;

pub(crate) use arg_extrema::ExtremaRows;
pub(crate) use nonlinearity::NonLinearityType;
pub(crate) use softmax::{bring_rows, push_nll_loss, softmax};
