//! Work of one operation on the tiles of one IPU: phases of exchange and compute, and the temporary
//! variables they need.
//!
//! Every operator lowers to an [`OperationWork`]. A work does not depend on elapsed time, on other
//! operations or on its place in the program: the schedule orders works, and the run adds their
//! cycles. Tiles are numbered from 0 on the operation's IPU. Cycles are those of the tiles
//! themselves. The run alone adds the fixed cost of every exchange and compute set (sync, start).

use super::routes::WorkRoutes;
use super::tile_runs;
use crate::cost_constants::COMPUTE_START_CYCLES;
use crate::targets::Chip;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, TileRuns};
use tilescope_report::{MemoryCategory, TileTraffic};

/// Lowered form of one operation on one IPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationWork {
    /// Phases and loops in program order.
    pub items: Vec<OperationWorkItem>,
    /// Variables that are live only within this work.
    pub temporaries: Vec<TemporaryVariable>,
}

/// Phase, or loop of phases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperationWorkItem {
    /// Exchange or compute half of one superstep.
    Phase(WorkPhase),
    /// Serial split: the body runs `times` times.
    Loop { times: u64, body: Vec<OperationWorkItem> },
}

/// One exchange or one compute set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkPhase {
    /// Debug name below the operation, such as `Conv_1/Convolve` or `Conv_1/Convolve/ExchangePre`.
    pub name: String,
    /// Activity of the tiles.
    pub kind: WorkPhaseKind,
}

/// Activity of the tiles in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkPhaseKind {
    /// Transfer of data between tiles.
    Exchange {
        /// Bytes and messages of each tile that takes part. Code bytes are filled in later.
        traffic: TileRuns<TileTraffic>,
        /// Cycles that each of these tiles sends or receives.
        cycles: TileRuns<Cycles>,
        /// The receivers of each sender.
        routes: WorkRoutes,
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
    /// Vertex type as in profiles, such as `poplin::ConvPartial1x1Out<float,float,true,false>`.
    pub vertex_type: String,
    pub count: TileRuns<u64>,
    /// Number of edges of one instance.
    pub edges: u64,
    /// Bytes of the arrays that fields of one instance point to.
    pub field_bytes: Bytes,
    /// Bytes of the constants of one instance, such as worklists.
    pub constant_bytes: Bytes,
    /// Floating-point operations of all instances, including those on padding. `None` if they are
    /// not counted.
    pub flops: Option<u64>,
}

/// Variable that is live only within a work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemporaryVariable {
    /// Debug name below the operation, such as `Conv_1/partials`.
    pub name: String,
    /// Category of its content: variable, rearrangement or message.
    pub category: MemoryCategory,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    /// Constraint of its vertices on its placement.
    pub memory_constraint: MemoryConstraint,
    /// Phases in which it is live, counted through the items with loop bodies once.
    pub live: Range<usize>,
}

impl TemporaryVariable {
    /// Creates a temporary without a placement constraint.
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

/// Constraint of vertices on the placement of a variable in the memory of a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryConstraint {
    /// No constraint.
    #[default]
    Any,
    /// A memory element without variables that existed before. The vertices read one variable and
    /// write the other in the same cycle.
    OwnMemoryElement,
    /// Interleaved memory, where one load reads 128 bits.
    Interleaved,
}

impl VertexInstances {
    /// Creates vertices whose fields contain only edges.
    pub(crate) fn of_edges(vertex_type: String, count: TileRuns<u64>, edges: u64) -> Self {
        let field_bytes = Bytes::ZERO;
        let constant_bytes = Bytes::ZERO;
        Self { vertex_type, count, edges, field_bytes, constant_bytes, flops: None }
    }
}

impl WorkPhase {
    /// Creates a compute set of one type of vertex, with the given cycles of each tile.
    pub(crate) fn of_vertices(
        name: &str,
        vertices: VertexInstances,
        cycles: TileRuns<Cycles>,
    ) -> Self {
        let kind = WorkPhaseKind::Compute { cycles, vertices: vec![vertices] };
        Self { name: name.to_string(), kind }
    }

