//! Visits of IPUs: nodes on virtual graphs in any order (0, 1, 0, 1), without a pipeline.
//!
//! One IPU works at a time. It runs all nodes that it can before the next IPU takes its turn, in
//! the order of their numbers. A graph whose data flow from lower IPUs to higher ones thus visits
//! each IPU once.

use super::{IPU, producers};
use crate::graph::{GraphError, ImportProblem};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use tilescope_onnx::OnnxGraph;

/// Visits in execution order.
#[derive(Clone, Debug)]
pub(super) struct Visits {
    /// The visit of each node.
    pub of_node: Vec<usize>,
    /// The IPU of each visit.
    pub ipus: Vec<u32>,
}

/// Returns the visits of nodes on the IPUs that they name themselves.
///
/// # Errors
/// Returns an error if a node names no IPU and is between two IPUs.
pub(super) fn of_nodes(file: &OnnxGraph, own: &[Option<u32>]) -> Result<Visits, GraphError> {
    let ipus = ipus_of_nodes(file, own)?;
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); ipus.len()];
    let mut missing: Vec<usize> = vec![0; ipus.len()];
    for (at, node) in file.nodes.iter().enumerate() {
        for maker in producers(file, node) {
            readers[maker].push(at);
            missing[at] += 1;
        }
    }
    let mut ready: BTreeMap<u32, BinaryHeap<Reverse<usize>>> = BTreeMap::new();
    for (at, _) in missing.iter().enumerate().filter(|(_, missing)| **missing == 0) {
        ready.entry(ipus[at]).or_default().push(Reverse(at));
    }
    let mut visits = Visits { of_node: vec![0; ipus.len()], ipus: Vec::new() };
    while let Some(ipu) = next_ipu(&ready, visits.ipus.last().copied()) {
        let visit = visits.ipus.len();
        visits.ipus.push(ipu);
        while let Some(Reverse(at)) = ready.get_mut(&ipu).and_then(BinaryHeap::pop) {
            visits.of_node[at] = visit;
            for reader in &readers[at] {
                missing[*reader] -= 1;
                if missing[*reader] == 0 {
                    ready.entry(ipus[*reader]).or_default().push(Reverse(*reader));
                }
            }
        }
        ready.remove(&ipu);
    }
    Ok(visits)
}

/// The next IPU after the last one that has nodes to run.
fn next_ipu<T>(ready: &BTreeMap<u32, T>, last: Option<u32>) -> Option<u32> {
    let behind = last.and_then(|last| ready.range(last..).next());
    behind.or_else(|| ready.first_key_value()).map(|(ipu, _)| *ipu)
}

/// The IPUs of all nodes. A node that names none is on the IPU that its operands come from or its
/// result goes to, unless these differ.
fn ipus_of_nodes(file: &OnnxGraph, own: &[Option<u32>]) -> Result<Vec<u32>, GraphError> {
    // The first node after each that names an IPU.
    let mut behind: Vec<Option<usize>> = vec![None; own.len()];
    for at in (0..own.len()).rev() {
        let reached = own[at].map(|_| at).or(behind[at]);
        for maker in producers(file, &file.nodes[at]) {
            behind[maker] = [behind[maker], reached].into_iter().flatten().min();
        }
    }
    let mut ipus: Vec<u32> = Vec::with_capacity(own.len());
    for (at, node) in file.nodes.iter().enumerate() {
        let reader = behind[at].and_then(|reader| Some((own[reader]?, reader)));
        let mut before = producers(file, node).map(|maker| (ipus[maker], maker));
        let last = producers(file, node).max().map(|maker| (ipus[maker], maker));
        let ipu = match (own[at], last, reader) {
            (Some(ipu), ..) => ipu,
            (None, Some(_), Some((ipu, _))) if before.any(|(of, _)| of == ipu) => ipu,
            (None, Some((one, maker)), Some((other, reader))) => {
                let problem = ImportProblem::Between {
                    key: IPU,
                    word: "IPU",
                    from: one,
                    maker: file.nodes[maker].path(),
                    to: other,
                    reader: file.nodes[reader].path(),
                };
                return Err(GraphError::new(node.path(), problem));
            }
            (None, Some((ipu, _)), None) | (None, None, Some((ipu, _))) => ipu,
            (None, None, None) => 0,
        };
        ipus.push(ipu);
    }
    Ok(ipus)
}
