//! Arithmetic, comparisons and logic, element by element.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{NodeView, TensorType};

/// The values of an element-wise operator; `None` for other operators and without a value.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    match view.op {
        "Cast" | "CastLike" => cast(&content(view, 0)?.data, output),
        "Max" | "Min" | "Sum" => fold_operands(view, output),
        "Not" => match &content(view, 0)?.data {
            ConstantData::Bools(values) => {
                Some(ConstantData::Bools(values.iter().map(|value| !value).collect()))
            }
            _ => None,
        },
        op => match (float_function(op), view.inputs.len()) {
            (Some(function), 1) => unary(view.op, function, &content(view, 0)?.data),
            (None, 2) => binary(view, &output.dims, content(view, 0)?, content(view, 1)?),
            _ => None,
        },
    }
}

/// The function of a unary operator on floats.
fn float_function(op: &str) -> Option<fn(f64) -> f64> {
    Some(match op {
        "Abs" => f64::abs,
        "Ceil" => f64::ceil,
        "Cos" => f64::cos,
        "Exp" => f64::exp,
        "Floor" => f64::floor,
        "Log" => f64::ln,
        "Neg" => |value| -value,
        "Reciprocal" => f64::recip,
        "Relu" => |value| value.max(0.0),
        "Round" => f64::round_ties_even,
        "Sign" => |value| if value == 0.0 { 0.0 } else { value.signum() },
        "Sin" => f64::sin,
        "Sqrt" => f64::sqrt,
        "Tanh" => f64::tanh,
        _ => return None,
    })
}

fn unary(op: &str, function: fn(f64) -> f64, data: &ConstantData) -> Option<ConstantData> {
    match data {
        ConstantData::Floats(values) => {
            Some(ConstantData::Floats(values.iter().map(|value| function(*value)).collect()))
        }
        ConstantData::Ints(values) => values
            .iter()
            .map(|value| match op {
                "Abs" => value.checked_abs(),
                "Neg" => value.checked_neg(),
                "Relu" => Some((*value).max(0)),
                "Sign" => Some(value.signum()),
                _ => None,
            })
            .collect::<Option<_>>()
            .map(ConstantData::Ints),
        ConstantData::Bools(_) => None,
    }
}

/// Values converted to another type: floats are truncated towards zero, anything but zero is true.
fn cast(data: &ConstantData, output: &TensorType) -> Option<ConstantData> {
    let floats =
        |data: &ConstantData| ConstantTensor { dims: Vec::new(), data: data.clone() }.floats();
    if output.element.is_float() {
        return Some(ConstantData::Floats(floats(data)));
    }
    if output.element.is_integer() {
        return Some(ConstantData::Ints(match data {
            ConstantData::Ints(values) => values.clone(),
            ConstantData::Bools(values) => values.iter().map(|value| i64::from(*value)).collect(),
            #[expect(clippy::cast_possible_truncation, reason = "what a cast does")]
            ConstantData::Floats(values) => values.iter().map(|value| *value as i64).collect(),
        }));
    }
    let is_bool = output.element == crate::element::ElementKind::Bool;
    if is_bool {
        Some(ConstantData::Bools(floats(data).iter().map(|value| *value != 0.0).collect()))
    } else {
        None
    }
}

/// An operator of any number of operands, applied pairwise.
fn fold_operands(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let first = content(view, 0)?;
    let data = index::take(&first.data, &index::repeated(&first.dims, &output.dims)?)?;
    let mut result = ConstantTensor { dims: output.dims.clone(), data };
    for at in 1..view.inputs.len() {
        result.data = binary(view, &output.dims, &result, content(view, at)?)?;
    }
    Some(result.data)
}

