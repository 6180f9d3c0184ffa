//! What one operation does on the tiles of one IPU: phases of exchange and compute, and the
//! temporary variables they need.
//!
//! Every operator lowers to a [`OperationWork`]. Nothing here knows of time already spent, of other
//! operations or of the place in the program: the schedule puts works in order, and the run adds
//! up their cycles. Tiles are numbered from 0 on the operation's IPU. Cycles are those of the
//! tiles themselves; what every exchange and compute set costs on top (sync, start) is added in
//! one place, by the run.

use super::tile_runs;
use crate::cost_constants::COMPUTE_START_CYCLES;
use crate::targets::Chip;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, TileRuns};
use tilescope_report::{MemoryCategory, TileTraffic};

/// The lowered form of one operation on one IPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationWork {
    /// What happens, in order.
    pub items: Vec<OperationWorkItem>,
    /// Variables that live only inside this work.
    pub temporaries: Vec<TemporaryVariable>,
}

/// A phase, or a loop of phases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperationWorkItem {
    /// One superstep half: exchange or compute.
    Phase(WorkPhase),
    /// A serial split: the body runs several times over.
    Loop { times: u64, body: Vec<OperationWorkItem> },
}

/// One exchange or one compute set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkPhase {
    /// Debug name below the operation: `Conv_1/Convolve`, `Conv_1/Convolve/ExchangePre`.
    pub name: String,
    /// What the tiles do.
    pub kind: WorkPhaseKind,
}

/// What the tiles do in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkPhaseKind {
    /// Data moves between tiles.
    Exchange {
        /// Bytes and messages of each tile that takes part; code bytes are filled in later.
        traffic: TileRuns<TileTraffic>,
        /// Cycles each of those tiles sends or receives.
        cycles: TileRuns<Cycles>,
        /// Whether the data keeps its order: what the first tile sends first, the first receiver
        /// gets first.
        in_order: bool,
    },
    Compute {
        /// Cycles of each tile that has vertices.
        cycles: TileRuns<Cycles>,
        vertices: Vec<VertexInstances>,
    },
}

/// Equal vertices of one compute set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VertexInstances {
    /// Vertex type as profiles name it: `poplin::ConvPartial1x1Out<float,float,true,false>`.
    pub vertex_type: String,
    pub count: TileRuns<u64>,
    /// Edges of one instance.
    pub edges: u64,
    /// Bytes of arrays that fields of one instance point to.
    pub field_bytes: Bytes,
    /// Bytes of constants made for one instance: worklists.
    pub constant_bytes: Bytes,
    /// Floating point operations of all of them, those on padding included; `None` where they are
    /// not counted.
    pub flops: Option<u64>,
}

/// A variable that lives only inside a work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemporaryVariable {
    /// Debug name below the operation: `Conv_1/partials`.
    pub name: String,
    /// What it is for: variable, rearrangement or message.
    pub category: MemoryCategory,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    /// What its vertices need of its place.
    pub memory_constraint: MemoryConstraint,
    /// Phases it is live in, counted through the items with loop bodies once.
    pub live: Range<usize>,
}

impl TemporaryVariable {
    /// A temporary whose place its vertices do not care about.
    pub fn anywhere(
        name: impl Into<String>,
        category: MemoryCategory,
        bytes: TileRuns<Bytes>,
        live: Range<usize>,
    ) -> Self {
        let memory_constraint = MemoryConstraint::Any;
        Self { name: name.into(), category, bytes, memory_constraint, live }
    }
}

/// What vertices need of the place of a variable in the memory of a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryConstraint {
    /// Nothing: anywhere.
    #[default]
    Any,
    /// A memory element that no variable is in that was there before: its vertices read one and
    /// write the other in the same cycle.
    OwnMemoryElement,
    /// Interleaved memory, where 128 bits are loaded at once.
    Interleaved,
}

impl VertexInstances {
    /// Vertices whose fields hold nothing but their edges.
    pub(crate) fn of_edges(vertex_type: String, count: TileRuns<u64>, edges: u64) -> Self {
        let (field_bytes, constant_bytes) = (Bytes::ZERO, Bytes::ZERO);
        Self { vertex_type, count, edges, field_bytes, constant_bytes, flops: None }
    }
}

impl WorkPhase {
    /// A compute set of one kind of vertex, which keeps each tile busy for so many cycles.
    pub(crate) fn of_vertices(
        name: &str,
        vertices: VertexInstances,
        cycles: TileRuns<Cycles>,
    ) -> Self {
        let kind = WorkPhaseKind::Compute { cycles, vertices: vec![vertices] };
        Self { name: name.to_string(), kind }
    }

