//! Values that no node makes: inputs, weights and constants of a file.

use super::importer::Importer;
use crate::graph::GraphError;
use crate::operators::CastOp;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use tilescope_onnx::{ElementKind, OnnxValue, ValueId, ValueSource};

impl Importer<'_> {
    /// The type on the device for values of an element type of the file. The device has no types of
    /// 64 bits: PopART and PopTorch narrow int64 and double too.
    pub(super) fn dtype(&self, element: ElementKind) -> DType {
        match element {
            ElementKind::Float16 | ElementKind::BFloat16 => DType::Half,
            ElementKind::Float8 | ElementKind::Float4 => DType::Quarter,
            ElementKind::Uint8 | ElementKind::Uint4 | ElementKind::Uint2 => DType::UInt8,
            ElementKind::Int8 | ElementKind::Int4 | ElementKind::Int2 => DType::Int8,
            ElementKind::Bool => DType::Bool,
            kind if kind.is_float() => self.settings.types.map_or(DType::Float, |(of, _)| of),
            _ => DType::Int,
        }
    }

    /// The type that a weight is kept in.
    fn weight_type(&self, element: ElementKind) -> DType {
        let of_values = self.dtype(element);
        match self.settings.types {
            Some((_, weights)) if element == ElementKind::Float32 => weights,
            _ => of_values,
        }
    }

    /// The tensor of a value. A value that no node makes gets its tensor when it is first read.
    pub(super) fn tensor(&mut self, id: ValueId) -> Result<TensorId, GraphError> {
        let dims = self.value(id).dims.clone();
        self.tensor_stored_as(id, &dims)
    }

    /// The tensor of a value, with a weight kept in another shape. Its elements are reordered when
    /// it is written to the device, like those of a transposed weight.
    pub(super) fn tensor_stored_as(
        &mut self,
        id: ValueId,
        dims: &[u64],
    ) -> Result<TensorId, GraphError> {
        if let Some(known) = self.tensors[id.index()] {
            return Ok(known);
        }
        let value = self.value(id);
        let role = self.role(value);
        let wanted = self.dtype(value.element);
        let kept =
            if role == TensorRole::Parameter { self.weight_type(value.element) } else { wanted };
        let name = self.unique(&value.name);
        let stored = self.graph.tensor(&name, TensorInfo::new(dims, kept), role);
        let tensor = if kept == wanted {
            stored
        } else {
            let name = self.unique(&format!("{name}/cast"));
            // Readers outside the repeat that is being built may need it as well.
            let repeat = self.graph.set_repeat(None);
            let made = self.graph.apply(&name, CastOp { to: wanted }, &[stored]);
            self.graph.set_repeat(repeat);
            made?
        };
        self.tensors[id.index()] = Some(tensor);
        Ok(tensor)
    }

    /// The role of a value that no node makes.
    pub(super) fn role(&self, value: &OnnxValue) -> TensorRole {
        match value.source {
            ValueSource::Input => TensorRole::Input,
            ValueSource::Initializer if self.is_trained(value) => TensorRole::Parameter,
            _ => TensorRole::Resident,
        }
    }

    /// True if a weight is trained: floats with at least one dimension, unless they are frozen.
    /// Exporters write literals of the model as scalars, but never into another file.
    fn is_trained(&self, value: &OnnxValue) -> bool {
        let frozen = self.frozen.iter().any(|pattern| pattern.is_match(&value.name));
        let is_weight = !value.dims.is_empty() || value.is_external;
        value.element.is_float() && is_weight && !frozen
    }
}
