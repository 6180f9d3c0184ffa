//! All variables of a program, placed on the tiles.

use super::program_plan::ProgramPlan;
use super::program_tables::ProgramTables;
use super::tensor_analysis::{BufferLifetimes, TensorBuffer, TensorBufferKind};
use super::wanted_variables::{UnplacedVariable, WantedVariables};
use crate::poplar::allocate::{self, AllocationRequest, TileMemoryAllocation};
use crate::poplar::code_bytes;
use crate::poplar::work::MemoryConstraint;
use crate::poputil::tensor_layout::ElementOrder;
use crate::shape::{TensorId, TensorRole};
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId, TileId, TileRuns, VariableId};
use tilescope_report::{MemoryCategory, TileTraffic, TrainingPass, Variable, VariableUse};

/// The variables of a program and their places.
#[derive(Default)]
pub(crate) struct PlacedVariables {
    /// The variables of the report.
    pub variables: Vec<Variable>,
    /// The steps that use each variable that is a tensor.
    pub uses: Vec<VariableUse>,
    /// Sums and owners per tile.
    pub allocation: TileMemoryAllocation,
}

/// Collects all variables and places them.
pub(super) fn place_variables(
    plan: &ProgramPlan,
    tables: &mut ProgramTables,
    WantedVariables { lifetimes, others, .. }: WantedVariables,
) -> PlacedVariables {
    let mut wanted = tensor_variables(plan, &lifetimes, tables.next_step());
    // Uploads add to the code of the tables, which `code_variables` reads.
    add_upload_code(plan, &lifetimes, tables);
    wanted.extend(others);
    wanted.extend(code_variables(tables));
    let requests: Vec<AllocationRequest> = wanted
        .iter()
        .map(|variable| AllocationRequest {
            category: variable.category,
            lifetime: variable.lifetime.clone(),
            memory_constraint: variable.place,
            bytes: variable.bytes.clone(),
        })
        .collect();
    let target = &plan.spec.target;
    let tiles = target.ipus * target.chip.tiles;
    let mut allocation = allocate::allocate(&target.chip, &requests, tiles);
    fill_liveness(tables, &wanted);
    let placements = std::mem::take(&mut allocation.placements);
    let variables: Vec<Variable> = wanted
        .into_iter()
        .zip(placements)
        .map(|(variable, tiles)| Variable {
            name: variable.name,
            category: variable.category,
            operation: variable.operation,
            shape: variable.shape,
            lifetime: variable.lifetime,
            tiles,
        })
        .collect();
    PlacedVariables { uses: tensor_uses(&lifetimes, &variables), variables, allocation }
}

/// Returns the steps that use each tensor. Tensors come first among the variables. A tensor that is
/// in use from its first step to its last is not listed.
fn tensor_uses(lifetimes: &BufferLifetimes, variables: &[Variable]) -> Vec<VariableUse> {
    let mut found = Vec::new();
    let lives = lifetimes.iter().flat_map(|(_, lives)| lives);
    for (index, life) in lives.enumerate() {
        let uses = life.uses();
        if variables[index].lifetime.as_slice() == uses {
            continue;
        }
        let variable = VariableId::from_index(index);
        found.extend(uses.into_iter().map(|steps| VariableUse { variable, steps }));
    }
    found
}

