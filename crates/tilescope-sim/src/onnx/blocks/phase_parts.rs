//! Parts of phases: the work of each IPU of a set up to the point where it waits for results of
//! another IPU in the same phase.
//!
//! PopTorch's parallel phases place a phase on several IPUs, (0, 2) or (1, 3), each with its own
//! nodes. The IPUs may exchange results before the phase is over (popart
//! willow/include/popart/names.hpp `sExecutionPhaseAttribute`, `sVirtualGraphAttribute`).

use super::producers;
use crate::graph::{GraphError, ImportProblem};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_onnx::OnnxGraph;

/// The work of one IPU in a step of a phase. `ipu` is `None` if the phase leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PhasePart {
    pub phase: u32,
    pub step: u32,
    pub ipu: Option<u32>,
}

/// The parts of all phases.
#[derive(Clone, Debug)]
pub(super) struct PhaseParts {
    /// The parts in execution order.
    pub parts: Vec<PhasePart>,
    /// The part of each node.
    pub of_node: Vec<usize>,
}

/// Returns the parts of nodes with these phases, on the IPUs that they name themselves.
///
/// # Errors
/// Returns an error if a node names no IPU and reads results of several IPUs of its phase.
pub(super) fn of_nodes(
    file: &OnnxGraph,
    phases: &[u32],
    own: &[Option<u32>],
) -> Result<PhaseParts, GraphError> {
    let ipus = ipus_of_nodes(file, phases, own)?;
    let mut of_node: Vec<PhasePart> = Vec::with_capacity(phases.len());
    for (at, node) in file.nodes.iter().enumerate() {
        let phase = phases[at];
        let ipu = ipus[at];
        let makers = producers(file, node).map(|maker| of_node[maker]);
        let makers = makers.filter(|maker| maker.phase == phase);
        let behind = makers.map(|maker| maker.step + u32::from(maker.ipu != ipu));
        of_node.push(PhasePart { phase, step: behind.max().unwrap_or(0), ipu });
    }
    let different: BTreeSet<PhasePart> = of_node.iter().copied().collect();
    let parts: Vec<PhasePart> = different.into_iter().collect();
    let of_node =
        of_node.iter().map(|part| parts.binary_search(part).unwrap_or_default()).collect();
    Ok(PhaseParts { parts, of_node })
}

/// The IPUs of all nodes. A node that names none is on the IPU that its operands come from or its
/// result goes to in its phase. If no other node of a phase leads to an IPU, it is on the lowest
/// IPU that the phase names.
fn ipus_of_nodes(
    file: &OnnxGraph,
    phases: &[u32],
    own: &[Option<u32>],
) -> Result<Vec<Option<u32>>, GraphError> {
    // The IPU of the first node after each that names one, in the same phase.
    let mut behind: Vec<Option<(usize, u32)>> = vec![None; own.len()];
    for at in (0..own.len()).rev() {
        let reached = own[at].map(|ipu| (at, ipu)).or(behind[at]);
        for maker in producers(file, &file.nodes[at]).filter(|maker| phases[*maker] == phases[at]) {
            behind[maker] = [behind[maker], reached].into_iter().flatten().min();
        }
    }
    let mut lowest: BTreeMap<u32, u32> = BTreeMap::new();
    for (phase, ipu) in phases.iter().zip(own) {
        if let Some(ipu) = ipu {
            lowest.entry(*phase).and_modify(|known| *known = (*known).min(*ipu)).or_insert(*ipu);
        }
    }
    let mut ipus: Vec<Option<u32>> = Vec::with_capacity(own.len());
    for (at, node) in file.nodes.iter().enumerate() {
        if own[at].is_some() {
            ipus.push(own[at]);
            continue;
        }
        let makers = producers(file, node).filter(|maker| phases[*maker] == phases[at]);
        let made: Vec<(u32, usize)> =
            makers.filter_map(|maker| Some((ipus[maker]?, maker))).collect();
        let other = made.iter().find(|(ipu, _)| *ipu != made[0].0);
        if let (Some((one, maker)), Some((other, other_maker))) = (made.first(), other) {
            let problem = ImportProblem::ReadsTwoIpus {
                one: *one,
                maker: file.nodes[*maker].path(),
                other: *other,
                other_maker: file.nodes[*other_maker].path(),
                phase: phases[at],
            };
            return Err(GraphError::new(node.path(), problem));
        }
        let made = made.first().map(|(ipu, _)| *ipu);
        let read = behind[at].map(|(_, ipu)| ipu);
        ipus.push(made.or(read).or_else(|| lowest.get(&phases[at]).copied()));
    }
    Ok(ipus)
}
