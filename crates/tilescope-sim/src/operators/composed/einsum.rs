//! Sums of products by names of axes (ONNX Einsum), as transpositions around one product of groups
//! of matrices.

use super::Composition;
use crate::operators::{GraphError, GraphProblem, MatMulOp, OperationSink, ReduceOp};
use crate::popops::reduce::ReduceOperation;
use crate::shape::TensorId;

/// An operand with a letter for each axis.
#[derive(Clone, Debug)]
struct NamedAxes {
    tensor: TensorId,
    axes: Vec<char>,
}

impl NamedAxes {
    /// The size of an axis, if the operand has it.
    fn size(&self, of: &Composition, axis: char) -> Option<u64> {
        let at = self.axes.iter().position(|own| *own == axis)?;
        Some(of.ty(self.tensor).shape[at])
    }
}

/// Adds the sum of products of `equation`, such as `ij,jk->ik`. It multiplies two operands at a
/// time, from the left. An operand names each axis once, without an ellipsis.
///
/// # Errors
/// Returns an error for equations of another form, and for operands that do not fit together.
pub fn einsum(
    graph: &mut dyn OperationSink,
    name: &str,
    equation: &str,
    operands: &[TensorId],
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let (named, result) = parse(&of, equation, operands)?;
    let mut rest = named.into_iter();
    let mut made = rest.next().ok_or_else(|| of.refuse(GraphProblem::NoFactor))?;
    let mut left: Vec<NamedAxes> = rest.collect();
    let mut number = 0;
    while !left.is_empty() {
        let next = left.remove(0);
        // Axes that a later operand or the result needs stay. All others are summed here.
        let later: Vec<char> =
            left.iter().flat_map(|of| of.axes.clone()).chain(result.clone()).collect();
        made = multiply(&mut of, &format!("term{number}"), [made, next], &later)?;
        number += 1;
    }
    made = sum_others(&mut of, "sum", made, &result)?;
    let permutation: Option<Vec<usize>> =
        result.iter().map(|axis| made.axes.iter().position(|own| own == axis)).collect();
    let permutation = permutation.ok_or_else(|| of.refuse(GraphProblem::NoAxisOfResult))?;
    let shape = of.ty(made.tensor).shape;
    let shape = permutation.iter().map(|axis| shape[*axis]).collect();
    let turned = of.transpose("turn", made.tensor, permutation)?;
    of.reshape("", turned, shape)
}

/// Returns the operands with their letters, and the letters of the result.
fn parse(
    of: &Composition,
    equation: &str,
    operands: &[TensorId],
) -> Result<(Vec<NamedAxes>, Vec<char>), GraphError> {
    let refuse = || of.refuse(GraphProblem::Equation(equation.to_owned()));
    let text: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (terms, result) = match text.split_once("->") {
        Some((terms, result)) => (terms.to_string(), result.chars().collect()),
        None => (text.clone(), implied_result(&text)),
    };
    let terms: Vec<Vec<char>> = terms.split(',').map(|term| term.chars().collect()).collect();
    if terms.len() != operands.len() {
        return Err(refuse());
    }
    let mut sizes: Vec<(char, u64)> = Vec::new();
    for (term, operand) in terms.iter().zip(operands) {
        let ty = of.ty(*operand);
        if term.len() != ty.shape.len() {
            return Err(refuse());
        }
        for (at, (letter, size)) in term.iter().zip(&ty.shape).enumerate() {
            let known = sizes.iter().find(|(known, _)| known == letter);
            let differs = known.is_some_and(|(_, known)| known != size);
            if !letter.is_alphabetic() || term[..at].contains(letter) || differs {
                return Err(refuse());
            }
            sizes.push((*letter, *size));
        }
    }
    let named = terms.into_iter().zip(operands);
    Ok((named.map(|(axes, tensor)| NamedAxes { tensor: *tensor, axes }).collect(), result))
}

/// The letters of the result of an equation without an arrow: those that occur once, in
/// alphabetical order.
fn implied_result(terms: &str) -> Vec<char> {
    let letters: Vec<char> = terms.chars().filter(|letter| letter.is_alphabetic()).collect();
    let mut result: Vec<char> = letters
        .iter()
        .copied()
        .filter(|letter| letters.iter().filter(|other| *other == letter).count() == 1)
        .collect();
    result.sort_unstable();
    result
}

/// Sums an operand over the axes that are not needed.
fn sum_others(
    of: &mut Composition,
    part: &str,
    operand: NamedAxes,
    needed: &[char],
) -> Result<NamedAxes, GraphError> {
    let axes: Vec<usize> =
        (0..operand.axes.len()).filter(|axis| !needed.contains(&operand.axes[*axis])).collect();
    if axes.is_empty() {
        return Ok(operand);
    }
    let sum = ReduceOp::new(ReduceOperation::Add, axes);
    let tensor = of.apply(part, sum, &[operand.tensor])?;
    let axes = operand.axes.into_iter().filter(|axis| needed.contains(axis)).collect();
    Ok(NamedAxes { tensor, axes })
}

/// Multiplies two operands. Shared axes that are needed later are groups. Other shared axes are
/// summed over. The remaining axes are rows or columns.
fn multiply(
    of: &mut Composition,
    part: &str,
    [a, b]: [NamedAxes; 2],
    later: &[char],
) -> Result<NamedAxes, GraphError> {
    let needed_a = [later, &b.axes].concat();
    let needed_b = [later, &a.axes].concat();
    let a = sum_others(of, &format!("{part}/sumA"), a, &needed_a)?;
    let b = sum_others(of, &format!("{part}/sumB"), b, &needed_b)?;
    let mut groups = Vec::new();
    let mut summed = Vec::new();
    let mut rows = Vec::new();
    for axis in a.axes.iter().copied() {
        if !b.axes.contains(&axis) {
            rows.push(axis);
        } else if later.contains(&axis) {
            groups.push(axis);
        } else {
            summed.push(axis);
        }
    }
    let mut columns = b.axes.clone();
    columns.retain(|axis| !a.axes.contains(axis));
    let x = matrices(of, &format!("{part}/a"), &a, [&groups, &rows, &summed])?;
    let w = matrices(of, &format!("{part}/b"), &b, [&groups, &summed, &columns])?;
    let product = of.apply(&format!("{part}/product"), MatMulOp::default(), &[x, w])?;
    let axes = [groups, rows, columns].concat();
    let mut shape = Vec::new();
    for axis in &axes {
        shape.push(a.size(of, *axis).or(b.size(of, *axis)).unwrap_or(1));
    }
    Ok(NamedAxes { tensor: of.reshape(&format!("{part}/made"), product, shape)?, axes })
}

/// Returns an operand as groups of matrices with the given axes.
fn matrices(
    of: &mut Composition,
    part: &str,
    operand: &NamedAxes,
    order: [&[char]; 3],
) -> Result<TensorId, GraphError> {
    let shape = of.ty(operand.tensor).shape;
    let mut sizes = Vec::new();
    let mut permutation = Vec::new();
    for axes in order {
        let mut size = 1;
        for axis in axes {
            let Some(place) = operand.axes.iter().position(|own| own == axis) else { continue };
            size *= shape[place];
            permutation.push(place);
        }
        sizes.push(size);
    }
    let turned = of.transpose(&format!("{part}/turn"), operand.tensor, permutation)?;
    of.reshape(&format!("{part}/matrices"), turned, sizes)
}
