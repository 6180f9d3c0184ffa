//! Compute sets of one stage of a reduction: one, and a second if workers share results.

use super::cycles::{ReduceVertexType, ReductionSpecialisation};
use super::region_reduction::ReduceVertex;
use super::worker_assignment::ReduceTileWork;
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{
    OperationWork, TemporaryVariable, VertexInstances, WorkPhase, WorkPhaseKind,
};
use crate::shape::DType;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use tilescope_report::MemoryCategory;
use tilescope_report::units::TileId;

/// Work of each tile in one stage.
#[derive(Default)]
pub(crate) struct ReduceStageWork {
    pub tiles: Vec<(TileId, Rc<ReduceTileWork>)>,
}

impl ReduceStageWork {
    /// Adds the compute sets of a stage and the elements between them.
    pub(crate) fn add_to(&self, work: &mut OperationWork, name: &str, accumulator: DType) {
        let start = work.phases().len();
        for (set, suffix) in ["Reduce", "Reduce_Second_Stage"].into_iter().enumerate() {
            let busy = self.tiles.iter().filter(|(_, tile)| !tile.sets[set].is_empty());
            let cycles = per_tile(busy.map(|(tile, work)| (*tile, work.cycles[set])));
            if cycles.is_empty() {
                continue;
            }
            let kind = WorkPhaseKind::Compute { cycles, vertices: vertex_uses(self, set) };
            work.push(WorkPhase { name: format!("{name}/{suffix}"), kind });
        }
        let bytes = accumulator.bytes();
        let scratch =
            per_tile(self.tiles.iter().map(|(tile, work)| (*tile, work.scratch_elements * bytes)));
        if !scratch.is_empty() {
            work.temporaries.push(TemporaryVariable::anywhere(
                format!("{name}/secondStagePartials"),
                MemoryCategory::Variable,
                scratch,
                start..work.phases().len(),
            ));
        }
    }
}

/// Vertices of one compute set by type and number of edges.
fn vertex_uses(stage: &ReduceStageWork, set: usize) -> Vec<VertexInstances> {
    let mut types: HashMap<(ReductionSpecialisation, ReduceVertexType), String> = HashMap::new();
    // Sorted by name, because the order of vertices appears in the report.
    let mut counts: BTreeMap<(String, u64), BTreeMap<TileId, u64>> = BTreeMap::new();
    for (work, tiles) in by_work(stage) {
        let mut mine: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        for vertex in &work.sets[set] {
            types.entry((vertex.form, vertex.kind)).or_insert_with(|| vertex_type(vertex));
        }
        for vertex in &work.sets[set] {
            let name = &types[&(vertex.form, vertex.kind)];
            *mine.entry((name, vertex.edges)).or_default() += 1;
        }
        for ((name, edges), count) in mine {
            let uses = counts.entry((name.to_owned(), edges)).or_default();
            uses.extend(tiles.iter().map(|tile| (*tile, count)));
        }
    }
    counts
        .into_iter()
        .map(|((vertex_type, edges), tiles)| {
            VertexInstances::of_edges(vertex_type, per_tile(tiles), edges)
        })
        .collect()
}

/// Returns the different works, each with all tiles that do it.
fn by_work(stage: &ReduceStageWork) -> Vec<(&ReduceTileWork, Vec<TileId>)> {
    let mut known: HashMap<*const ReduceTileWork, usize> = HashMap::new();
    let mut found: Vec<(&ReduceTileWork, Vec<TileId>)> = Vec::new();
    for (tile, work) in &stage.tiles {
        // Tiles with the same work share one `Rc`. Its address is used only for lookup. The order
        // is that of tiles.
        let at = *known.entry(Rc::as_ptr(work)).or_insert(found.len());
        if at == found.len() {
            found.push((work, Vec::new()));
        }
        found[at].1.push(*tile);
    }
    found
}

fn vertex_type(vertex: &ReduceVertex) -> String {
    let kind = vertex.kind;
    let operation = kind.operation.vertex_name();
    let input = kind.input.poplar_name();
    let output = kind.output.poplar_name();
    let update = kind.result.update;
    let scaled = if kind.result.scaled { "Scaled" } else { "" };
    let form = match vertex.form {
        ReductionSpecialisation::AllRegionsContinuous => {
            return format!(
                "popops::{scaled}ContinuousReduce<popops::{operation},{input},{output},{update}>"
            );
        }
        ReductionSpecialisation::Default => "DEFAULT",
        ReductionSpecialisation::ScalarOutputRegions => "SCALAR_OUTPUT_REGIONS",
        ReductionSpecialisation::ScalarOutputSingleInput => "SCALAR_OUTPUT_SINGLE_INPUT",
        ReductionSpecialisation::StridedReduce => "STRIDED_REDUCE",
    };
    format!(
        "popops::{scaled}Reduce<popops::{operation},{input},{output},{update},popops::ReductionSpecialisation::{form}>"
    )
}
