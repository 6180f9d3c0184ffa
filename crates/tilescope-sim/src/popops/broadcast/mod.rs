//! Arithmetic of a tensor with a smaller one that is broadcast along some of its axes, tile by
//! tile.
//!
//! Each tile uses the vertices that fit its elements (poplibs lib/popops/ElementWise.cpp,
//! constructBroadcastBinaryOp): `patterns` describes how values repeat there, `dispatch` chooses
//! the vertices, `cycles` computes their cycles.

mod cycles;
mod dispatch;
mod patterns;

use super::elementwise::BinaryOpType;
use super::reduce::{MemoryStretchShape, ReduceDim, stretches};
use super::relayout;
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{VertexInstances, WorkPhase, WorkPhaseKind};
use crate::shape::DType;
use dispatch::{BroadcastVertex, TileBroadcast, dispatch};
use std::collections::HashMap;
use tilescope_report::units::{Bytes, Elements, TileId, TileRuns};

/// Operation with a smaller operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BroadcastForm {
    pub operation: BinaryOpType,
    pub dtype: DType,
    /// True if results overwrite the larger operand.
    pub in_place: bool,
}

/// Operation with a smaller operand, on all tiles.
pub(super) struct BroadcastOperation {
    form: BroadcastForm,
    tiles: Vec<(TileId, Elements, TileBroadcast)>,
}

impl BroadcastOperation {
    /// Creates an operation on elements with the given distribution. Values differ along the
    /// collapsed `dims` that are not reduced.
    pub(super) fn new(
        form: BroadcastForm,
        dims: &[ReduceDim],
        elements: &TileRuns<Elements>,
    ) -> Self {
        let mut known: HashMap<MemoryStretchShape, TileBroadcast> = HashMap::new();
        let mut tiles = Vec::new();
        for (tile, range) in stretches(elements) {
            let (shape, _) = MemoryStretchShape::from_range(dims, &range);
            let found = known
                .entry(shape)
                .or_insert_with(|| dispatch(form, &patterns::patterns(&shape.pieces(dims))));
            tiles.push((tile, Elements(range.end - range.start), *found));
        }
        Self { form, tiles }
    }

    /// Bytes on the tiles that need a copy of the smaller operand for each use.
    pub(super) fn copied_bytes(&self) -> TileRuns<Bytes> {
        let copied = self.tiles.iter().filter(|(_, _, tile)| tile.copied_piece.is_some());
        per_tile(copied.map(|(tile, elements, _)| (*tile, *elements * self.form.dtype.bytes())))
    }

    /// Compute set that copies the smaller operand on these tiles, or `None` if no tile needs a
    /// copy.
    pub(super) fn copies(&self, name: &str) -> Option<WorkPhase> {
        let size = self.form.dtype.bytes();
        let copied = self.tiles.iter().filter_map(|(tile, elements, found)| {
            let piece = found.copied_piece?;
            Some((*tile, relayout::arrange_cycles(*elements * size, piece * size)))
        });
        let cycles = per_tile(copied);
        let smallest = self.tiles.iter().filter_map(|(_, _, tile)| tile.copied_piece).min()?;
        let vertex = relayout::copy_vertex(self.form.dtype, smallest.0);
        Some(relayout::arrange_pieces(&format!("{name}/OnTileCopy"), vertex, &cycles))
    }

    /// Compute set of the operation itself.
    pub(super) fn compute(&self, name: &str) -> WorkPhase {
        let cycles = per_tile(self.tiles.iter().map(|(tile, _, found)| (*tile, found.cycles)));
        let vertices = BroadcastVertex::ALL.into_iter().filter_map(|vertex| self.instances(vertex));
        WorkPhase {
            name: name.to_string(),
            kind: WorkPhaseKind::Compute { cycles, vertices: vertices.collect() },
        }
    }

    /// Vertices of one type, if there are any.
    fn instances(&self, vertex: BroadcastVertex) -> Option<VertexInstances> {
        let such = self.tiles.iter().filter(|(_, _, found)| found.vertex == vertex);
        let count = per_tile(such.map(|(tile, _, found)| (*tile, found.vertices)));
        if count.is_empty() {
            return None;
        }
        let op = self.form.operation.name();
        let ty = self.form.dtype.poplar_name();
        let name = if self.form.in_place { vertex.name() } else { vertex.name_apart() };
        let kind = format!("popops::{name}<popops::expr::BinaryOpType::{op},{ty}>");
        Some(VertexInstances::of_edges(kind, count, 2))
    }
}
