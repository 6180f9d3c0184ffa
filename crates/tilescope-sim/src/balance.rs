//! The split of a model's blocks over IPUs that gives the shortest run.
//!
//! Stages work at the same time, so the longest one decides. A block costs a stage more than its
//! operations alone: copies into and out of stashes, recomputed forward operations, copies from the
//! host and to other IPUs, and layouts that its neighbours leave. The search therefore compiles
//! each split and runs it without keeping its steps.
//!
//! The first candidates are the even split, the split that the operation costs alone suggest and,
//! if the spec writes one, the split of the spec. The block costs of the fastest split suggest a
//! better one. The search tries that split and its neighbours next, and repeats this as long as one
//! of them is faster. The result is the fastest split of all that were tried and that fit in
//! memory, so it never takes longer than the first candidates.

use crate::compile::{
    CompileError, CompiledProgram, LoweredProgram, ProgramExtent, ProgramSource, for_each_leaf,
};
use crate::graph::ModelGraph;
use crate::memory_proportion::with_found;
use crate::run::{length_of_run, shortened};
use crate::schedule::{split_balanced, split_evenly, stages_of_blocks, stages_of_split};
use crate::shape::BlockId;
use crate::specification::{AutoStage, Spec, StageSpec};
use std::collections::BTreeMap;
use std::ops::Range;
use tilescope_report::units::Cycles;
use tilescope_report::{CompilationReport, TrainingPass};

/// The largest number of splits of a model that the search tries.
const MOST_TRIED: usize = 12;

/// The number of neighbours of a split that are tried before it counts as the best.
const NEIGHBOURS: usize = 3;

/// A stage of a balanced split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedStage {
    /// Names of the blocks of the stage, in order.
    pub blocks: Vec<String>,
    /// Cycles of the forward and backward pass of the stage for one micro-batch.
    pub cycles: Cycles,
}

/// The fastest of the splits that were tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedSplit {
    pub stages: Vec<BalancedStage>,
    /// True if this is the split that the spec writes.
    pub is_written: bool,
    /// The number of splits that were tried.
    pub tried: usize,
}

/// Returns the fastest split of a spec's blocks over its IPUs that fits in memory.
///
/// # Errors
/// Returns an error if the sizes of the model do not fit together, or if its IPUs share rows.
pub fn balance(spec: &Spec) -> Result<BalancedSplit, CompileError> {
    let spec = with_found(spec, |spec, _| Ok(fastest_program(&ProgramSource::new(spec)?)?.1))?;
    let source = ProgramSource::new(&spec)?;
    if source.graph.row_shards > 1 {
        let problem = "a spec whose IPUs share rows has no stages to balance; remove \
        options.domain_sharding"
            .to_owned();
        return Err(spec.refuse("options.domain_sharding", problem).into());
    }
    let (search, program) = fastest_program(&source)?;
    let costs = block_costs(&program, &source.graph);
    let mut stages: Vec<BalancedStage> = Vec::new();
    for peers in program.placement.peers() {
        let mut stage = BalancedStage { blocks: Vec::new(), cycles: Cycles::ZERO };
        for (block, name) in source.graph.blocks.iter().enumerate() {
            if program.placement.runs(peers.start, BlockId(block)) {
                stage.blocks.push(name.clone());
                stage.cycles += costs[block];
            }
        }
        stages.push(stage);
    }
    let written = source.stages.iter().map(|stage| &stage.blocks);
    let is_written = written.eq(stages.iter().map(|stage| &stage.blocks));
    Ok(BalancedSplit { stages, is_written, tried: search.tried.len() })
}

/// Returns the program of the fastest split if the source requests a balanced split.
///
/// # Errors
/// Returns an error if an operation has no plan.
pub(crate) fn balanced_program(
    source: &ProgramSource,
) -> Result<Option<CompiledProgram>, CompileError> {
    let is_open = source.stages.is_empty()
        && source.spec.options.auto_stage == AutoStage::Balanced
        && source.graph.row_shards == 1
        && stages_of(source) > 1;
    if is_open { Ok(Some(fastest_program(source)?.1)) } else { Ok(None) }
}

/// The number of stages that the blocks of a source are split into.
fn stages_of(source: &ProgramSource) -> usize {
    stages_of_blocks(&source.spec, source.graph.blocks.len())
}

