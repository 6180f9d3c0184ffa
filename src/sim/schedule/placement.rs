//! Which IPU runs which block.

use super::pipeline::pipeline_stages;
use crate::sim::graph::{BlockId, Graph};
use crate::sim::spec::{Execution, Spec, SpecError, Stage};

/// A stage with its IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedStage {
    /// Names of its blocks: `B1` or `B1+B2`.
    pub name: String,
    /// IPU of the replica.
    pub ipu: u32,
}

/// Where each block of a graph runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Stages in the order of the forward pass.
    pub stages: Vec<PlacedStage>,
    stage_of_block: Vec<usize>,
}

impl Placement {
    /// Places the blocks of `graph` as `spec` says.
    ///
    /// # Errors
    /// Blocks that are unknown, missing, twice or out of order; more stages than IPUs; an
    /// accumulation too small to fill the pipeline.
    pub fn new(spec: &Spec, graph: &Graph) -> Result<Self, SpecError> {
        let stages = written_or_default(spec, graph);
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
        check_accumulation(spec, stages.len())?;
        let place = |stage: Stage| PlacedStage { name: stage.blocks.join("+"), ipu: stage.ipu };
        Ok(Self { stages: stages.into_iter().map(place).collect(), stage_of_block })
    }

    /// The stage a block belongs to.
    pub fn stage(&self, block: BlockId) -> usize {
        self.stage_of_block[block.0]
    }
}

/// The stages of the spec; where it has none, one stage per block, or one for all on one IPU.
fn written_or_default(spec: &Spec, graph: &Graph) -> Vec<Stage> {
    if !spec.options.stages.is_empty() {
        return spec.options.stages.clone();
    }
    if spec.target.ipus == 1 {
        return vec![Stage { blocks: graph.blocks.clone(), ipu: 0 }];
    }
    let one =
        |(ipu, block): (usize, &String)| Stage { blocks: vec![block.clone()], ipu: ipu as u32 };
    graph.blocks.iter().enumerate().map(one).collect()
}

fn check_ipus(spec: &Spec, stages: &[Stage]) -> Result<(), SpecError> {
    let ipus = spec.target.ipus;
    for (position, stage) in stages.iter().enumerate() {
        if stage.ipu >= ipus {
            let problem =
                format!("stage {position} is on IPU {}, but target.ipus is {ipus}", stage.ipu);
            return Err(spec.refuse("options.stages", problem));
        }
        if stages[..position].iter().any(|earlier| earlier.ipu == stage.ipu) {
            let problem =
                format!("two stages are on IPU {}; one stage per IPU is possible", stage.ipu);
            return Err(spec.refuse("options.stages", problem));
        }
    }
    Ok(())
}

/// A pipeline needs an accumulation of 1 (and then runs on without a flush) or at least as many
/// micro-batches as it has pipeline stages.
fn check_accumulation(spec: &Spec, stages: usize) -> Result<(), SpecError> {
    if spec.options.execution != Execution::Pipelined || stages < 2 {
        return Ok(());
    }
    let training = spec.model.training;
    let depth = pipeline_stages(stages, training);
    let accumulation = spec.options.gradient_accumulation;
    if training && (2..depth).contains(&accumulation) {
        let problem = format!(
            "{accumulation} micro-batches cannot fill a pipeline of {stages} stages; \
             1 or at least {depth} (2 x stages - 1) is expected"
        );
        return Err(spec.refuse("options.gradient_accumulation", problem));
    }
    let flowing = accumulation * spec.options.device_iterations;
    if flowing < depth {
        let problem = format!(
            "{flowing} micro-batches per call cannot fill a pipeline of {stages} stages; \
             at least {depth} is expected"
        );
        return Err(spec.refuse("options.device_iterations", problem));
    }
    Ok(())
}
