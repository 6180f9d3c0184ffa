//! Stages by annotation: single operations in addition to whole blocks.
//!
//! A stage names blocks, operations (`layer3/fc2`, with everything below that name) or patterns
//! (`*/norm`). The most specific name wins. Operations that no stage names join the operations
//! whose results they read, as operations without a virtual graph do in PopART. Gradients and
//! updates join their forward operation. Blocks whose operations are on several stages are divided,
//! so that later passes only see blocks.

use super::phased::phase_ipu;
use crate::graph::{AnnotatedStage, GraphNode, ModelGraph, StageAnnotation};
use crate::shape::{BlockId, TensorId, TensorRole};
use crate::specification::{ExecutionStrategy, Spec, SpecError, StageSpec};
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;

/// The key of the stages.
const STAGES: &str = "options.stages";

/// The specificity of a name for an operation: its block, a pattern, a name above it, or the exact
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameFit {
    Block,
    Pattern,
    Above,
    Exact,
}

/// Divides the blocks of a forward graph as the stages of `spec` require. Returns the stages in
/// terms of the resulting blocks.
///
/// # Errors
/// Returns an error for names of no block and no operation, operations in two stages, stages
/// without operations, and stages in an order in which data cannot flow.
pub(crate) fn divide_blocks(
    spec: &Spec,
    graph: &mut ModelGraph,
) -> Result<Vec<StageSpec>, SpecError> {
    let stages = &spec.options.stages;
    if stages.is_empty() {
        check_shared_weights(spec, graph)?;
        return stages_of_model(spec, graph);
    }
    let whole_blocks = stages.iter().flat_map(|stage| &stage.blocks).eq(&graph.blocks);
    if whole_blocks {
        return Ok(stages.clone());
    }
    let stage_of_node = stage_of_nodes(spec, graph)?;
    check_data_flow(spec, graph, &stage_of_node)?;
    let empty = (0..stages.len()).find(|stage| !stage_of_node.contains(stage));
    if let Some(stage) = empty {
        let problem = format!(
            "stage {stage} has no operations: other stages name all of them more specifically"
        );
        return Err(spec.refuse(STAGES, problem));
    }
    Ok(divide(graph, &stage_of_node, stages))
}

/// The stages of the model itself. Empty if it leaves them open.
fn stages_of_model(spec: &Spec, graph: &ModelGraph) -> Result<Vec<StageSpec>, SpecError> {
    let execution = spec.options.execution;
    let sets = spec.options.execution_phase_settings.stages;
    let last = graph.stages.iter().filter_map(|stage| match stage.annotation {
        StageAnnotation::Phase { number, .. } => Some(number as usize),
        _ => None,
    });
    let phases = last.max().map_or(0, |last| last + 1);
    let mut stages: Vec<StageSpec> = Vec::new();
    for AnnotatedStage { block, annotation } in &graph.stages {
        let ipu = match *annotation {
            StageAnnotation::Stage(ipu) | StageAnnotation::Phase { ipu: Some(ipu), .. } => ipu,
            StageAnnotation::Visit(ipu) => {
                check_visit(spec, block, ipu, &stages)?;
                ipu
            }
            // Phase numbers have no meaning without phased execution, as in PopART.
            StageAnnotation::Phase { .. } if execution != ExecutionStrategy::Phased => {
                return Ok(Vec::new());
            }
            StageAnnotation::Phase { number, ipu: None, .. } => {
                phase_ipu(number as usize, phases, spec.target.ipus, sets)
            }
        };
        stages.push(StageSpec { blocks: vec![block.clone()], ipu });
    }
    Ok(stages)
}

/// Checks that each trained weight is in one part of a step, because its gradients are added up
/// there.
fn check_shared_weights(spec: &Spec, graph: &ModelGraph) -> Result<(), SpecError> {
    if !spec.model.training || spec.options.execution != ExecutionStrategy::Phased {
        return Ok(());
    }
    let mut readers: BTreeMap<TensorId, BlockId> = BTreeMap::new();
    for node in &graph.nodes {
        for weight in &node.inputs {
            if graph.tensor(*weight).role != TensorRole::Parameter {
                continue;
            }
            let first = *readers.entry(*weight).or_insert(node.block);
            let step = graph.phase_step(node.block);
            if first != node.block && step.is_some() && step == graph.phase_step(first) {
                let [one, other] = [first, node.block].map(|block| &graph.blocks[block.0]);
                let problem = format!(
                    "{:?} is trained and read by both {one} and {other} of the file; place its \
                     readers on one IPU",
                    graph.tensor(*weight).name
                );
                return Err(spec.refuse("model.training", problem));
            }
        }
    }
    Ok(())
}