/// Returns the tensors of the graph as variables. Persistent ones are always live on their IPU,
/// others while they are in use.
///
/// A tensor in streaming memory is a variable for each load, as PopART makes a tensor for each load
/// (willow/src/transforms/streamingmemoryopinserter.cpp, generateLoadedTensorId).
fn tensor_variables(
    plan: &ProgramPlan,
    lifetimes: &BufferLifetimes,
    steps: u32,
) -> Vec<UnplacedVariable> {
    let mut mapper = LinearMapper::new(plan);
    let mut variables = Vec::new();
    for (tensor_buffer, lives) in lifetimes.iter() {
        let tensor = plan.graph.tensor(tensor_buffer.tensor);
        let gathered = matches!(tensor_buffer.part, TensorBufferKind::Gathered(..));
        // A gathered tensor is released after its last reader. Only the share is kept.
        let kept =
            tensor.role.is_persistent() && !gathered && !plan.is_off_chip(tensor_buffer.tensor);
        let ty = if !gathered && plan.sharding.splits(tensor_buffer.tensor) {
            plan.sharding.share(&tensor.ty)
        } else {
            tensor.ty.clone()
        };
        let suffix = match tensor_buffer.part {
            TensorBufferKind::Restored(_) => "/restored",
            TensorBufferKind::Gathered(..) => "/gathered",
            TensorBufferKind::Original | TensorBufferKind::Received(_) => "",
        };
        let category = if plan.is_constant(tensor.role) {
            MemoryCategory::Constant
        } else {
            MemoryCategory::Variable
        };
        let bytes = mapper.bytes(plan, tensor_buffer, kept);
        for (index, life) in lives.iter().enumerate() {
            let loaded = if lives.len() > 1 { format!("__l{index}") } else { String::new() };
            // The span of a buffer that is always live ends after all steps (`keep_always`).
            let always = kept || life.span.end > steps;
            variables.push(UnplacedVariable {
                name: format!("{}{suffix}{loaded}", tensor.name),
                category,
                operation: None,
                shape: ty.to_string(),
                lifetime: if always { None } else { Some(life.span.clone()) },
                place: lifetimes.place(tensor_buffer),
                bytes: bytes.clone(),
            });
        }
    }
    variables
}

/// The placement of tensors that no operation has demands on. Each starts where the previous one
/// ended, so that small ones do not pile up on the first tiles (popart
/// willow/src/popx/linearmapper.cpp).
///
/// Operations are lowered as if all tensors started at tile 0, which moves the same bytes between
/// other tiles. Equal operations then stay equal and share code.
struct LinearMapper {
    /// The parameter that each state tensor belongs to. Both are on the same tiles.
    owners: BTreeMap<TensorId, TensorId>,
    /// The first tile of each tensor.
    starts: BTreeMap<(IpuId, TensorId), TileId>,
    /// The first tile of the next tensor, by IPU.
    next: BTreeMap<IpuId, TileId>,
}

impl LinearMapper {
    fn new(plan: &ProgramPlan) -> Self {
        let updates = plan.graph.nodes.iter().filter(|node| node.pass == TrainingPass::Update);
        let owned = updates.flat_map(|node| {
            // The first operand of an update is the parameter, which owns the state.
            let states = node.inputs.iter().skip(1);
            let states = states.filter(|of| plan.role(**of) == TensorRole::OptimizerState);
            states.map(|state| (*state, node.inputs[0]))
        });
        Self { owners: owned.collect(), starts: BTreeMap::new(), next: BTreeMap::new() }
    }

    /// Bytes of a tensor on each tile of the replica.
    fn bytes(
        &mut self,
        plan: &ProgramPlan,
        tensor_buffer: TensorBuffer,
        kept: bool,
    ) -> TileRuns<Bytes> {
        let tiles = plan.spec.target.chip.tiles;
        let bytes = plan.buffer_bytes(tensor_buffer);
        let owner = self.owners.get(&tensor_buffer.tensor).copied().unwrap_or(tensor_buffer.tensor);
        // Accumulators have the layout of the gradients that they receive.
        let free = kept && plan.role(owner) != TensorRole::Accumulator;
        let linear = plan.sharding.splits(tensor_buffer.tensor)
            || plan.layout(tensor_buffer.tensor).order == ElementOrder::Linear;
        let first = if free && linear {
            let next = self.next.entry(tensor_buffer.ipu).or_insert(TileId(0));
            *self.starts.entry((tensor_buffer.ipu, owner)).or_insert_with(|| {
                let first = *next;
                *next = (first + bytes.tile_count()) % tiles;
                first
            })
        } else {
            TileId(0)
        };
        bytes.rotated(first, tiles).shifted(plan.tiles_before(tensor_buffer.ipu))
    }
}

/// Code, vertex state and similar memory: one variable per category, with the names of libpva.
fn code_variables(tables: &ProgramTables) -> impl Iterator<Item = UnplacedVariable> {
    MemoryCategory::ALL.into_iter().filter_map(|category| {
        let bytes = tables.code.category(category);
        let bytes = TileRuns::from_tiles(
            TileId(0),
            bytes.iter().map(|bytes| (!bytes.is_zero()).then_some(*bytes)),
        );
        if bytes.is_empty() {
            return None;
        }
        Some(UnplacedVariable {
            name: category.name().to_string(),
            category,
            operation: None,
            shape: String::new(),
            lifetime: None,
            place: MemoryConstraint::Any,
            bytes,
        })
    })
}

