//! Which IPU runs which block.

use super::balance::split_balanced;
use super::pipeline::PipelineTiming;
use crate::graph::ModelGraph;
use crate::shape::BlockId;
use crate::spec::{AutoStage, ExecutionStrategy, PipelineSchedule, Spec, SpecError, StageSpec};
use tilescope_report::units::{Cycles, IpuId};

/// A stage with its IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedStage {
    /// Names of its blocks: `B1` or `B1+B2`.
    pub name: String,
    /// IPU of the replica.
    pub ipu: IpuId,
}

/// Where each block of a graph runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlacement {
    /// Stages in the order of the forward pass.
    pub stages: Vec<PlacedStage>,
    stage_of_block: Vec<usize>,
}

/// Cycles of each block for one micro-batch, forward and backward, where they are asked for.
pub(crate) type BlockCosts<'a> = &'a dyn Fn() -> Vec<Cycles>;

impl StagePlacement {
    /// Places the blocks of `graph` as `spec` says.
    ///
    /// # Errors
    /// Blocks that are unknown, missing, twice or out of order; stages on IPUs that are not there;
    /// an accumulation too small to fill the pipeline.
    pub(crate) fn new(
        spec: &Spec,
        graph: &ModelGraph,
        costs: BlockCosts,
    ) -> Result<Self, SpecError> {
        let stages = resolve_stages(spec, graph, costs);
        let path = "options.stages";
        let mut stage_of_block = vec![None; graph.blocks.len()];
        for (position, stage) in stages.iter().enumerate() {
            for block in &stage.blocks {
                let Some(at) = graph.blocks.iter().position(|name| name == block) else {
                    let known: Vec<&str> = graph.blocks.iter().map(String::as_str).collect();
                    let problem = format!("the model has no block {block:?}");
                    return Err(spec.refuse(path, problem).nearest(block, &known));
                };
                if stage_of_block[at].replace(position).is_some() {
                    return Err(spec.refuse(path, format!("block {block:?} is in two stages")));
                }
            }
        }
        let missing = stage_of_block.iter().position(Option::is_none);
        if let Some(block) = missing {
            let problem = format!("block {:?} is in no stage", graph.blocks[block]);
            return Err(spec.refuse(path, problem));
        }
        let stage_of_block: Vec<usize> = stage_of_block.into_iter().flatten().collect();
        if !stage_of_block.is_sorted() {
            let order = graph.blocks.join(", ");
            let problem = format!("stages must follow the order of the blocks: {order}");
            return Err(spec.refuse(path, problem));
        }
        check_ipus(spec, &stages)?;
        if graph.row_shards < 2 {
            check_accumulation(spec, stages.len())?;
        }
        let place = |stage: StageSpec| PlacedStage { name: stage.blocks.join("+"), ipu: stage.ipu };
        Ok(Self { stages: stages.into_iter().map(place).collect(), stage_of_block })
    }

    /// The stage a block belongs to.
    pub(crate) fn stage(&self, block: BlockId) -> usize {
        self.stage_of_block[block.0]
    }
}

/// The stages of the spec; where it has none, those its automatic staging makes.
fn resolve_stages(spec: &Spec, graph: &ModelGraph, costs: BlockCosts) -> Vec<StageSpec> {
    if !spec.options.stages.is_empty() {
        return spec.options.stages.clone();
    }
    let (blocks, ipus) = (graph.blocks.len(), spec.target.ipus as usize);
    if graph.row_shards > 1 {
        let stage = |(block, name): (usize, &String)| StageSpec {
            blocks: vec![name.clone()],
            ipu: IpuId::from_index(block % graph.row_shards),
        };
        return graph.blocks.iter().enumerate().map(stage).collect();
    }
    let parts: Vec<std::ops::Range<usize>> = match spec.options.auto_stage {
        _ if ipus == 1 => std::iter::once(0..blocks).collect(),
        AutoStage::AutoIncrement => (0..blocks).map(|block| block..block + 1).collect(),
        AutoStage::SameAsIpu => {
            let parts = ipus.min(blocks);
            let start = |part: usize| part * blocks / parts;
            (0..parts).map(|part| start(part)..start(part + 1)).collect()
        }
        AutoStage::Balanced => split_balanced(&costs(), ipus),
    };
    let phased = spec.options.execution == ExecutionStrategy::Phased;
    let stage = |(position, part): (usize, std::ops::Range<usize>)| StageSpec {
        blocks: graph.blocks[part].to_vec(),
        ipu: if phased {
            phase_ipu(position, spec.target.ipus)
        } else {
            IpuId::from_index(position)
        },
    };
    parts.into_iter().enumerate().map(stage).collect()
}

/// IPU of a stage when phases alternate between IPUs 0 and 1, or between the pairs 0 with 2 and 1
/// with 3.
fn phase_ipu(stage: usize, ipus: u32) -> IpuId {
    let width = (ipus / 2).max(1) as usize;
    let (phase, part) = (stage / width, stage % width);
    IpuId::from_index(2 * part + phase % 2)
}

fn check_ipus(spec: &Spec, stages: &[StageSpec]) -> Result<(), SpecError> {
    let ipus = spec.target.ipus;
    for (position, stage) in stages.iter().enumerate() {
        if stage.ipu >= IpuId(ipus) {
            let problem =
                format!("stage {position} is on IPU {}, but target.ipus is {ipus}", stage.ipu);
            return Err(spec.refuse("options.stages", problem));
        }
        let shared = stages[..position].iter().any(|earlier| earlier.ipu == stage.ipu);
        let interleaved = spec.options.pipeline_schedule == PipelineSchedule::Interleaved;
        if shared && interleaved && spec.options.execution == ExecutionStrategy::Pipelined {
            let problem = format!(
                "two stages are on IPU {}; the interleaved schedule takes one stage per IPU",
                stage.ipu
            );
            return Err(spec.refuse("options.stages", problem));
        }
    }
    Ok(())
}

/// A pipeline needs an accumulation of 1 (and then runs on without a flush) or at least as many
/// micro-batches as fill it.
fn check_accumulation(spec: &Spec, stages: usize) -> Result<(), SpecError> {
    let options = &spec.options;
    let overlapping = options.execution == ExecutionStrategy::Pipelined
        && options.pipeline_schedule != PipelineSchedule::Sequential;
    if !overlapping || stages < 2 {
        return Ok(());
    }
    let training = spec.model.training;
    let schedule = options.pipeline_schedule;
    let form = PipelineTiming::new(stages, schedule, options.stash_convention, training);
    let fewest = form.fewest_micro_batches();
    let accumulation = options.gradient_accumulation;
    if training && (2..fewest).contains(&accumulation) {
        let problem = format!(
            "{accumulation} micro-batches cannot fill a pipeline of {stages} stages; \
             1 or at least {fewest} is expected"
        );
        return Err(spec.refuse("options.gradient_accumulation", problem));
    }
    let flowing = accumulation * options.device_iterations;
    if flowing < fewest {
        let problem = format!(
            "{flowing} micro-batches per call cannot fill a pipeline of {stages} stages; \
             at least {fewest} is expected"
        );
        return Err(spec.refuse("options.device_iterations", problem));
    }
    Ok(())
}
