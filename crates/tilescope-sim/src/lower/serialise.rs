//! Linear layers computed in parts, one after the other (poptorch.SerializedMatMul, PopART
//! willow/src/transforms/serializematmuls.cpp): temporaries of one part at a time.
//!
//! One dimension of the layer is cut. In each of its three products that dimension belongs to two
//! of the three tensors: operands that have it are sliced, a result that has it is put together,
//! and a result that lacks it is added up.

use super::context::Lowering;
use super::elementwise::{self, Binary};
use super::work::{Phase, Place, Temporary, Work, WorkItem};
use crate::graph::{Node, TensorId};
use crate::ops::{Product, Sizes};
use crate::planner::PoplibsOptions;
use crate::planner::estimate::elementwise::dynamic_slice;
use crate::spec::SerializeMatmul;
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// Dimension of a layer `x[m,k] . w[k,n]` that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutDim {
    /// `m`, rows of the input.
    InputChannels,
    /// `k`, which is summed over.
    Reducing,
    /// `n`, columns of the weights.
    OutputChannels,
}

/// How layers are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serialisation {
    /// The dimension.
    pub dim: CutDim,
    /// Into how many parts.
    pub parts: u64,
}

/// Into how many parts the tensors of a layer are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// `x[m,k]` and its gradient.
    pub x: u64,
    /// `w[k,n]` and its gradient.
    pub w: u64,
    /// `y[m,n]` and its gradient.
    pub y: u64,
}

impl Cut {
    /// Nothing is cut.
    pub(crate) const NONE: Self = Self { x: 1, w: 1, y: 1 };

    /// The two operands and the result of a product.
    fn of(self, product: Product) -> ([u64; 2], u64) {
        match product {
            Product::Forward => ([self.x, self.w], self.y),
            Product::InputGradient => ([self.y, self.w], self.x),
            Product::WeightGradient => ([self.x, self.y], self.w),
        }
    }

    /// Parts of the loop.
    fn parts(self) -> u64 {
        self.x.max(self.w).max(self.y)
    }
}

impl Serialisation {
    /// The cut that was asked for, if any was.
    pub(crate) fn chosen(options: &PoplibsOptions) -> Option<Self> {
        let dim = match options.serialize_matmul {
            SerializeMatmul::None => return None,
            SerializeMatmul::InputChannels => CutDim::InputChannels,
            SerializeMatmul::ReducingDim => CutDim::Reducing,
            SerializeMatmul::OutputChannels => CutDim::OutputChannels,
        };
        Some(Self { dim, parts: options.serialize_matmul_factor })
    }

    /// Sizes of one part of a layer, and how its tensors are cut. Products side by side, as in
    /// attention, are no layer, and what does not divide evenly stays whole.
    pub(crate) fn cut(self, whole: Sizes) -> Option<(Sizes, Cut)> {
        let Self { dim, parts } = self;
        let mut part = whole;
        let size = match dim {
            CutDim::InputChannels => &mut part.m,
            CutDim::Reducing => &mut part.k,
            CutDim::OutputChannels => &mut part.n,
        };
        if whole.groups > 1 || parts < 2 || !size.is_multiple_of(parts) {
            return None;
        }
        *size /= parts;
        let cut = match dim {
            CutDim::InputChannels => Cut { x: parts, w: 1, y: parts },
            CutDim::Reducing => Cut { x: parts, w: parts, y: 1 },
            CutDim::OutputChannels => Cut { x: 1, w: parts, y: parts },
        };
        Some((part, cut))
    }
}

impl Lowering<'_> {
    /// The loop over the parts of a product, around the `work` of one part.
    pub(super) fn in_parts(&mut self, node: &Node, product: Product, cut: Cut, work: Work) -> Work {
        let (operands, result) = cut.of(product);
        let mut body = Work::default();
        let mut temporaries = Vec::new();
        for ((tensor, parts), name) in node.inputs.iter().zip(operands).zip(["input", "weights"]) {
            if parts > 1 {
                let name = format!("serialSlice/{name}");
                body.push(self.slices(*tensor, parts, &name, "DynamicSlice1d"));
                temporaries.push((name, self.part_bytes(*tensor, parts), 0));
            }
        }
        let before = body.phases().len();
        body.append(work);
        let made = node.outputs[0];
        let dtype = self.ty(made).dtype;
        let elements = self.part_elements(made, result);
        temporaries.push(("serialResult".to_string(), self.part_bytes(made, result), before));
        let mut whole = Work::default();
        if result > 1 {
            body.push(self.slices(made, result, "serialUpdate", "DynamicUpdateSlice1D"));
        } else {
            whole.push(elementwise::fill("serialResult/zero", dtype, &elements));
            let name = "serialResult/add";
            body.push(elementwise::binary_in_place(name, Binary::Add, dtype, &elements));
        }
        let end = body.phases().len();
        body.temporaries.extend(temporaries.into_iter().map(|(name, bytes, from)| Temporary {
            name,
            category: Category::Variable,
            bytes,
            place: Place::Any,
            live: from..end,
        }));
        let start = whole.phases().len();
        whole.items.push(WorkItem::Loop { times: cut.parts(), body: body.items });
        whole.temporaries.extend(body.temporaries.into_iter().map(|each| each.later(start)));
        whole
    }

    /// Elements of one part on each tile: every tile holds its share of all parts.
    fn part_elements(&mut self, tensor: TensorId, parts: u64) -> TileRuns<u64> {
        self.layout_or_linear(tensor).elements.map(|count| count.div_ceil(parts))
    }

    fn part_bytes(&mut self, tensor: TensorId, parts: u64) -> TileRuns<u64> {
        let bytes = self.ty(tensor).dtype.bytes();
        self.part_elements(tensor, parts).map(|count| count * bytes)
    }

    /// Copies of one part out of a tensor, or into it.
    fn slices(&mut self, tensor: TensorId, parts: u64, name: &str, vertex: &str) -> Phase {
        let (dtype, machine) = (self.ty(tensor).dtype, self.machine);
        let elements = self.part_elements(tensor, parts);
        let vertex = format!("popops::{vertex}<{}>", dtype.poplar_name());
        elementwise::phase(name, vertex, 2, &elements, |count| {
            dynamic_slice(&machine, *count, dtype)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { groups: 1, m: 6, k: 8, n: 10 };

    #[test]
    fn a_dimension_belongs_to_two_tensors() {
        for (dim, cut) in [
            (CutDim::InputChannels, Cut { x: 2, w: 1, y: 2 }),
            (CutDim::Reducing, Cut { x: 2, w: 2, y: 1 }),
            (CutDim::OutputChannels, Cut { x: 1, w: 2, y: 2 }),
        ] {
            let (part, is) = Serialisation { dim, parts: 2 }.cut(SIZES).expect("even sizes");
            assert_eq!(is, cut);
            assert_eq!(2 * part.m * part.k * part.n, 6 * 8 * 10);
        }
    }

    #[test]
    fn what_does_not_divide_stays_whole() {
        let cut = |parts| Serialisation { dim: CutDim::Reducing, parts };
        assert_eq!(cut(3).cut(SIZES), None);
        assert_eq!(cut(1).cut(SIZES), None);
        assert_eq!(cut(2).cut(Sizes { groups: 4, ..SIZES }), None);
    }
}
