//! Options that affect the planner, and that identify plans in the cache.

use crate::poplin::matmul::MatMulSerializationMode;
use crate::shape::DType;
use crate::spec_keys::{Proportion, SpecKeyType, spec_table, spec_words};

spec_words! {
    /// Criterion for choosing one of several plans of a matmul or convolution.
    pub enum PlanSelection {
        /// Cycles that poplibs' planner estimates.
        Estimate = "estimate",
        /// Cycles that are simulated, of the ten plans with the best estimate.
        Simulated = "simulated",
    }
}

spec_table! {
    /// Options of Poplar's libraries for all operations of a program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PoplibsOptions {
        /// Share of tile memory for temporaries of one matmul or convolution, on all IPUs or on
        /// each; "auto" simulates ten values up to the default and uses the fastest that fits
        available_memory_proportion: Proportion = Proportion::new(Proportion::POPLIBS_DEFAULT) => {
            shows_in: "Operations: plans; Memory: temporaries",
            poplar: "availableMemoryProportion",
            poptorch: "poptorch.Options.setAvailableMemoryProportion",
            applications: "matmul_proportion",
            slider: ("Memory proportion", 1.0),
        }
        /// Cycles by which plans of matmuls and convolutions are chosen: those estimated by
        /// poplibs' planner, or the simulated cycles of the ten plans with the best estimates
        plan_selection: PlanSelection = PlanSelection::Estimate => {
            shows_in: "Operations: plans and cycles",
        }
        /// Serialise linear layers: compute equal parts along one dimension one after another
        serialize_matmul: MatMulSerializationMode = MatMulSerializationMode::None => {
            shows_in: "Program tree: Repeat around the layer; Memory: smaller temporaries",
            poptorch: "poptorch.SerializedMatMul mode",
            popart: "MatMulSerializationMode",
        }
        /// Number of parts of a serialised linear layer
        serialize_matmul_factor: u64 = 2, in SpecKeyType::Integer(2, 1024) => {
            shows_in: "Program tree: count of the Repeat",
            poptorch: "poptorch.SerializedMatMul factor",
        }
        /// Start each convolution at a tile that depends on its shape instead of at tile 0, which
        /// distributes weights more evenly
        conv_dithering: bool = false => {
            shows_in: "Memory: the fullest tile; Tile mapping",
            poplar: "enableConvDithering",
        }
        /// Load weights into the matrix engine 128 bits at a time instead of 64, which takes half
        /// the cycles; copied weights are placed in interleaved memory
        use_128bit_conv_unit_load: bool = false => {
            shows_in: "Operations: plans and cycles; Memory: interleaved memory",
            poplar: "use128BitConvUnitLoad",
        }
        /// Element type of partial sums in matmuls and convolutions
        partials_type: DType = DType::Float => {
            shows_in: "Operations: plans; Memory: partials",
            poplar: "partialsType",
        }
        /// Use stochastic rounding for float16, with a seed on every tile
        stochastic_rounding: bool = false => {
            shows_in: "Execution trace: `randomSeed` at the start; Memory: `randomSeed`",
            popart: "enableStochasticRounding",
        }
    }
}

/// Planning options that annotations of a model set for one operation. They override those of the
/// program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationPlanning {
    /// Share of a tile's memory that its temporaries may occupy.
    pub available_memory_proportion: Option<Proportion>,
    /// Element type of its partial sums.
    pub partials_type: Option<DType>,
    /// True if a convolution begins at a tile that depends on its shape.
    pub conv_dithering: Option<bool>,
    /// Dimension along which a linear layer is cut, and the number of parts.
    pub serialization: Option<(MatMulSerializationMode, u64)>,
}

impl OperationPlanning {
    /// Returns the options of this operation in a program with the given options.
    pub(crate) fn over(self, program: &PoplibsOptions) -> PoplibsOptions {
        let (mode, parts) = self
            .serialization
            .unwrap_or((program.serialize_matmul, program.serialize_matmul_factor));
        PoplibsOptions {
            available_memory_proportion: self
                .available_memory_proportion
                .unwrap_or(program.available_memory_proportion),
            partials_type: self.partials_type.unwrap_or(program.partials_type),
            conv_dithering: self.conv_dithering.unwrap_or(program.conv_dithering),
            serialize_matmul: mode,
            serialize_matmul_factor: parts,
            ..*program
        }
    }
}
