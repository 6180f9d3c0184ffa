//! A row as a graph of operators.

use super::config::{Config, Problem};
use crate::graph::{DType, Graph, GraphBuilder, NodeId, Role, TensorId, TensorType};
use crate::lower::Lowering;
use crate::lower::alone::Program;
use crate::lower::layout::Layout;
use crate::ops::{Operator, Optimizer};
use crate::planner::{Machine, PlanCache, PoplibsOptions};
use crate::spec::Proportion;
use crate::targets::Chip;
use std::collections::BTreeSet;

/// What a tool runs for a row, before it is lowered.
pub(crate) struct Case {
    machine: Machine,
    training: bool,
    planning: PoplibsOptions,
    builder: GraphBuilder,
    /// Tensors that the tool places itself.
    placed: Vec<(TensorId, Layout)>,
    idle: BTreeSet<NodeId>,
    code: bool,
}

/// Most elements of one tensor: products of a few stay far below overflow.
const MOST_ELEMENTS: u64 = 1 << 40;

impl Case {
    /// Nothing yet. Operations are planned as those of a model that is trained, or is not.
    ///
    /// # Errors
    /// Tiles that the chip does not have, bounds that make no sense.
    pub(crate) fn new(
        config: &Config,
        chip: &'static Chip,
        training: bool,
    ) -> Result<Self, Problem> {
        let tiles = config.number("tiles-per-ipu", u64::from(chip.tiles))?;
        if tiles == 0 || tiles > u64::from(chip.tiles) {
            return Err(Problem::Broken(format!(
                "tiles-per-ipu: {} has {} tiles",
                chip.name, chip.tiles
            )));
        }
        let defaults = PoplibsOptions::default();
        let share = defaults.available_memory_proportion.get();
        let share = config.real("available-memory-proportion", share)?;
        if !(0.0..=1.0).contains(&share) {
            let problem = format!("available-memory-proportion: {share} is no share of memory");
            return Err(Problem::Broken(problem));
        }
        let planning = PoplibsOptions {
            available_memory_proportion: Proportion::new(share),
            partials_type: config.dtype("partials-type", defaults.partials_type)?,
            ..defaults
        };
        let mut builder = GraphBuilder::new();
        builder.block("row");
        Ok(Self {
            machine: Machine { tiles, ..Machine::whole(*chip) },
            training,
            planning,
            builder,
            placed: Vec::new(),
            idle: BTreeSet::new(),
            code: false,
        })
    }

    /// The same, by a tool that compiles code.
    pub(crate) fn with_code(self) -> Self {
        Self { code: true, ..self }
    }

    /// The graph so far.
    pub(crate) fn graph(&self) -> &Graph {
        self.builder.graph()
    }

    /// Dimensions of a tensor.
    pub(crate) fn rank(&self, tensor: TensorId) -> usize {
        self.graph().tensor(tensor).ty.shape.len()
    }

    /// Tiles that compute.
    pub(crate) fn tiles(&self) -> u32 {
        self.machine.tiles as u32
    }

    /// A tensor that the host reads or writes.
    ///
    /// # Errors
    /// No elements, or too many.
    pub(crate) fn tensor(
        &mut self,
        name: &str,
        role: Role,
        shape: &[u64],
        dtype: DType,
    ) -> Result<TensorId, Problem> {
        let sizes = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
        match sizes {
            Some(0) => Err(Problem::refused(format!("{name} has no elements"))),
            Some(1..=MOST_ELEMENTS) => {
                Ok(self.builder.tensor(name, TensorType::new(shape, dtype), role))
            }
            _ => Err(Problem::refused(format!("{name} is too large"))),
        }
    }

    /// A tensor like another.
    pub(crate) fn like(&mut self, name: &str, role: Role, other: TensorId) -> TensorId {
        let ty = self.graph().tensor(other).ty.clone();
        self.builder.tensor(name, ty, role)
    }

    /// Places a tensor.
    pub(crate) fn place(&mut self, tensor: TensorId, layout: Layout) {
        self.placed.push((tensor, layout));
    }

    /// An operation; one that does not run only says how tensors lie.
    ///
    /// # Errors
    /// Operands that do not fit together.
    pub(crate) fn apply_all(
        &mut self,
        runs: bool,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, Problem> {
        if !runs {
            self.idle.insert(NodeId(self.graph().nodes.len()));
        }
        self.builder.apply_all(name, operator, inputs).map_err(Problem::refused)
    }

    /// An operation with one result.
    ///
    /// # Errors
    /// As [`Case::apply_all`].
    pub(crate) fn apply(
        &mut self,
        runs: bool,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, Problem> {
        self.apply_all(runs, name, operator, inputs).map(|outputs| outputs[0])
    }

    /// Has the host read a result.
    pub(crate) fn read(&mut self, result: TensorId) {
        self.builder.output(result);
    }

    /// Adds a gradient to its parameter.
    ///
    /// # Errors
    /// As [`Case::apply_all`].
    pub(crate) fn update(
        &mut self,
        parameter: TensorId,
        gradient: TensorId,
    ) -> Result<(), Problem> {
        let operands = [parameter, gradient];
        self.apply_all(true, "update", Optimizer::Sgd.update(false), &operands).map(|_| ())
    }

    /// The program that is run.
    ///
    /// # Errors
    /// An operation that cannot be lowered.
    pub(crate) fn program(self) -> Result<Program, Problem> {
        let (graph, plans) = (self.builder.finish(), PlanCache::new());
        let mut lowering =
            Lowering::new(&graph, self.machine, self.training, &self.planning, &plans);
        for (tensor, layout) in self.placed {
            lowering.lay_out(tensor, layout);
        }
        Program::new(lowering, &self.idle, self.code).map_err(Problem::refused)
    }
}