/// Adds the code of the programs that copy persistent tensors from the host before the first run,
/// and trained tensors back after the last one. Tensors in streaming memory are already there, and
/// constants come with the program.
fn add_upload_code(plan: &ProgramPlan, lifetimes: &BufferLifetimes, tables: &mut ProgramTables) {
    for (TensorBuffer { tensor, ipu, part }, _) in lifetimes.iter() {
        let role = plan.role(tensor);
        if part != TensorBufferKind::Original
            || plan.is_constant(role)
            || !matches!(role, TensorRole::Parameter | TensorRole::OptimizerState)
            || plan.is_off_chip(tensor)
        {
            continue;
        }
        for (range, bytes) in plan.bytes(tensor).shifted(plan.tiles_before(ipu)).iter() {
            let bytes_out = if plan.spec.model.training { *bytes } else { Bytes::ZERO };
            let tile = TileTraffic { bytes_in: *bytes, bytes_out, ..TileTraffic::default() };
            let code_bytes = code_bytes::host_code_bytes(&tile, tables.kind);
            for tile in range.iter() {
                tables.code.add(MemoryCategory::HostExchangeCode, tile, code_bytes);
            }
        }
    }
}

/// Adds up the bytes of not-always-live variables at each liveness step.
fn fill_liveness(tables: &mut ProgramTables, variables: &[UnplacedVariable]) {
    // A variable changes the sum only at its two ends. Adding it to each step of its lifetime would
    // cost the product of variables and steps.
    let mut changes = vec![0i64; tables.liveness.len() + 1];
    for variable in variables {
        if let Some(lifetime) = &variable.lifetime {
            let bytes = variable.bytes.total().0 as i64;
            changes[lifetime.start as usize] += bytes;
            changes[lifetime.end as usize] -= bytes;
        }
    }
    let mut live = 0;
    for (step, change) in tables.liveness.iter_mut().zip(changes) {
        live += change;
        step.bytes = Bytes(live as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompiledProgram, ProgramExtent, ProgramSource};
    use crate::specification::{Spec, SpecError, SpecSource};

    fn spec(overrides: &[&str]) -> Result<Spec, SpecError> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        Spec::build(&SpecSource::find("mnist_pipeline", &overrides).expect("a bundled spec"))
    }

    /// Constants take the same number of bytes as the weights that they replace. Only the code that
    /// copies weights from the host is gone.
    #[test]
    fn constant_weights_take_no_host_exchange_code() {
        const INFERENCE: [&str; 2] = ["model.training=false", "options.gradient_accumulation=1"];
        let compiled = |constant| {
            let overrides = [INFERENCE[0], INFERENCE[1], constant];
            let spec = spec(&overrides).expect("valid");
            ProgramSource::new(&spec)
                .and_then(|source| source.compile(ProgramExtent::Whole))
                .expect("compiles")
        };
        let bytes = |program: &CompiledProgram, category| -> Bytes {
            let variables = program.compilation.variables.iter();
            let tiles = variables
                .filter(|variable| variable.category == category)
                .flat_map(|variable| variable.tiles.iter());
            tiles.map(|(range, placed)| u64::from(range.count()) * placed.bytes).sum()
        };
        let loaded = compiled("options.constant_weights=false");
        let constant = compiled("options.constant_weights=true");
        let [variables, constants, code] =
            [MemoryCategory::Variable, MemoryCategory::Constant, MemoryCategory::HostExchangeCode]
                .map(|category| [bytes(&loaded, category), bytes(&constant, category)]);
        assert!(variables[1] < variables[0] && code[1] < code[0], "{variables:?} {code:?}");
        assert_eq!(variables[0] + constants[0], variables[1] + constants[1]);

        let refused = spec(&["options.constant_weights=true"]).expect_err("they are trained");
        assert!(refused.to_string().contains("constant"), "{refused}");
    }
}