    /// Merges two phases into one. Tiles process both in sequence: vertices share workers, messages
    /// share the links.
    fn merged_with(self, other: Self) -> Self {
        debug_assert_eq!(
            std::mem::discriminant(&self.kind),
            std::mem::discriminant(&other.kind),
            "exchange joins exchange, compute joins compute"
        );
        let kind = match (self.kind, other.kind) {
            (
                WorkPhaseKind::Exchange { traffic, cycles, routes },
                WorkPhaseKind::Exchange { traffic: more, cycles: longer, routes: others },
            ) => WorkPhaseKind::Exchange {
                traffic: traffic.merged(&more, TileTraffic::plus),
                cycles: tile_runs::add_per_tile(&cycles, &longer),
                routes: WorkRoutes::joined([(routes, &traffic), (others, &more)]),
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
    /// Returns the variable with its lifetime moved `phases` later.
    pub(crate) fn shifted_by(mut self, phases: usize) -> Self {
        debug_assert!(self.live.start <= self.live.end, "{}: {:?}", self.name, self.live);
        self.live = self.live.start + phases..self.live.end + phases;
        self
    }
}

impl OperationWork {
    /// Creates a work of one phase.
    pub(crate) fn of_phase(phase: WorkPhase) -> Self {
        Self { items: vec![OperationWorkItem::Phase(phase)], temporaries: Vec::new() }
    }

    /// Creates a work of several phases.
    pub(crate) fn of_phases(phases: impl IntoIterator<Item = WorkPhase>) -> Self {
        let items = phases.into_iter().map(OperationWorkItem::Phase).collect();
        Self { items, temporaries: Vec::new() }
    }

    /// Appends a phase to the work.
    pub(crate) fn push(&mut self, phase: WorkPhase) {
        self.items.push(OperationWorkItem::Phase(phase));
    }

    /// Appends a phase if there is one.
    pub(crate) fn push_some(&mut self, phase: Option<WorkPhase>) {
        self.items.extend(phase.map(OperationWorkItem::Phase));
    }

    /// Adds a temporary that is live from phase `start` to the last phase so far.
    pub(crate) fn push_temporary(&mut self, name: &str, bytes: TileRuns<Bytes>, start: usize) {
        self.temporaries.push(TemporaryVariable::anywhere(
            name,
            MemoryCategory::Variable,
            bytes,
            start..self.phases().len(),
        ));
    }

    /// Appends another work.
    pub(crate) fn append(&mut self, other: Self) {
        let start = self.phases().len();
        self.items.extend(other.items);
        self.temporaries.extend(other.temporaries.into_iter().map(|each| each.shifted_by(start)));
    }

    /// Appends two works merged step by step if they have the same kinds of steps, so that their
    /// vertices share compute sets. Otherwise appends one after the other.
    pub(crate) fn append_merged(&mut self, one: Self, other: Self) {
        // Supersteps are common to all tiles: an exchange of one work cannot run alongside a
        // compute set of the other, so works with different steps cannot be merged.
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

    /// Returns true if both are plain sequences of exchanges and compute sets in the same order.
    fn has_same_phase_kinds(&self, other: &Self) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        for items in self.items.iter().zip(&other.items) {
            let (OperationWorkItem::Phase(one), OperationWorkItem::Phase(other)) = items else {
                return false;
            };
            if std::mem::discriminant(&one.kind) != std::mem::discriminant(&other.kind) {
                return false;
            }
        }
        true
    }

    /// Phases in program order, each with the number of times it runs. Loop bodies appear once.
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

    /// Cycles including the starts of exchanges and compute sets. Each phase lasts as long as its
    /// slowest tile.
    pub fn cycles(&self, chip: &Chip) -> Cycles {
        let mut sum = Cycles::ZERO;
        for (phase, times) in self.phases() {
            let cycles = match &phase.kind {
                WorkPhaseKind::Exchange { cycles, .. } => chip.exchange_start() + cycles.max(),
                WorkPhaseKind::Compute { cycles, .. } => {
                    COMPUTE_START_CYCLES.cycles() + cycles.max()
                }
            };
            sum += times * cycles;
        }
        sum
    }
}
