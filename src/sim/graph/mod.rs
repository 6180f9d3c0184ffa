//! The typed graph of a model: tensors, operations, and the training graph derived from them.

mod dtype;

pub use dtype::DType;
