//! Sums of products by an equation of index letters.

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::MatMulOp;
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[composed("Einsum", einsum)];

/// The letters of two operands and of the result: `bij,bjk->bik`.
struct Equation {
    operands: [Vec<char>; 2],
    result: Vec<char>,
}

impl Equation {
    /// An equation of two operands without repeated letters, the form in which models are written.
    fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (operands, result) = text.split_once("->")?;
        let (a, b) = operands.split_once(',')?;
        let letters = |part: &str| {
            let all: Vec<char> = part.chars().collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.dedup();
            (sorted.len() == all.len() && all.iter().all(char::is_ascii_alphabetic)).then_some(all)
        };
        Some(Self { operands: [letters(a)?, letters(b)?], result: letters(result)? })
    }

    /// Letters of an operand that are, or are not, in the other one and in the result.
    fn letters(&self, operand: usize, in_other: bool, in_result: bool) -> Vec<char> {
        let (own, other) = (&self.operands[operand], &self.operands[1 - operand]);
        let wanted = |letter: &&char| {
            other.contains(letter) == in_other && self.result.contains(letter) == in_result
        };
        own.iter().filter(wanted).copied().collect()
    }
}

/// A grouped matrix product, with the axes of its operands and result brought into order
/// (popart lowers it so: willow/src/patterns/einsum).
fn einsum(node: &mut NodeImport) -> Result<(), GraphError> {
    let text = node.text("equation", "")?;
    let equation = Equation::parse(&text);
    let equation =
        equation.ok_or_else(|| node.refuse(format!("the equation {text:?} is not modelled")))?;
    let groups = equation.letters(0, true, true);
    let summed = equation.letters(0, true, false);
    let [left, right] = [equation.letters(0, false, true), equation.letters(1, false, true)];
    if !equation.letters(0, false, false).is_empty()
        || !equation.letters(1, false, false).is_empty()
    {
        return Err(node.refuse(format!("the equation {text:?} sums a single operand")));
    }
    let (a, b) = (node.input(0)?, node.input(1)?);
    let sizes = [node.shape(a), node.shape(b)];
    let size = |letter: &char| {
        let of = |operand: usize| {
            let at = equation.operands[operand].iter().position(|own| own == letter)?;
            sizes[operand].get(at).copied()
        };
        of(0).or_else(|| of(1)).unwrap_or(1)
    };
    let product = |letters: &[char]| letters.iter().map(size).product::<u64>();
    let [g, m, k, n] = [&groups, &left, &summed, &right].map(|letters| product(letters));
    let a = ordered(node, a, &equation.operands[0], &[&groups[..], &left, &summed].concat())?;
    let a = node.reshape("left", a, &[g, m, k])?;
    let b = ordered(node, b, &equation.operands[1], &[&groups[..], &summed, &right].concat())?;
    let b = node.reshape("right", b, &[g, k, n])?;
    let y = node.apply("", MatMulOp::default(), &[a, b])?;
    let made = [&groups[..], &left, &right].concat();
    let shape: Vec<u64> = made.iter().map(size).collect();
    let y = node.reshape("axes", y, &shape)?;
    let y = ordered(node, y, &made, &equation.result)?;
    node.set(0, y)
}

/// The axes in the order of other letters.
fn ordered(
    node: &mut NodeImport,
    x: TensorId,
    from: &[char],
    to: &[char],
) -> Result<TensorId, GraphError> {
    let place = |letter: &char| from.iter().position(|own| own == letter);
    let permutation: Option<Vec<usize>> = to.iter().map(place).collect();
    let permutation = permutation.ok_or_else(|| node.refuse("a letter is in no operand"))?;
    node.transpose("transpose", x, permutation)
}
