//! The assignment of blocks to IPUs.
//!
//! A stage runs on one IPU, except for phases on several pairs of IPUs (see [`super::phased`]). In
//! those a stage with split layers occurs once for each IPU of its set, and these stages run side
//! by side.

use super::phased::{phase_ipu, phase_set};
use super::pipeline::PipelineTiming;
use crate::graph::ModelGraph;
use crate::operators::ShardCrossing;
use crate::shape::BlockId;
use crate::specification::{
    AutoStage, ExecutionStrategy, PipelineSchedule, Spec, SpecError, StageSpec,
};
use std::collections::BTreeSet;
use std::ops::Range;
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

/// A stage with its IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedStage {
    /// Names of its blocks: `B1` or `B1+B2`.
    pub name: String,
    /// Its blocks, in order.
    pub blocks: Vec<String>,
    /// The IPU of the replica.
    pub ipu: IpuId,
}

/// The stages of the blocks of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlacement {
    /// Stages in the order of the forward pass.
    pub stages: Vec<PlacedStage>,
    /// The first stage of each block.
    stage_of_block: Vec<usize>,
    /// Stages that run the same blocks side by side. Ranges of one stage, except for split phases.
    peers: Vec<Range<usize>>,
    /// Stages that work at the same time: those side by side, or those of a step.
    together: Vec<Range<usize>>,
    /// Steps of a phase, as ranges of `together`. Ranges of one step, unless the model defines
    /// several.
    phases: Vec<Range<usize>>,
}

impl StagePlacement {
    /// Places the blocks of `graph` on the `written` stages, or, if there are none, as `spec`
    /// defines.
    ///
    /// # Errors
    /// Returns an error if there are too few IPUs for the stages, or if the accumulation is too
    /// small to fill the pipeline.
    pub(crate) fn new(
        spec: &Spec,
        graph: &ModelGraph,
        written: &[StageSpec],
    ) -> Result<Self, SpecError> {
        let stages = match written {
            [] => {
                let stages = automatic_stages(spec, graph);
                check_automatic(spec, &stages)?;
                stages
            }
            written => written.to_vec(),
        };
        let mut stage_of_block = Vec::new();
        for block in &graph.blocks {
            stage_of_block.extend(stages.iter().position(|stage| stage.blocks.contains(block)));
        }
        debug_assert!(
            stage_of_block.len() == graph.blocks.len() && stage_of_block.is_sorted(),
            "every block is in a stage, and blocks follow the stages"
        );
        check_phases(spec, graph)?;
        if graph.row_shards < 2 {
            check_accumulation(spec, stages.len())?;
        }
        let mut split_stages = BTreeSet::new();
        for node in &graph.nodes {
            if node.operator.shard_crossing() != ShardCrossing::Nothing {
                split_stages.insert(stage_of_block[node.block.0]);
            }
        }
        let phased = spec.options.execution == ExecutionStrategy::Phased;
        let sets = spec.options.execution_phase_settings.stages;
        let mut placed = Self {
            stages: Vec::new(),
            stage_of_block: Vec::new(),
            peers: Vec::new(),
            together: Vec::new(),
            phases: Vec::new(),
        };
        for (position, stage) in stages.iter().enumerate() {
            let first = placed.stages.len();
            let members = if phased && split_stages.contains(&position) {
                phase_set(stage.ipu, spec.target.ipus, sets)
            } else {
                vec![stage.ipu]
            };
            placed.stages.extend(members.into_iter().map(|ipu| PlacedStage {
                name: stage.blocks.join("+"),
                blocks: stage.blocks.clone(),
                ipu,
            }));
            placed.peers.push(first..placed.stages.len());
        }
        placed.stage_of_block =
            stage_of_block.into_iter().map(|position| placed.peers[position].start).collect();
        placed.together = match graph.row_shards {
            1 if phased => placed.steps_of_phases(graph),
            1 => placed.peers.clone(),
            shards => (0..placed.stages.len())
                .step_by(shards)
                .map(|first| first..first + shards)
                .collect(),
        };
        placed.phases = runs(&placed.together, |one, other| {
            let [one, other] =
                [one, other].map(|stages| placed.phase_step(graph, stages.start).map(|at| at.0));
            phased && one.is_some() && one == other
        });
        Ok(placed)
    }