/// Tries splits, and compiles the fastest one that fits in memory. If none fits, compiles the
/// fastest.
fn fastest_program<'a>(
    source: &ProgramSource<'a>,
) -> Result<(SplitSearch, CompiledProgram), CompileError> {
    let lowered = source.lower()?;
    let short = shortened(&source.spec);
    let mut search = match &short {
        None => SplitSearch::over(&lowered)?,
        Some(short) => SplitSearch::over(&ProgramSource::new(short)?.lower()?)?,
    };
    let firsts: Vec<Vec<StageSpec>> =
        search.tried[..search.firsts].iter().map(|split| split.stages.clone()).collect();
    search.tried.sort_by_key(|split| split.cycles);
    let compile_whole = |stages: &[StageSpec]| -> Result<CompiledProgram, CompileError> {
        Ok(lowered.program(source.placement(stages)?, ProgramExtent::Whole)?)
    };
    let mut fastest = None;
    for split in &search.tried {
        let program = compile_whole(&split.stages)?;
        if program.tiles_out_of_memory() > 0 {
            fastest.get_or_insert(program);
            continue;
        }
        let mut taken = program;
        // The split that is faster in a shortened run need not be faster in the whole run.
        for stages in firsts.iter().filter(|stages| short.is_some() && **stages != split.stages) {
            let other = compile_whole(stages)?;
            if other.tiles_out_of_memory() == 0
                && length_of_run(&other, &source.spec) < length_of_run(&taken, &source.spec)
            {
                taken = other;
            }
        }
        return Ok((search, taken));
    }
    let program = fastest.expect("the even split was tried");
    Ok((search, program))
}

/// A split that was tried.
struct TriedSplit {
    stages: Vec<StageSpec>,
    /// The ranges of blocks of its stages. Empty for stages that are written in another form.
    parts: Vec<Range<usize>>,
    /// Length of the run with this split.
    cycles: Cycles,
    /// Cycles of each block with this split, for one micro-batch.
    block_costs: Vec<Cycles>,
}

/// The splits of a model that were tried so far.
struct SplitSearch {
    tried: Vec<TriedSplit>,
    /// The number of initial candidates, which are at the front of `tried`.
    firsts: usize,
}

impl SplitSearch {
    /// Tries splits of a model until no faster one is found.
    fn over(lowered: &LoweredProgram) -> Result<Self, CompileError> {
        let source = lowered.source;
        let blocks = source.graph.blocks.len();
        let stages = stages_of(source);
        let mut search = Self { tried: Vec::new(), firsts: 0 };
        search.try_parts(lowered, split_evenly(blocks, stages))?;
        search.try_parts(lowered, split_balanced(&lowered.block_costs(), stages))?;
        if !source.stages.is_empty() {
            search.try_stages(lowered, source.stages.clone(), Vec::new())?;
        }
        search.firsts = search.tried.len();
        loop {
            let best = search.best();
            let before = best.cycles;
            let costs = best.block_costs.clone();
            let balanced = split_balanced(&costs, stages);
            let mut around = [neighbours(&balanced), neighbours(&best.parts)].concat();
            around.sort_by_key(|parts| longest_part(parts, &costs));
            around.retain(|parts| search.tried.iter().all(|tried| tried.parts != *parts));
            around.truncate(NEIGHBOURS);
            for parts in std::iter::once(balanced).chain(around) {
                if search.tried.len() < MOST_TRIED {
                    search.try_parts(lowered, parts)?;
                }
            }
            if search.best().cycles >= before {
                return Ok(search);
            }
        }
    }

    /// The fastest split so far; the first of equally fast ones.
    fn best(&self) -> &TriedSplit {
        let best = self.tried.iter().min_by_key(|split| split.cycles);
        best.expect("the even split is tried first")
    }

    fn try_parts(
        &mut self,
        lowered: &LoweredProgram,
        parts: Vec<Range<usize>>,
    ) -> Result<(), CompileError> {
        let source = lowered.source;
        let stages = stages_of_split(&source.spec, &source.graph, &parts);
        self.try_stages(lowered, stages, parts)
    }