/// Checks that each IPU is one stage in a pipeline that is annotated by IPUs alone, and that data
/// flow from lower to higher IPUs (popart willow/src/transforms/inferpipelinestages.cpp).
fn check_visit(
    spec: &Spec,
    block: &str,
    ipu: IpuId,
    before: &[StageSpec],
) -> Result<(), SpecError> {
    let Some(last) = before.iter().rev().find(|stage| stage.ipu >= ipu) else { return Ok(()) };
    if spec.options.execution != ExecutionStrategy::Pipelined {
        return Ok(());
    }
    let problem = format!(
        "block {block:?} of the file is on IPU {ipu} but depends on IPU {}. Without \
         __pipeline_stage, the IPUs are the pipeline stages in ascending order. Set \
         options.execution = \"sharded\", or annotate nodes with __pipeline_stage",
        last.ipu
    );
    Err(spec.refuse("options.execution", problem))
}

/// The stage of every node.
fn stage_of_nodes(spec: &Spec, graph: &ModelGraph) -> Result<Vec<usize>, SpecError> {
    let mut annotated = annotated_stages(spec, graph)?;
    let mut stage_of_tensor: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    let first = annotated.iter().flatten().copied().min().unwrap_or_default();
    for (node, stage) in graph.nodes.iter().zip(&mut annotated) {
        let read = node.inputs.iter().filter_map(|input| stage_of_tensor[input.0]);
        let own = stage.or(read.max()).unwrap_or(first);
        *stage = Some(own);
        for output in &node.outputs {
            stage_of_tensor[output.0] = Some(own);
        }
    }
    Ok(annotated.into_iter().flatten().collect())
}

/// The stage with the most specific name for each node.
fn annotated_stages(spec: &Spec, graph: &ModelGraph) -> Result<Vec<Option<usize>>, SpecError> {
    let mut closest: Vec<Option<(NameFit, usize)>> = vec![None; graph.nodes.len()];
    for (stage, named) in spec.options.stages.iter().enumerate() {
        for name in &named.blocks {
            let mut found = false;
            for (node, closest) in graph.nodes.iter().zip(&mut closest) {
                let block = &graph.blocks[node.block.0];
                let Some(fit) = fit(name, block, &node.name) else { continue };
                found = true;
                match closest {
                    Some((before, other)) if *before == fit && *other != stage => {
                        let problem = format!(
                            "operation {:?} is in two stages, {other} and {stage}",
                            node.name
                        );
                        return Err(spec.refuse(STAGES, problem));
                    }
                    Some((before, _)) if *before >= fit => {}
                    _ => *closest = Some((fit, stage)),
                }
            }
            if !found {
                return Err(unknown_name(spec, graph, name));
            }
        }
    }
    Ok(closest.into_iter().map(|closest| closest.map(|(_, stage)| stage)).collect())
}

fn unknown_name(spec: &Spec, graph: &ModelGraph, name: &str) -> SpecError {
    let operations = graph.nodes.iter().map(|node| node.name.as_str());
    let blocks = graph.blocks.iter().map(String::as_str);
    let known: Vec<&str> = if name.contains('/') {
        operations.collect()
    } else {
        blocks.chain(operations.filter(|name| !name.contains('/'))).collect()
    };
    let problem = format!("the model has no block or operation named {name:?}");
    spec.refuse(STAGES, problem).nearest(name, &known)
}

/// True if a name in the form of a stage's names matches this operation.
pub(crate) fn is_named(graph: &ModelGraph, node: &GraphNode, name: &str) -> bool {
    fit(name, &graph.blocks[node.block.0], &node.name).is_some()
}

fn fit(name: &str, block: &str, operation: &str) -> Option<NameFit> {
    if operation == name {
        return Some(NameFit::Exact);
    }
    if name == block {
        return Some(NameFit::Block);
    }
    if name.contains('*') {
        return if matches_pattern(name, operation) { Some(NameFit::Pattern) } else { None };
    }
    let below = operation.strip_prefix(name)?;
    if below.is_empty() || below.starts_with('/') { Some(NameFit::Above) } else { None }
}

/// True if `text` matches `pattern`, in which each `*` stands for any characters.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches_pattern(rest, &text[at..]))
}