    /// The phase that does what both do. Tiles do it one after the other: vertices share workers,
    /// messages share the links.
    fn merged_with(self, other: Self) -> Self {
        debug_assert_eq!(
            std::mem::discriminant(&self.kind),
            std::mem::discriminant(&other.kind),
            "exchange joins exchange, compute joins compute"
        );
        let kind = match (self.kind, other.kind) {
            (
                WorkPhaseKind::Exchange { traffic, cycles, in_order },
                WorkPhaseKind::Exchange { traffic: more, cycles: longer, in_order: both },
            ) => WorkPhaseKind::Exchange {
                traffic: tile_runs::merge_per_tile(&traffic, &more, TileTraffic::plus),
                cycles: tile_runs::add_per_tile(&cycles, &longer),
                in_order: in_order && both,
            },
            (
                WorkPhaseKind::Compute { cycles, mut vertices },
                WorkPhaseKind::Compute { cycles: longer, vertices: more },
            ) => {
                vertices.extend(more);
                WorkPhaseKind::Compute {
                    cycles: tile_runs::add_per_tile(&cycles, &longer),
                    vertices,
                }
            }
            (kind, _) => kind,
        };
        Self { name: self.name, kind }
    }
}

impl TemporaryVariable {
    /// The same, `phases` later.
    pub(crate) fn shifted_by(mut self, phases: usize) -> Self {
        debug_assert!(self.live.start <= self.live.end, "{}: {:?}", self.name, self.live);
        self.live = self.live.start + phases..self.live.end + phases;
        self
    }
}

impl OperationWork {
    /// A work of one phase.
    pub(crate) fn of_phase(phase: WorkPhase) -> Self {
        Self { items: vec![OperationWorkItem::Phase(phase)], temporaries: Vec::new() }
    }

    /// A work of some phases.
    pub(crate) fn of_phases(phases: impl IntoIterator<Item = WorkPhase>) -> Self {
        let items = phases.into_iter().map(OperationWorkItem::Phase).collect();
        Self { items, temporaries: Vec::new() }
    }

    /// Appends a phase.
    pub(crate) fn push(&mut self, phase: WorkPhase) {
        self.items.push(OperationWorkItem::Phase(phase));
    }

    /// Appends a phase that may not be needed.
    pub(crate) fn push_some(&mut self, phase: Option<WorkPhase>) {
        self.items.extend(phase.map(OperationWorkItem::Phase));
    }

    /// Adds a temporary that lives from phase `start` to the last phase so far.
    pub(crate) fn push_temporary(&mut self, name: &str, bytes: TileRuns<Bytes>, start: usize) {
        self.temporaries.push(TemporaryVariable::anywhere(
            name,
            MemoryCategory::Variable,
            bytes,
            start..self.phases().len(),
        ));
    }

    /// Puts another work at the end.
    pub(crate) fn append(&mut self, other: Self) {
        let start = self.phases().len();
        self.items.extend(other.items);
        self.temporaries.extend(other.temporaries.into_iter().map(|each| each.shifted_by(start)));
    }

    /// Puts two works of as many steps at the end, step by step in one: their vertices share
    /// compute sets. Works of different steps follow each other.
    pub(crate) fn append_merged(&mut self, one: Self, other: Self) {
        // Supersteps are common to all tiles: an exchange of one work cannot run beside a compute
        // set of the other, so works of other steps share nothing.
        if !one.has_same_phase_kinds(&other) {
            self.append(one);
            self.append(other);
            return;
        }
        let start = self.phases().len();
        let temporaries = one.temporaries.into_iter().chain(other.temporaries);
        self.temporaries.extend(temporaries.map(|each| each.shifted_by(start)));
        for (one, other) in one.items.into_iter().zip(other.items) {
            if let (OperationWorkItem::Phase(one), OperationWorkItem::Phase(other)) = (one, other) {
                self.items.push(OperationWorkItem::Phase(one.merged_with(other)));
            }
        }
    }

    /// Whether both are plain sequences of exchanges and compute sets in the same order.
    fn has_same_phase_kinds(&self, other: &Self) -> bool {
        let is_exchange = |item: &OperationWorkItem| match item {
            OperationWorkItem::Phase(phase) => {
                Some(matches!(phase.kind, WorkPhaseKind::Exchange { .. }))
            }
            OperationWorkItem::Loop { .. } => None,
        };
        self.items.len() == other.items.len()
            && self.items.iter().zip(&other.items).all(|(one, other)| {
                is_exchange(one).is_some() && is_exchange(one) == is_exchange(other)
            })
    }

    /// Phases in program order, loop bodies once, each with the times it runs.
    pub fn phases(&self) -> Vec<(&WorkPhase, u64)> {
        fn walk<'a>(
            items: &'a [OperationWorkItem],
            times: u64,
            found: &mut Vec<(&'a WorkPhase, u64)>,
        ) {
            for item in items {
                match item {
                    OperationWorkItem::Phase(phase) => found.push((phase, times)),
                    OperationWorkItem::Loop { times: inner, body } => {
                        walk(body, times * inner, found)
                    }
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.items, 1, &mut found);
        found
    }

    /// Cycles with the starts of exchanges and compute sets: each phase lasts as long as its slowest
    /// tile.
    pub fn cycles(&self, chip: &Chip) -> Cycles {
        let phase = |kind: &WorkPhaseKind| match kind {
            WorkPhaseKind::Exchange { cycles, .. } => chip.exchange_start() + cycles.max(),
            WorkPhaseKind::Compute { cycles, .. } => COMPUTE_START_CYCLES.cycles() + cycles.max(),
        };
        self.phases().iter().map(|(work, times)| *times * phase(&work.kind)).sum()
    }
}
