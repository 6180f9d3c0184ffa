//! The model of a spec: the table `[model]`.

use super::ModelDef;
use super::operation_precision::OperationPrecisions;
use crate::onnx::{ImportOptions, ImportedFile};
use crate::operators::Optimizer;
use crate::shape::DType;
use crate::spec_keys::{COUNT, SpecField, SpecKeyType, SpecValue, spec_table, spec_words};
use std::collections::BTreeMap;

spec_words! {
    /// Element types of a model.
    pub enum ModelPrecision {
        /// Everything in float32.
        Float32 = "float32",
        /// Weights in float32, all computation in float16.
        Mixed = "mixed",
        /// Everything in float16.
        Float16 = "float16",
        /// The types of the file.
        AsIs = "as_is",
    }
}

impl ModelPrecision {
    /// The type of activations and of all computation.
    fn computed(self) -> DType {
        match self {
            Self::Float32 | Self::AsIs => DType::Float,
            Self::Mixed | Self::Float16 => DType::Half,
        }
    }

    /// The type of weights.
    fn weights(self) -> DType {
        if self == Self::Float16 { DType::Half } else { DType::Float }
    }
}

impl SpecField for &'static ModelDef {
    const FORM: SpecKeyType = SpecKeyType::ModelName;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(name) => super::find(name),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.name.to_string())
    }
}

spec_table! {
    /// The model and how it is used.
    #[derive(Clone, Debug)]
    pub struct ModelSpec {
        /// One of the built-in models
        definition as "name": &'static ModelDef = &super::MODELS[0], written "" => {
            shows_in: "Summary; Program tree",
        }
        /// Samples of one forward pass (the micro-batch)
        batch_size: u64 = 1, in COUNT => {
            shows_in: "Summary: samples per host call; Memory",
            poptorch: "poptorch.DataLoader batch_size",
            popart: "micro-batch size",
        }
        /// Average number of sequences packed into one sample; published throughputs count
        /// sequences
        packing_factor: f64 = 1.0, in SpecKeyType::RealFrom(1.0, 1024.0), written "1" => {
            shows_in: "Summary: a note with the throughput in sequences",
            applications: "packed BERT dataset",
        }
        /// Run a backward pass and a weight update after the forward pass
        training: bool = true => {
            shows_in: "Execution trace: no backward passes, stashes or updates without it",
            poptorch: "poptorch.trainingModel / inferenceModel",
        }
        /// Element type of weights and activations. mixed stores weights in float32 and computes in
        /// float16. For an ONNX file, as_is and float32 keep the types of the file; the others
        /// replace its float32 and remove casts to it
        number_formats as "precision": ModelPrecision = ModelPrecision::Float32 => {
            shows_in: "Memory; Operations: cycles of matmuls",
            poptorch: "model.half(); autocast; Trainer(precision=16)",
        }
        /// Optimiser for training; sgd_momentum_combined stores momentum and accumulated gradient
        /// in one tensor
        optimizer: Optimizer = Optimizer::Sgd => {
            shows_in: "Memory: state variables; Execution trace: length of the update",
            poptorch: "poptorch.optim.SGD(use_combined_accum) / AdamW / LAMB",
        }
        /// Loss scaling factor, which prevents float16 gradients from underflowing
        loss_scaling: f64 = 1.0, in SpecKeyType::RealAbove(0.0, 16_777_216.0), written "1" => {
            shows_in: "Execution trace: `…/scaling` in the backward pass",
            poptorch: "poptorch.optim loss_scaling",
        }
        tables {
            /// The import of a file as the model.
            import: ImportOptions = "" {}
            /// The precisions of kinds of operations that have their own.
            precision_of: OperationPrecisions = "precision_of" {}
        }
        derived {
            /// Element type of activations and of all computation.
            precision: DType = number_formats.computed(),
            /// Element type of weights.
            parameter_type: DType = number_formats.weights(),
            /// The model's own sizes, by the last part of their key.
            sizes: BTreeMap<&'static str, u64> = BTreeMap::new(),
            /// The file of an imported model, with the dimensions that the spec gives.
            file: Option<ImportedFile> = None,
        }
    }
}

impl ModelSpec {
    /// Returns one of the model's own sizes.
    pub(crate) fn size(&self, name: &str) -> u64 {
        *self
            .sizes
            .get(name)
            .unwrap_or_else(|| panic!("model {} lists no size {name}", self.definition.name))
    }
}