/// Checks that data flow from earlier stages to later ones, and that each input and weight is on
/// one IPU.
fn check_data_flow(
    spec: &Spec,
    graph: &ModelGraph,
    stage_of_node: &[usize],
) -> Result<(), SpecError> {
    let mut stage_of_repeat: Vec<Option<(usize, &str)>> = vec![None; graph.repeats.len()];
    let mut made_by: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    for (index, (node, stage)) in graph.nodes.iter().zip(stage_of_node).enumerate() {
        if let Some(repeat) = graph.repeats_around(node.repeat).last() {
            let (other, first) = *stage_of_repeat[repeat.0].get_or_insert((*stage, &node.name));
            if other != *stage {
                let problem = format!(
                    "{first:?} is in stage {other} and {:?} in stage {stage}, but both are in the \
                     body of the loop {:?}, which runs on one IPU; place them in one stage, or set \
                     model.loops = \"unroll\"",
                    node.name, graph.repeats[repeat.0].name
                );
                return Err(spec.refuse(STAGES, problem));
            }
        }
        for input in &node.inputs {
            let tensor = graph.tensor(*input);
            let problem = match made_by[input.0] {
                Some(maker) if stage_of_node[maker] > *stage => format!(
                    "operation {:?} of stage {stage} reads the result of {:?} in stage {}: stages \
                     must follow the data flow",
                    node.name, graph.nodes[maker].name, stage_of_node[maker]
                ),
                Some(reader) if tensor.role != TensorRole::Activation => {
                    let one = spec.options.stages[stage_of_node[reader]].ipu;
                    let other = spec.options.stages[*stage].ipu;
                    if one == other {
                        continue;
                    }
                    format!(
                        "{:?} is read by {:?} on IPU {one} and by {:?} on IPU {other}; place both \
                         on one IPU",
                        tensor.name, graph.nodes[reader].name, node.name
                    )
                }
                Some(_) => continue,
                None => {
                    made_by[input.0] = Some(index);
                    continue;
                }
            };
            return Err(spec.refuse(STAGES, problem));
        }
        for output in &node.outputs {
            made_by[output.0] = Some(index);
        }
    }
    Ok(())
}

/// Moves the nodes of each block and stage to a separate block, in the order of the stages. The
/// first part of a block keeps its name. Others are named after their first operation.
fn divide(graph: &mut ModelGraph, stage_of_node: &[usize], stages: &[StageSpec]) -> Vec<StageSpec> {
    let mut parts: Vec<(usize, BlockId)> =
        stage_of_node.iter().copied().zip(graph.nodes.iter().map(|node| node.block)).collect();
    parts.sort_unstable();
    parts.dedup();
    let mut blocks = Vec::new();
    for (at, (stage, block)) in parts.iter().enumerate() {
        let is_first = parts[..at].iter().all(|(_, other)| other != block);
        let mut nodes = graph.nodes.iter().zip(stage_of_node);
        let first_node = nodes.find(|(node, of)| *of == stage && node.block == *block);
        blocks.push(match first_node {
            Some((node, _)) if !is_first => node.name.clone(),
            _ => graph.blocks[block.0].clone(),
        });
    }
    let mut known: Vec<Option<BlockId>> = vec![None; graph.tensors.len()];
    for (node, stage) in graph.nodes.iter_mut().zip(stage_of_node) {
        let part = parts.iter().position(|part| *part == (*stage, node.block));
        let block = BlockId(part.unwrap_or_default());
        node.block = block;
        for tensor in node.inputs.iter().chain(&node.outputs) {
            known[tensor.0].get_or_insert(block);
        }
    }
    for (tensor, block) in graph.tensors.iter_mut().zip(known) {
        tensor.block = block.unwrap_or(BlockId(0));
    }
    graph.blocks = blocks;
    let mut divided: Vec<StageSpec> =
        stages.iter().map(|stage| StageSpec { blocks: Vec::new(), ipu: stage.ipu }).collect();
    for ((stage, _), name) in parts.iter().zip(&graph.blocks) {
        divided[*stage].blocks.push(name.clone());
    }
    divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_wins() {
        let fits =
            ["L1", "*/relu", "L1/relu", "L1/relu/x", "L2"].map(|name| fit(name, "L1", "L1/relu"));
        let expected =
            [Some(NameFit::Block), Some(NameFit::Pattern), Some(NameFit::Exact), None, None];
        assert_eq!(fits, expected);
        assert_eq!(fit("L1/attention", "L1", "L1/attention/query"), Some(NameFit::Above));
    }

    #[test]
    fn patterns_match_any_characters() {
        for (pattern, matches) in
            [("*", true), ("layer*/fc*", true), ("*fc2", true), ("fc*", false), ("*/fc1", false)]
        {
            assert_eq!(matches_pattern(pattern, "layer3/fc2"), matches, "{pattern}");
        }
    }
}