    /// The number and step of the phase of a stage, if the model defines the phase.
    fn phase_step(&self, graph: &ModelGraph, stage: usize) -> Option<(u32, u32)> {
        let [block] = &self.stages[stage].blocks[..] else { return None };
        graph.phase_step(BlockId(graph.blocks.iter().position(|name| name == block)?))
    }

    /// Stages that work at the same time in phases: those of a step, which are on different IPUs.
    fn steps_of_phases(&self, graph: &ModelGraph) -> Vec<Range<usize>> {
        let beside = |one: &Range<usize>, other: &Range<usize>| {
            let step = self.phase_step(graph, one.start);
            let is_one = step.is_some() && step == self.phase_step(graph, other.start);
            let ipu = |stage: usize| self.stages[stage].ipu;
            is_one && ipu(one.start) != ipu(other.start)
        };
        let steps = runs(&self.peers, beside);
        steps.into_iter().map(|of| self.peers[of.start].start..self.peers[of.end - 1].end).collect()
    }

    /// The stage that a block belongs to: the first of those that run it side by side.
    pub(crate) fn stage(&self, block: BlockId) -> usize {
        self.stage_of_block[block.0]
    }

    /// All stages that run a block.
    pub(crate) fn stages_of(&self, block: BlockId) -> Range<usize> {
        self.peers_of(self.stage(block))
    }

    /// True if a stage runs a block.
    pub(crate) fn runs(&self, stage: usize, block: BlockId) -> bool {
        self.stages_of(block).contains(&stage)
    }

    /// Stages that work at the same time if one micro-batch is processed at a time, in the order of
    /// the forward pass: those of a phase, or of a step of IPUs that share rows.
    pub(crate) fn together(&self) -> &[Range<usize>] {
        &self.together
    }

    /// Steps that form a phase, as ranges of [`Self::together`].
    pub(crate) fn phases(&self) -> &[Range<usize>] {
        &self.phases
    }

    /// Stages in which the IPU of a stage continues its phase, in the order of a pass.
    pub(crate) fn later_steps(&self, stage: usize, pass: TrainingPass) -> Vec<usize> {
        let of_ipu = self.steps_of_ipu(stage);
        match pass {
            TrainingPass::Forward => of_ipu.filter(|other| *other > stage).collect(),
            TrainingPass::Backward => of_ipu.rev().filter(|other| *other < stage).collect(),
            TrainingPass::Update => Vec::new(),
        }
    }

    /// Stages in which the IPU of a stage begins its phase, in the order of the forward pass.
    pub(crate) fn earlier_steps(&self, stage: usize, pass: TrainingPass) -> Vec<usize> {
        let later = self.later_steps(stage, pass);
        self.steps_of_ipu(stage).filter(|of| *of != stage && !later.contains(of)).collect()
    }

    /// Stages of the IPU of a stage in its phase, in the order of the forward pass.
    pub(crate) fn steps_of_ipu(&self, stage: usize) -> impl DoubleEndedIterator<Item = usize> {
        let mut phase = stage..stage + 1;
        for steps in &self.phases {
            let stages = self.together[steps.start].start..self.together[steps.end - 1].end;
            if stages.contains(&stage) {
                phase = stages;
            }
        }
        let ipu = self.stages[stage].ipu;
        phase.filter(move |other| self.stages[*other].ipu == ipu)
    }

    /// True if two stages work at the same time.
    pub(crate) fn work_together(&self, one: usize, other: usize) -> bool {
        self.together.iter().any(|stages| stages.contains(&one) && stages.contains(&other))
    }

    /// Stages that work side by side on the same blocks, in the order of the forward pass.
    pub(crate) fn peers(&self) -> &[Range<usize>] {
        &self.peers
    }

    /// The stages that run side by side with a stage, including itself.
    pub(crate) fn peers_of(&self, stage: usize) -> Range<usize> {
        let found = self.peers.iter().find(|peers| peers.contains(&stage));
        found.cloned().unwrap_or(stage..stage + 1)
    }

    /// The stage of a block that provides its results to `stage`: the one at the same place of its
    /// set, or the only one.
    pub(crate) fn nearest_stage(&self, block: BlockId, stage: usize) -> usize {
        let makers = self.stages_of(block);
        let place = stage - self.peers_of(stage).start;
        if makers.len() > place { makers.start + place } else { makers.start }
    }
}

/// Splits items into runs in which each item goes with the previous one.
fn runs<T>(items: &[T], goes_with: impl Fn(&T, &T) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in 0..items.len() {
        match found.last_mut().filter(|_| goes_with(&items[at - 1], &items[at])) {
            Some(run) => run.end = at + 1,
            None => found.push(at..at + 1),
        }
    }
    found
}

