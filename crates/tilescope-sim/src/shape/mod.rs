//! Tensor properties that every layer of the simulator uses: element types, shapes, roles.

mod dtype;
mod math;
mod tensor;

pub use dtype::DType;
pub(crate) use math::gcd;
pub(crate) use tensor::ShapeDisplay;
pub use tensor::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
