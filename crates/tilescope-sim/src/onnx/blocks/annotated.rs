//! Blocks by PopART's annotations: a block for each `__pipeline_stage`, or for each
//! `__execution_phase`, on the IPU that `__ipu_number` names (popart
//! willow/include/popart/names.hpp).

use super::{MOST_BLOCKS, NodeBlocks, producers};
use crate::graph::{AnnotatedStage, GraphError};
use std::collections::BTreeSet;
use tilescope_onnx::{OnnxGraph, OnnxNode};
use tilescope_report::units::IpuId;

const STAGE: &str = "__pipeline_stage";
const IPU: &str = "__ipu_number";
const PHASE: &str = "__execution_phase";

/// The stage and IPU of a node, as far as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Annotation {
    stage: u32,
    ipu: u32,
}

/// A block for each stage; none where no node is annotated.
pub(super) fn find(file: &OnnxGraph) -> Result<Option<NodeBlocks>, GraphError> {
    let has = |name: &str| file.nodes.iter().any(|node| number(node, name).is_some());
    let (key, word) = if has(STAGE) {
        (STAGE, "stage")
    } else if has(IPU) {
        (IPU, "ipu")
    } else if has(PHASE) {
        (PHASE, "phase")
    } else {
        return Ok(None);
    };
    let own: Vec<Option<Annotation>> = file
        .nodes
        .iter()
        .map(|node| {
            let stage = number(node, key)?;
            Some(Annotation { stage, ipu: number(node, IPU).unwrap_or(stage) })
        })
        .collect();
    let of_node = all_stages(file, &own)?;
    let different: BTreeSet<u32> = of_node.iter().copied().collect();
    if different.len() > MOST_BLOCKS {
        let problem = format!("{} {word}s are annotated, more than {MOST_BLOCKS}", different.len());
        return Err(GraphError { node: key.to_string(), problem });
    }
    let stages: Vec<u32> = different.into_iter().collect();
    let names: Vec<String> = stages.iter().map(|stage| format!("{word}{stage}")).collect();
    let written = if key == PHASE && !has(IPU) {
        Vec::new()
    } else {
        stages
            .iter()
            .map(|stage| stage_on_ipu(file, &own, *stage, word))
            .collect::<Result<_, _>>()?
    };
    let position = |stage: &u32| stages.binary_search(stage).unwrap_or_default();
    let of_node = of_node.iter().map(position).collect();
    Ok(Some(NodeBlocks { names, of_node, stages: written }))
}

/// The value of an annotation; negative ones mean that there is none.
fn number(node: &OnnxNode, name: &str) -> Option<u32> {
    let value = node.attributes.int(name).ok().flatten()?;
    u32::try_from(value).ok()
}

/// The IPU that the nodes of a stage name.
fn stage_on_ipu(
    file: &OnnxGraph,
    own: &[Option<Annotation>],
    stage: u32,
    word: &str,
) -> Result<AnnotatedStage, GraphError> {
    let of_stage = || own.iter().zip(&file.nodes).filter_map(|(own, node)| Some(((*own)?, node)));
    let mut of_stage = of_stage().filter(|(own, _)| own.stage == stage);
    let Some((first, named)) = of_stage.next() else {
        return Ok(AnnotatedStage { block: format!("{word}{stage}"), ipu: IpuId(stage) });
    };
    if let Some((other, node)) = of_stage.find(|(own, _)| own.ipu != first.ipu) {
        let problem = format!(
            "{word} {stage} is on IPU {} here and on IPU {} at {:?}",
            other.ipu,
            first.ipu,
            named.path()
        );
        return Err(GraphError { node: node.path(), problem });
    }
    Ok(AnnotatedStage { block: format!("{word}{stage}"), ipu: IpuId(first.ipu) })
}

/// The stages of all nodes. One without annotation takes the stage of its neighbours where they
/// agree, as PopART's graphs may leave it out inside a stage.
fn all_stages(file: &OnnxGraph, own: &[Option<Annotation>]) -> Result<Vec<u32>, GraphError> {
    let stage = |at: usize| own[at].map(|own| own.stage);
    // The earliest annotated stage behind each node, and who has it.
    let mut behind: Vec<Option<(u32, usize)>> = vec![None; own.len()];
    for at in (0..own.len()).rev() {
        let reached = stage(at).map(|stage| (stage, at)).or(behind[at]);
        for maker in producers(file, &file.nodes[at]) {
            behind[maker] = [behind[maker], reached].into_iter().flatten().min();
        }
    }
    let mut of_node: Vec<u32> = Vec::with_capacity(own.len());
    for (at, node) in file.nodes.iter().enumerate() {
        let before = producers(file, node).map(|maker| (of_node[maker], maker)).max();
        let found = match (stage(at), before, behind[at]) {
            (Some(stage), ..) => stage,
            (None, Some((one, maker)), Some((other, reader))) if one != other => {
                let problem = format!(
                    "it has no {STAGE} and lies between stage {one} ({:?}) and stage {other} ({:?})",
                    file.nodes[maker].path(),
                    file.nodes[reader].path()
                );
                return Err(GraphError { node: node.path(), problem });
            }
            (None, Some((one, _)), _) | (None, None, Some((one, _))) => one,
            (None, None, None) => 0,
        };
        if let Some((later, maker)) = before.filter(|(before, _)| *before > found) {
            let problem = format!(
                "stage {found} reads what {:?} of stage {later} makes: stages follow the order of \
                 the data",
                file.nodes[maker].path()
            );
            return Err(GraphError { node: node.path(), problem });
        }
        of_node.push(found);
    }
    Ok(of_node)
}