/// The stages of a spec that writes none. The search for a balanced split sets its stages in the
/// spec. Until then the blocks are spread evenly.
fn automatic_stages(spec: &Spec, graph: &ModelGraph) -> Vec<StageSpec> {
    let blocks = graph.blocks.len();
    if graph.row_shards > 1 {
        return graph
            .blocks
            .iter()
            .enumerate()
            .map(|(block, name)| StageSpec {
                blocks: vec![name.clone()],
                ipu: IpuId::from_index(block % graph.row_shards),
            })
            .collect();
    }
    let is_whole = spec.target.ipus == 1 && spec.options.execution != ExecutionStrategy::Phased;
    let one_for_each = spec.options.auto_stage == AutoStage::AutoIncrement && !is_whole;
    let parts = match phases(spec) {
        None if one_for_each => (0..blocks).map(|block| block..block + 1).collect(),
        _ => split_evenly(blocks, stages_of_blocks(spec, blocks)),
    };
    stages_of_split(spec, graph, &parts)
}

/// The number of phases that the spec requests.
fn phases(spec: &Spec) -> Option<usize> {
    let is_phased = spec.options.execution == ExecutionStrategy::Phased;
    let phases = spec.options.execution_phase_settings.phases;
    if is_phased && phases > 0 { Some(phases as usize) } else { None }
}

/// The number of stages that blocks are split into: one for each IPU, or one for each phase.
pub(crate) fn stages_of_blocks(spec: &Spec, blocks: usize) -> usize {
    phases(spec).unwrap_or(spec.target.ipus as usize).min(blocks).max(1)
}

/// Spreads blocks evenly over stages.
pub(crate) fn split_evenly(blocks: usize, stages: usize) -> Vec<Range<usize>> {
    let parts = stages.min(blocks).max(1);
    (0..parts).map(|part| part * blocks / parts..(part + 1) * blocks / parts).collect()
}

/// Makes a stage for each range of blocks, each on its own IPU.
pub(crate) fn stages_of_split(
    spec: &Spec,
    graph: &ModelGraph,
    parts: &[Range<usize>],
) -> Vec<StageSpec> {
    let phased = spec.options.execution == ExecutionStrategy::Phased;
    let sets = spec.options.execution_phase_settings.stages;
    let mut stages = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        let ipu = if phased {
            phase_ipu(position, parts.len(), spec.target.ipus, sets)
        } else {
            IpuId::from_index(position)
        };
        stages.push(StageSpec { blocks: graph.blocks[part.clone()].to_vec(), ipu });
    }
    stages
}

/// Checks that each phase has at least one block.
fn check_phases(spec: &Spec, graph: &ModelGraph) -> Result<(), SpecError> {
    let blocks = graph.blocks.len();
    match phases(spec).filter(|phases| *phases > blocks) {
        None => Ok(()),
        Some(phases) => {
            let problem =
                format!("{phases} phases need at least as many blocks, but the model has {blocks}");
            Err(spec.refuse("options.execution_phase_settings.phases", problem))
        }
    }
}

/// Checks that there are enough IPUs for the automatic stages, one for each block.
fn check_automatic(spec: &Spec, stages: &[StageSpec]) -> Result<(), SpecError> {
    let ipus = spec.target.ipus;
    if stages.iter().all(|stage| stage.ipu < IpuId(ipus)) {
        return Ok(());
    }
    let problem = format!(
        "\"auto_increment\" needs one IPU for each of the {} blocks of the model, but target.ipus \
         is {ipus}; set \"balanced\" or \"same_as_ipu\", or set options.stages",
        stages.len()
    );
    Err(spec.refuse("options.auto_stage", problem))
}

/// Checks the accumulation of a pipeline. It must be 1, in which case the pipeline continues
/// without a flush, or at least the number of micro-batches that fill the pipeline.
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
            "{accumulation} micro-batches cannot fill a pipeline of {stages} stages; set 1 or at \
             least {fewest}"
        );
        return Err(spec.refuse("options.gradient_accumulation", problem));
    }
    let flowing = accumulation * options.device_iterations;
    if flowing < fewest {
        let problem = format!(
            "{flowing} micro-batches per call cannot fill a pipeline of {stages} stages; at least \
             {fewest} are needed"
        );
        return Err(spec.refuse("options.device_iterations", problem));
    }
    Ok(())
}
