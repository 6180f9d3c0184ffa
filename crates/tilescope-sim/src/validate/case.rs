//! A row as a graph of operators.

use super::config::{RowConfig, RowProblem};
use crate::error_bands::{OperationExtent, group_of_kind};
use crate::graph::{GraphBuilder, GraphNodeId, ModelGraph};
use crate::graph_lowering::op_benchmark::OpBenchmarkProgram;
use crate::operators::LoweringContext;
use crate::operators::{Operator, Optimizer, UpdateForm};
use crate::poplin::PlanCache;
use crate::poplin::planner::PoplibsOptions;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use crate::specification::Proportion;
use crate::targets::Chip;
use crate::targets::IpuTarget;
use std::collections::BTreeSet;

/// The program of a tool for a row, before it is lowered.
pub(crate) struct OpBenchmarkCase {
    machine: IpuTarget,
    training: bool,
    planning: PoplibsOptions,
    builder: GraphBuilder,
    /// Tensors that the tool places itself.
    placed: Vec<(TensorId, TensorLayout)>,
    layout_only: BTreeSet<GraphNodeId>,
    compiles_code: bool,
}

/// The largest number of elements of a tensor. Products of a few such numbers stay far below
/// overflow.
const MAX_TENSOR_ELEMENTS: u64 = 1 << 40;

impl OpBenchmarkCase {
    /// Makes an empty case. Operations are planned as for a model that is trained, or is not.
    ///
    /// # Errors
    /// Returns an error for tiles that the chip does not have, and for invalid bounds.
    pub(crate) fn new(
        config: &RowConfig,
        chip: &'static Chip,
        training: bool,
    ) -> Result<Self, RowProblem> {
        let tiles = config.number("tiles-per-ipu", u64::from(chip.tiles))?;
        let tiles = u32::try_from(tiles).ok().filter(|tiles| (1..=chip.tiles).contains(tiles));
        let Some(tiles) = tiles else {
            return Err(RowProblem::Malformed(format!(
                "tiles-per-ipu: {} has {} tiles",
                chip.name, chip.tiles
            )));
        };
        let defaults = PoplibsOptions::default();
        let share = defaults.available_memory_proportion.get();
        let share = config.real("available-memory-proportion", share)?;
        if !(0.0..=1.0).contains(&share) {
            let problem = format!("available-memory-proportion: {share} is not a share of memory");
            return Err(RowProblem::Malformed(problem));
        }
        let planning = PoplibsOptions {
            available_memory_proportion: Proportion::new(share),
            partials_type: config.dtype("partials-type", defaults.partials_type)?,
            ..defaults
        };
        let mut builder = GraphBuilder::new();
        builder.block("row");
        Ok(Self {
            machine: IpuTarget { tiles, ..IpuTarget::all_tiles_of(*chip) },
            training,
            planning,
            builder,
            placed: Vec::new(),
            layout_only: BTreeSet::new(),
            compiles_code: false,
        })
    }

    /// Marks the case as one of a tool that compiles code.
    pub(crate) fn with_code(self) -> Self {
        Self { compiles_code: true, ..self }
    }

    /// The graph so far.
    pub(crate) fn graph(&self) -> &ModelGraph {
        self.builder.graph()
    }

    /// The number of dimensions of a tensor.
    pub(crate) fn rank(&self, tensor: TensorId) -> usize {
        self.graph().tensor(tensor).ty.shape.len()
    }

    pub(crate) fn tiles(&self) -> u32 {
        self.machine.tiles
    }

    /// Adds a tensor that the host reads or writes.
    ///
    /// # Errors
    /// Returns an error for a tensor without elements, or with too many.
    pub(crate) fn tensor(
        &mut self,
        name: &str,
        role: TensorRole,
        shape: &[u64],
        dtype: DType,
    ) -> Result<TensorId, RowProblem> {
        let sizes = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
        match sizes {
            Some(0) => Err(RowProblem::refused(format!("{name} has no elements"))),
            Some(1..=MAX_TENSOR_ELEMENTS) => {
                Ok(self.builder.tensor(name, TensorInfo::new(shape, dtype), role))
            }
            _ => Err(RowProblem::refused(format!("{name} is too large"))),
        }
    }

    /// Adds a tensor with the type of another.
    pub(crate) fn like(&mut self, name: &str, role: TensorRole, other: TensorId) -> TensorId {
        let ty = self.graph().tensor(other).ty.clone();
        self.builder.tensor(name, ty, role)
    }

    pub(crate) fn place(&mut self, tensor: TensorId, layout: TensorLayout) {
        self.placed.push((tensor, layout));
    }

    /// Adds an operation. An operation that does not run only determines the layouts of tensors.
    ///
    /// # Errors
    /// Returns an error for operands that do not fit together.
    pub(crate) fn apply_all(
        &mut self,
        runs: bool,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, RowProblem> {
        if !runs {
            self.layout_only.insert(GraphNodeId(self.graph().nodes.len()));
        }
        self.builder.apply_all(name, operator, inputs).map_err(RowProblem::refused)
    }

    /// Adds an operation with one result.
    ///
    /// # Errors
    /// Returns the errors of [`OpBenchmarkCase::apply_all`].
    pub(crate) fn apply(
        &mut self,
        runs: bool,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, RowProblem> {
        self.apply_all(runs, name, operator, inputs).map(|outputs| outputs[0])
    }

    /// Makes the host read a result.
    pub(crate) fn read(&mut self, result: TensorId) {
        self.builder.output(result);
    }

    /// Adds a gradient to its parameter.
    ///
    /// # Errors
    /// Returns the errors of [`OpBenchmarkCase::apply_all`].
    pub(crate) fn update(
        &mut self,
        parameter: TensorId,
        gradient: TensorId,
    ) -> Result<(), RowProblem> {
        let operands = [parameter, gradient];
        self.apply_all(
            true,
            "update",
            Optimizer::Sgd.update(UpdateForm::Own, false, false),
            &operands,
        )
        .map(|_| ())
    }

    /// The sizes of the operations of a measured group that run.
    pub(crate) fn extents(&self, group: &str) -> Vec<OperationExtent> {
        let graph = self.graph();
        let run = graph.nodes.iter().enumerate().filter(|(index, node)| {
            !self.layout_only.contains(&GraphNodeId(*index))
                && group_of_kind(node.operator.kind()) == Some(group)
        });
        run.map(|(_, node)| graph.node_extent(node)).collect()
    }

    /// Lowers the program that is run.
    ///
    /// # Errors
    /// Returns an error for an operation that cannot be lowered.
    pub(crate) fn program(self) -> Result<OpBenchmarkProgram, RowProblem> {
        let graph = self.builder.finish();
        let plans = PlanCache::new();
        let mut lowering = LoweringContext::new(
            &graph.tensors,
            self.machine,
            self.training,
            &self.planning,
            &plans,
        );
        for (tensor, layout) in self.placed {
            lowering.set_layout(tensor, layout);
        }
        OpBenchmarkProgram::new(&graph, lowering, &self.layout_only, self.compiles_code)
            .map_err(RowProblem::refused)
    }
}
