//! The compute sets of one stage of a reduction: one, and a second where workers shared results.

use super::cycles::{Form, Kind};
use super::region::Vertex;
use super::workers::TileWork;
use crate::graph::DType;
use crate::lower::runs::per_tile;
use crate::lower::work::{Phase, PhaseKind, Place, Temporary, VertexUse, Work};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use tilescope_report::Category;

/// What each tile does in one stage.
#[derive(Default)]
pub(crate) struct StageWork {
    pub tiles: Vec<(u32, Rc<TileWork>)>,
}

impl StageWork {
    /// Adds the compute sets of a stage and the elements between them.
    pub(crate) fn add_to(&self, work: &mut Work, name: &str, accumulator: DType) {
        let start = work.phases().len();
        for (set, suffix) in ["Reduce", "Reduce_Second_Stage"].into_iter().enumerate() {
            let busy = self.tiles.iter().filter(|(_, tile)| !tile.sets[set].is_empty());
            let cycles = per_tile(busy.map(|(tile, work)| (*tile, work.cycles[set])));
            if cycles.is_empty() {
                continue;
            }
            let kind = PhaseKind::Compute { cycles, vertices: vertex_uses(self, set) };
            work.push(Phase { name: format!("{name}/{suffix}"), kind });
        }
        let bytes = accumulator.bytes();
        let scratch =
            per_tile(self.tiles.iter().map(|(tile, work)| (*tile, work.scratch_elements * bytes)));
        if !scratch.is_empty() {
            work.temporaries.push(Temporary {
                name: format!("{name}/secondStagePartials"),
                category: Category::Variable,
                bytes: scratch,
                place: Place::Any,
                live: start..work.phases().len(),
            });
        }
    }
}

/// The vertices of one compute set by type and number of edges.
fn vertex_uses(stage: &StageWork, set: usize) -> Vec<VertexUse> {
    let mut types: HashMap<(Form, Kind), String> = HashMap::new();
    let mut counts: BTreeMap<(String, u64), BTreeMap<u32, u64>> = BTreeMap::new();
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
        .map(|((vertex_type, edges), tiles)| VertexUse {
            vertex_type,
            count: per_tile(tiles),
            edges,
            field_bytes: 0,
            constant_bytes: 0,
        })
        .collect()
}

/// What tiles do, with all tiles that do just that.
fn by_work(stage: &StageWork) -> Vec<(&TileWork, Vec<u32>)> {
    let mut known: HashMap<*const TileWork, usize> = HashMap::new();
    let mut found: Vec<(&TileWork, Vec<u32>)> = Vec::new();
    for (tile, work) in &stage.tiles {
        let at = *known.entry(Rc::as_ptr(work)).or_insert(found.len());
        if at == found.len() {
            found.push((work, Vec::new()));
        }
        found[at].1.push(*tile);
    }
    found
}

fn vertex_type(vertex: &Vertex) -> String {
    let kind = vertex.kind;
    let (operation, input, output, update) = (
        kind.operation.vertex_name(),
        kind.input.poplar_name(),
        kind.output.poplar_name(),
        kind.result.update,
    );
    let scaled = if kind.result.scaled { "Scaled" } else { "" };
    let form = match vertex.form {
        Form::Continuous => {
            return format!(
                "popops::{scaled}ContinuousReduce<popops::{operation},{input},{output},{update}>"
            );
        }
        Form::Default => "DEFAULT",
        Form::ScalarOutputs => "SCALAR_OUTPUT_REGIONS",
        Form::SingleInput => "SCALAR_OUTPUT_SINGLE_INPUT",
        Form::Strided => "STRIDED_REDUCE",
    };
    format!(
        "popops::{scaled}Reduce<popops::{operation},{input},{output},{update},popops::ReductionSpecialisation::{form}>"
    )
}