fn binary(
    view: &NodeView,
    dims: &[u64],
    left: &ConstantTensor,
    right: &ConstantTensor,
) -> Option<ConstantData> {
    let places = index::repeated(&left.dims, dims)?;
    let others = index::repeated(&right.dims, dims)?;
    let pairs = places.iter().zip(&others);
    match (&left.data, &right.data) {
        (ConstantData::Ints(left), ConstantData::Ints(right)) => {
            let pairs = pairs.map(|(a, b)| Some((*left.get(*a)?, *right.get(*b)?)));
            ints(view, &pairs.collect::<Option<Vec<_>>>()?)
        }
        (ConstantData::Floats(left), ConstantData::Floats(right)) => {
            let pairs = pairs.map(|(a, b)| Some((*left.get(*a)?, *right.get(*b)?)));
            floats(view, &pairs.collect::<Option<Vec<_>>>()?)
        }
        (ConstantData::Bools(left), ConstantData::Bools(right)) => {
            let pairs = pairs.map(|(a, b)| Some((*left.get(*a)?, *right.get(*b)?)));
            bools(view.op, &pairs.collect::<Option<Vec<_>>>()?)
        }
        // Powers may have an exponent of another type.
        (ConstantData::Floats(_), ConstantData::Ints(_)) if view.op == "Pow" => {
            let data = ConstantData::Floats(right.floats());
            binary(view, dims, left, &ConstantTensor { dims: right.dims.clone(), data })
        }
        _ => None,
    }
}

/// Comparisons of two values of any type.
fn compare<T: PartialOrd>(op: &str) -> Option<fn(&T, &T) -> bool> {
    Some(match op {
        "Equal" => |a, b| a == b,
        "Greater" => |a, b| a > b,
        "GreaterOrEqual" => |a, b| a >= b,
        "Less" => |a, b| a < b,
        "LessOrEqual" => |a, b| a <= b,
        _ => return None,
    })
}

fn compared<T: PartialOrd>(op: &str, pairs: &[(T, T)]) -> Option<ConstantData> {
    let compare = compare::<T>(op)?;
    Some(ConstantData::Bools(pairs.iter().map(|(a, b)| compare(a, b)).collect()))
}

fn ints(view: &NodeView, pairs: &[(i64, i64)]) -> Option<ConstantData> {
    // The remainder has the sign of the divisor, as in Python, unless the attribute selects that of
    // C.
    let is_c_remainder = view.attributes.int("fmod").ok()? == Some(1);
    let of: fn(i64, i64) -> Option<i64> = match view.op {
        "Add" | "Sum" => i64::checked_add,
        "Sub" => i64::checked_sub,
        "Mul" => i64::checked_mul,
        "Div" => i64::checked_div,
        "Mod" if is_c_remainder => i64::checked_rem,
        "Mod" => |a, b| {
            let rest = a.checked_rem(b)?;
            let differs = rest != 0 && (rest < 0) != (b < 0);
            Some(if differs { rest + b } else { rest })
        },
        "Pow" => |a, b| a.checked_pow(u32::try_from(b).ok()?),
        "Max" => |a, b| Some(a.max(b)),
        "Min" => |a, b| Some(a.min(b)),
        op => return compared(op, pairs),
    };
    pairs.iter().map(|(a, b)| of(*a, *b)).collect::<Option<_>>().map(ConstantData::Ints)
}

fn floats(view: &NodeView, pairs: &[(f64, f64)]) -> Option<ConstantData> {
    let is_c_remainder = view.attributes.int("fmod").ok()? == Some(1);
    let of: fn(f64, f64) -> f64 = match view.op {
        "Add" | "Sum" => |a, b| a + b,
        "Sub" => |a, b| a - b,
        "Mul" => |a, b| a * b,
        "Div" => |a, b| a / b,
        "Mod" if is_c_remainder => |a, b| a % b,
        "Pow" => f64::powf,
        "Max" => f64::max,
        "Min" => f64::min,
        op => return compared(op, pairs),
    };
    Some(ConstantData::Floats(pairs.iter().map(|(a, b)| of(*a, *b)).collect()))
}

fn bools(op: &str, pairs: &[(bool, bool)]) -> Option<ConstantData> {
    let of: fn(bool, bool) -> bool = match op {
        "And" => |a, b| a && b,
        "Or" => |a, b| a || b,
        "Xor" => |a, b| a != b,
        op => return compared(op, pairs),
    };
    Some(ConstantData::Bools(pairs.iter().map(|(a, b)| of(*a, *b)).collect()))
}