    fn try_stages(
        &mut self,
        lowered: &LoweredProgram,
        stages: Vec<StageSpec>,
        parts: Vec<Range<usize>>,
    ) -> Result<(), CompileError> {
        if self.tried.iter().any(|tried| tried.stages == stages) {
            return Ok(());
        }
        let source = lowered.source;
        let program = lowered.program(source.placement(&stages)?, ProgramExtent::Run)?;
        let cycles = length_of_run(&program, &source.spec);
        let block_costs = block_costs(&program, &source.graph);
        self.tried.push(TriedSplit { stages, parts, cycles, block_costs });
        Ok(())
    }
}

/// The cycles of the longest part of a split, from the costs of its blocks.
fn longest_part(parts: &[Range<usize>], costs: &[Cycles]) -> Cycles {
    parts.iter().map(|part| costs[part.clone()].iter().sum()).max().unwrap_or_default()
}

/// Returns the splits that have one cut moved by one block, forward or back.
fn neighbours(parts: &[Range<usize>]) -> Vec<Vec<Range<usize>>> {
    let mut found = Vec::new();
    for cut in 1..parts.len() {
        let before = &parts[cut - 1];
        let behind = &parts[cut];
        let mut places = Vec::new();
        if before.len() > 1 {
            places.push(before.end - 1);
        }
        if behind.len() > 1 {
            places.push(before.end + 1);
        }
        for place in places {
            let mut moved = parts.to_vec();
            moved[cut - 1].end = place;
            moved[cut].start = place;
            found.push(moved);
        }
    }
    found
}

/// Returns the forward and backward cycles of each block in a program, for one micro-batch. Steps
/// of a stage that belong to no block, such as copies, count for the first block of the stage.
fn block_costs(program: &CompiledProgram, graph: &ModelGraph) -> Vec<Cycles> {
    let mut costs = vec![Cycles::ZERO; graph.blocks.len()];
    let names = graph.blocks.iter().map(String::as_str).zip(0..);
    let places: BTreeMap<&str, usize> = names.collect();
    let CompilationReport { programs, operations, .. } = &program.compilation;
    let passes = program.parts.fragments.iter().filter(|of| of.pass != TrainingPass::Update);
    for fragment in passes {
        let mut blocks = (0..costs.len()).map(BlockId);
        let first = blocks.find(|block| program.placement.runs(fragment.stage, *block));
        let Some(BlockId(first)) = first else { continue };
        for_each_leaf(&fragment.items, 1, &mut |leaf, times| {
            let operation = programs[leaf.index()].operation;
            let block = operation.and_then(|of| operations[of.index()].block.as_ref());
            let block = block.and_then(|name| places.get(name.as_str()).copied());
            let cost = program.leaf_costs.get(&leaf).map_or(Cycles::ZERO, |cost| cost.cycles);
            let own = block.filter(|own| program.placement.runs(fragment.stage, BlockId(*own)));
            costs[own.unwrap_or(first)] += times * cost;
        });
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::SpecSource;

    #[test]
    fn neighbours_move_one_cut_by_one_block() {
        assert_eq!(neighbours(&[0..1, 1..3]), [vec![0..2, 2..3]]);
        assert_eq!(neighbours(&[0..2, 2..4]), [vec![0..1, 1..4], vec![0..3, 3..4]]);
        assert_eq!(neighbours(&[0..3]), Vec::<Vec<Range<usize>>>::new());
    }

    #[test]
    fn block_costs_include_stashes() {
        let overrides = ["options.device_iterations=1".to_owned()];
        let spec = Spec::build(&SpecSource::find("mnist_pipeline", &overrides).expect("bundled"));
        let spec = spec.expect("valid");
        let source = ProgramSource::new(&spec).expect("a graph");
        let placement = source.placement(&source.stages).expect("four stages");
        let lowered = source.lower().expect("can be lowered");
        let program = lowered.program(placement, ProgramExtent::Run).expect("can be lowered");
        // Stashes add to the cost of the operations.
        let costs = block_costs(&program, &source.graph);
        let operations = lowered.block_costs();
        assert_eq!(costs.len(), 4);
        assert!(costs[..3].iter().zip(&operations).all(|(all, own)| all > own), "{costs:?}");
        assert_eq!(costs[3], operations[3], "the last stage goes back at once");
    }
}
