//! Blocks from PopART's annotations (popart willow/include/popart/names.hpp). There is a block for
//! each `__pipeline_stage`. Without stages there is a block for each `__execution_phase`, as in
//! phased execution, with a part for each of its IPUs. Without phases there is a block for each
//! visit of an IPU that `__ipu_number` names, as in virtual graphs without a pipeline.

use super::{IPU, MOST_BLOCKS, NodeBlocks, producers};
use super::{phase_parts, visits};
use crate::graph::{AnnotatedStage, GraphError, ImportProblem, StageAnnotation};
use std::collections::BTreeSet;
use tilescope_onnx::{OnnxGraph, OnnxNode};
use tilescope_report::units::IpuId;

const STAGE: &str = "__pipeline_stage";
const PHASE: &str = "__execution_phase";

/// The kind of annotations of the nodes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationKind {
    /// Stages of a pipeline.
    Stages,
    /// Execution phases.
    Phases,
    /// IPUs without stages or phases.
    Ipus,
}

impl AnnotationKind {
    /// The attribute that distinguishes the nodes of one block from those of another.
    fn key(self) -> &'static str {
        match self {
            Self::Stages => STAGE,
            Self::Phases => PHASE,
            Self::Ipus => IPU,
        }
    }

    /// The prefix of block names, before the number.
    fn word(self) -> &'static str {
        match self {
            Self::Stages => "stage",
            Self::Phases => "phase",
            Self::Ipus => "ipu",
        }
    }
}

/// The kind of annotations of the nodes of a file, if any.
pub(super) fn kind(file: &OnnxGraph) -> Option<AnnotationKind> {
    let kinds = [AnnotationKind::Stages, AnnotationKind::Phases, AnnotationKind::Ipus];
    kinds.into_iter().find(|kind| file.nodes.iter().any(|node| number(node, kind.key()).is_some()))
}

/// The highest IPU that nodes name.
pub(super) fn highest_ipu(file: &OnnxGraph) -> Option<u32> {
    file.nodes.iter().filter_map(|node| number(node, IPU)).max()
}

/// Finds a block for each stage, phase, or visit of an IPU. `None` if no node is annotated.
pub(super) fn find(file: &OnnxGraph) -> Result<Option<NodeBlocks>, GraphError> {
    match kind(file) {
        None => Ok(None),
        Some(AnnotationKind::Ipus) => by_visits(file).map(Some),
        Some(AnnotationKind::Phases) => by_phases(file).map(Some),
        Some(AnnotationKind::Stages) => by_stages(file).map(Some),
    }
}

/// Makes a block for each visit of an IPU: `ipu0`, and `ipu0_2` for the second visit.
fn by_visits(file: &OnnxGraph) -> Result<NodeBlocks, GraphError> {
    let own: Vec<Option<u32>> = file.nodes.iter().map(|node| number(node, IPU)).collect();
    let found = visits::of_nodes(file, &own)?;
    check_count(found.ipus.len(), AnnotationKind::Ipus)?;
    let mut stages = Vec::new();
    for (at, ipu) in found.ipus.iter().enumerate() {
        let before = found.ipus[..at].iter().filter(|other| *other == ipu).count();
        let annotation = StageAnnotation::Visit(IpuId(*ipu));
        stages
            .push(AnnotatedStage { block: format!("ipu{ipu}{}", repetition(before)), annotation });
    }
    Ok(NodeBlocks::of_stages(stages, found.of_node))
}

/// Makes a block for each stage.
fn by_stages(file: &OnnxGraph) -> Result<NodeBlocks, GraphError> {
    let kind = AnnotationKind::Stages;
    let own: Vec<Option<u32>> = file.nodes.iter().map(|node| number(node, kind.key())).collect();
    let of_node = all_numbers(file, &own, kind)?;
    let different: BTreeSet<u32> = of_node.iter().copied().collect();
    check_count(different.len(), kind)?;
    let numbers: Vec<u32> = different.into_iter().collect();
    let mut stages = Vec::new();
    for number in &numbers {
        // A stage without an IPU is on the IPU with its own number.
        let ipu = ipu_of(file, &own, *number)?.unwrap_or(IpuId(*number));
        let annotation = StageAnnotation::Stage(ipu);
        stages.push(AnnotatedStage { block: format!("{}{number}", kind.word()), annotation });
    }
    let of_node =
        of_node.iter().map(|number| numbers.binary_search(number).unwrap_or_default()).collect();
    Ok(NodeBlocks::of_stages(stages, of_node))
}

