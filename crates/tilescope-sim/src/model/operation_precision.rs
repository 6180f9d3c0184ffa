//! `[model.precision_of]`: element types of kinds of operations that differ from the model's.

use crate::operators::Operator;
use crate::shape::DType;
use crate::spec_keys::{spec_table, spec_words};

spec_words! {
    /// The element type that a kind of operation computes in.
    pub enum OperationPrecision {
        /// The type of the model.
        Model = "model",
        Float32 = "float32",
        Float16 = "float16",
    }
}

impl OperationPrecision {
    /// The element type in a model whose type is `model`.
    fn in_model_of(self, model: DType) -> DType {
        match self {
            Self::Model => model,
            Self::Float32 => DType::Float,
            Self::Float16 => DType::Half,
        }
    }
}

/// A kind of operation that has its own precision in published programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationKind {
    Norm,
    Softmax,
    ActivationFunction,
    Loss,
}

impl OperationKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Norm, Self::Softmax, Self::ActivationFunction, Self::Loss];

    /// The kind of an operator, if it has one.
    pub(crate) fn of(operator: &dyn Operator) -> Option<Self> {
        if operator.is_loss() {
            return Some(Self::Loss);
        }
        match operator.kind() {
            "layer_norm" | "batch_norm" | "group_norm" => Some(Self::Norm),
            "softmax" | "log_softmax" => Some(Self::Softmax),
            "relu" | "gelu" | "tanh" | "sigmoid" | "swish" => Some(Self::ActivationFunction),
            _ => None,
        }
    }

    /// The spec key of the precision of this kind.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Norm => "model.precision_of.norm",
            Self::Softmax => "model.precision_of.softmax",
            Self::ActivationFunction => "model.precision_of.activation_function",
            Self::Loss => "model.precision_of.loss",
        }
    }
}

spec_table! {
    /// Element types of kinds of operations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OperationPrecisions {
        /// Element type of norms, with their scale and shift; casts are inserted around them if it
        /// differs from the model's
        norm: OperationPrecision = OperationPrecision::Model => {
            shows_in: "Operations: `…/cast` around norms; Memory",
            poptorch: "norm.float() in a model.half()",
        }
        /// Element type of softmax
        softmax: OperationPrecision = OperationPrecision::Model => {
            shows_in: "Operations: `…/cast` around softmax; Memory",
            poptorch: "softmax(x.float()).half()",
        }
        /// Element type of activation functions: GELU, ReLU, tanh, sigmoid and SiLU
        activation_function: OperationPrecision = OperationPrecision::Model => {
            shows_in: "Operations: `…/cast` around activation functions; Memory",
            poptorch: "gelu(x.float()).half()",
        }
        /// Element type of the loss
        loss: OperationPrecision = OperationPrecision::Model => {
            shows_in: "Operations: `…/cast` before the loss; Memory",
            poptorch: "loss(x.float(), labels)",
        }
    }
}

impl OperationPrecisions {
    /// The element type that a kind of operation computes in, in a model whose type is `model`.
    pub(crate) fn of(&self, kind: OperationKind, model: DType) -> DType {
        let precision = match kind {
            OperationKind::Norm => self.norm,
            OperationKind::Softmax => self.softmax,
            OperationKind::ActivationFunction => self.activation_function,
            OperationKind::Loss => self.loss,
        };
        precision.in_model_of(model)
    }
}
