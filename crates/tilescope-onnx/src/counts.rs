//! Figures of a graph: parameters, multiplications, operators.

use crate::check;
use crate::file::OnnxFile;
use crate::graph::{OnnxGraph, OnnxNode, ValueId, ValueSource, full_op};
use crate::shape::{AttentionDims, EinsumLabels};
use std::collections::{BTreeMap, BTreeSet};

/// Operands of `BatchNormalization` that are statistics, and so not trained.
const STATISTICS: std::ops::RangeInclusive<usize> = 3..=4;

impl OnnxGraph {
    /// Operator -> number of remaining nodes, without parts of other nodes. A node in the body of a
    /// loop counts once for each iteration. Operators of non-standard sets have the prefix of their
    /// set: `com.example.Custom`.
    #[must_use]
    pub fn op_counts(&self) -> BTreeMap<String, u64> {
        let whole = self.nodes.iter().filter(|node| node.source.is_none());
        count_ops(whole.map(|node| (&*node.domain, &*node.op, self.runs(node))))
    }

    /// Elements of all floating-point initialisers that nodes read, without the statistics of batch
    /// normalisations. An initialiser with several readers counts once.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        let mut read: BTreeSet<ValueId> = self.outputs.iter().copied().collect();
        for node in &self.nodes {
            let is_statistic =
                |at: usize| node.op == "BatchNormalization" && STATISTICS.contains(&at);
            let operands = node.inputs.iter().enumerate().filter(|(at, _)| !is_statistic(*at));
            read.extend(operands.filter_map(|(_, operand)| *operand));
        }
        let values = read.into_iter().map(|id| self.value(id));
        let parameters = values
            .filter(|value| value.source == ValueSource::Initializer && value.element.is_float());
        parameters.map(|value| value.elements()).sum()
    }

    /// Multiply-accumulates of one forward pass: those of `Conv`, `ConvTranspose`, `Gemm`,
    /// `MatMul`, `Einsum`, `Attention` and recurrent layers.
    #[must_use]
    pub fn macs(&self) -> u64 {
        let all =
            self.nodes.iter().map(|node| self.node_macs(node).saturating_mul(self.runs(node)));
        all.fold(0, u64::saturating_add)
    }

    /// The multiplications of one run of a node; 0 for operators that are not counted.
    #[must_use]
    pub fn node_macs(&self, node: &OnnxNode) -> u64 {
        if node.domain.is_empty() { self.standard_macs(node).unwrap_or(0) } else { 0 }
    }

    fn dims(&self, operands: &[Option<ValueId>], at: usize) -> Option<&[u64]> {
        operands.get(at).copied().flatten().map(|id| &*self.value(id).dims)
    }

    fn standard_macs(&self, node: &OnnxNode) -> Option<u64> {
        let get_dims = |at| self.dims(&node.inputs, at);
        if node.is_recurrent() {
            // Each step of each sample uses all weights of inputs and states; any of the outputs
            // may be left out.
            let [first, second, _] = get_dims(0)? else { return None };
            let of_inputs = product(get_dims(1)?, &[*first, *second])?;
            return of_inputs.checked_add(product(get_dims(2)?, &[*first, *second])?);
        }
        let output = self.dims(&node.outputs, 0)?;
        match &*node.op {
            // Every element of the output sums over one filter.
            "Conv" => product(output, get_dims(1)?.get(1..)?),
            // Every element of the input contributes to the outputs under one filter.
            "ConvTranspose" => product(get_dims(0)?, get_dims(1)?.get(1..)?),
            "Gemm" => {
                let [rows, columns] = get_dims(0)? else { return None };
                let is_transposed = node.attributes.int("transA").ok()?.unwrap_or(0) != 0;
                product(output, &[if is_transposed { *rows } else { *columns }])
            }
            "MatMul" => product(output, &[*get_dims(0)?.last()?]),
            "Einsum" => {
                let operands: Option<Vec<&[u64]>> = (0..node.inputs.len()).map(get_dims).collect();
                let operands = operands?;
                let equation = node.attributes.text("equation").ok()??;
                let labels = EinsumLabels::new(equation, &operands)?;
                let sizes: Vec<u64> = labels.sizes.into_values().collect();
                product(&sizes, &[operands.len() as u64 - 1])
            }
            "Attention" => {
                let shapes = [get_dims(0)?, get_dims(1)?, get_dims(2)?];
                AttentionDims::of_shapes(shapes, get_dims(4), &node.attributes).ok()??.macs()
            }
            _ => None,
        }
    }
}

impl OnnxFile {
    /// Operator -> number of nodes in the graph of the file, named as by [`OnnxGraph::op_counts`].
    /// Nodes of functions and branches are not counted.
    #[must_use]
    pub fn op_counts(&self) -> BTreeMap<String, u64> {
        let nodes = self.model.graph.iter().flat_map(|graph| &graph.nodes);
        count_ops(nodes.map(|node| (check::standard_domain(&node.domain), &*node.op, 1)))
    }
}

fn count_ops<'a>(nodes: impl Iterator<Item = (&'a str, &'a str, u64)>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (domain, op, runs) in nodes {
        let count = counts.entry((domain, op)).or_insert(0_u64);
        *count = count.saturating_add(runs);
    }
    counts.into_iter().map(|((domain, op), count)| (full_op(domain, op), count)).collect()
}

fn product(left: &[u64], right: &[u64]) -> Option<u64> {
    left.iter().chain(right).try_fold(1_u64, |product, size| product.checked_mul(*size))
}