/// Makes a block for each phase: `phase0`. If a phase has several IPUs, each has a block,
/// `phase0_ipu2`, and another one for each time that it continues with data from the others,
/// `phase0_ipu2_2`.
fn by_phases(file: &OnnxGraph) -> Result<NodeBlocks, GraphError> {
    let kind = AnnotationKind::Phases;
    let own: Vec<Option<u32>> = file.nodes.iter().map(|node| number(node, kind.key())).collect();
    let phases = all_numbers(file, &own, kind)?;
    let ipus: Vec<Option<u32>> = file.nodes.iter().map(|node| number(node, IPU)).collect();
    let found = phase_parts::of_nodes(file, &phases, &ipus)?;
    check_count(found.parts.len(), kind)?;
    let mut stages = Vec::new();
    for part in &found.parts {
        let phase_parts::PhasePart { phase, step, ipu } = *part;
        let of_phase = || found.parts.iter().filter(|other| other.phase == phase);
        let place = match ipu {
            Some(ipu) if of_phase().any(|other| other.ipu != part.ipu) => format!("_ipu{ipu}"),
            _ => String::new(),
        };
        let before = of_phase().filter(|other| other.ipu == ipu && other.step < step).count();
        let block = format!("{}{phase}{place}{}", kind.word(), repetition(before));
        let annotation = StageAnnotation::Phase { number: phase, step, ipu: ipu.map(IpuId) };
        stages.push(AnnotatedStage { block, annotation });
    }
    Ok(NodeBlocks::of_stages(stages, found.of_node))
}

/// The suffix of a block's name after `before` blocks with the same name.
fn repetition(before: usize) -> String {
    if before == 0 { String::new() } else { format!("_{}", before + 1) }
}

fn check_count(count: usize, kind: AnnotationKind) -> Result<(), GraphError> {
    if count <= MOST_BLOCKS {
        return Ok(());
    }
    let are = match kind {
        AnnotationKind::Stages => "stages are annotated",
        AnnotationKind::Phases => "phases are annotated",
        AnnotationKind::Ipus => "changes of the IPU between nodes",
    };
    let problem = ImportProblem::TooManyBlocks { count, are, most: MOST_BLOCKS };
    Err(GraphError::new(kind.key(), problem))
}

/// The value of an annotation. Negative values mean that it is absent.
fn number(node: &OnnxNode, name: &str) -> Option<u32> {
    let value = node.attributes.int(name).ok().flatten()?;
    u32::try_from(value).ok()
}

/// The IPU that the nodes of a stage name, if any.
fn ipu_of(file: &OnnxGraph, own: &[Option<u32>], stage: u32) -> Result<Option<IpuId>, GraphError> {
    let members = own.iter().zip(&file.nodes).filter(|(own, _)| **own == Some(stage));
    let mut named = members.filter_map(|(_, node)| Some((number(node, IPU)?, node)));
    let Some((ipu, first)) = named.next() else { return Ok(None) };
    let Some((other, node)) = named.find(|(other, _)| *other != ipu) else {
        return Ok(Some(IpuId(ipu)));
    };
    let problem = ImportProblem::StageOnTwoIpus {
        stage,
        here: other,
        first: ipu,
        first_node: first.path(),
        key: STAGE,
    };
    Err(GraphError::new(node.path(), problem))
}

/// The stages or phases of all nodes. A node without annotation takes that of its neighbours if
/// they agree, because PopART's graphs may omit it inside a stage.
fn all_numbers(
    file: &OnnxGraph,
    own: &[Option<u32>],
    kind: AnnotationKind,
) -> Result<Vec<u32>, GraphError> {
    let word = kind.word();
    let key = kind.key();
    // The earliest annotated stage after each node, and the node that has it.
    let mut behind: Vec<Option<(u32, usize)>> = vec![None; own.len()];
    for at in (0..own.len()).rev() {
        let reached = own[at].map(|stage| (stage, at)).or(behind[at]);
        for maker in producers(file, &file.nodes[at]) {
            behind[maker] = [behind[maker], reached].into_iter().flatten().min();
        }
    }
    let mut of_node: Vec<u32> = Vec::with_capacity(own.len());
    for (at, node) in file.nodes.iter().enumerate() {
        let before = producers(file, node).map(|maker| (of_node[maker], maker)).max();
        let found = match (own[at], before, behind[at]) {
            (Some(stage), ..) => stage,
            (None, Some((one, maker)), Some((other, reader))) if one != other => {
                let problem = ImportProblem::Between {
                    key,
                    word,
                    from: one,
                    maker: file.nodes[maker].path(),
                    to: other,
                    reader: file.nodes[reader].path(),
                };
                return Err(GraphError::new(node.path(), problem));
            }
            (None, Some((one, _)), _) | (None, None, Some((one, _))) => one,
            (None, None, None) => 0,
        };
        if let Some((later, maker)) = before.filter(|(before, _)| *before > found) {
            let maker = file.nodes[maker].path();
            let problem = ImportProblem::AgainstTheData { word, reader: found, later, maker };
            return Err(GraphError::new(node.path(), problem));
        }
        of_node.push(found);
    }
    Ok(of_node)
}
