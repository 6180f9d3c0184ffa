//! Catalogue of all named entities of a report.

use super::query::SearchList;
use crate::report_variables::first_variables;
use crate::tile_mapping::is_tensor;
use crate::trace::{ProgramRunTotals, ProgramRuns, program_runs};
use std::collections::BTreeMap;
use tilescope_report::units::{
    Bytes, Cycles, IpuId, OperationId, ProgramId, VariableId, VertexTypeId,
};
use tilescope_report::{ProgramKind, Report, ReportError};

/// The largest number of variables in a catalogue.
pub(super) const MAX_VARIABLES: usize = 1_000_000;

/// An entity that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SearchEntity {
    /// The executed steps of a program, of one kind.
    Steps(ProgramId, ProgramKind),
    /// A node of the compiled program.
    Program(ProgramId),
    /// An operation of the model.
    Operation(OperationId),
    Variable(VariableId),
    /// A variable with data of the model.
    Tensor(VariableId),
    VertexType(VertexTypeId),
}

impl SearchEntity {
    /// The list that it belongs to.
    pub fn source(self) -> SearchList {
        match self {
            Self::Steps(..) => SearchList::Steps,
            Self::Program(_) => SearchList::Programs,
            Self::Operation(_) => SearchList::Operations,
            Self::Variable(_) => SearchList::Variables,
            Self::Tensor(_) => SearchList::Tensors,
            Self::VertexType(_) => SearchList::Vertices,
        }
    }

    /// Its number in its table.
    pub fn id(self) -> u32 {
        match self {
            Self::Steps(id, _) | Self::Program(id) => id.0,
            Self::Operation(id) => id.0,
            Self::Variable(id) | Self::Tensor(id) => id.0,
            Self::VertexType(id) => id.0,
        }
    }
}

/// A named entity, with the figures that do not depend on the query.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueItem {
    pub thing: SearchEntity,
    pub name: String,
    /// A program kind, an operation's kind, or a memory category.
    pub kind: String,
    /// Its IPU, if it has exactly one.
    pub ipu: Option<IpuId>,
    /// Executions of a program, or of an operation's most frequent program; tiles of a variable;
    /// instances of a vertex type.
    pub count: u64,
    /// Cycles of all executions, summed over IPUs.
    pub cycles: Option<Cycles>,
    /// Bytes moved by all executions; bytes of a variable over all tiles; bytes of a vertex type's
    /// code and state.
    pub bytes: Option<Bytes>,
}

/// All named entities of a report.
#[derive(Debug)]
pub struct SearchCatalogue {
    /// The entities, in the order of [`SearchList::ALL`] and of their ids.
    pub items: Vec<CatalogueItem>,
    /// Executions of programs, by IPU.
    pub runs: ProgramRuns,
    /// True if there are further variables, which are not among the items.
    pub more_variables: bool,
    /// Programs of each operation.
    pub(super) programs: BTreeMap<OperationId, Vec<ProgramId>>,
}

impl SearchCatalogue {
    /// Reads the names, and sums up the trace.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report) -> Result<Self, ReportError> {
        let runs = report.trace()?.map(|trace| program_runs(&trace)).transpose()?;
        let runs = runs.unwrap_or_default();
        let mut catalogue =
            Self { items: Vec::new(), runs, more_variables: false, programs: BTreeMap::new() };
        let programs = report.executed_program_nodes()?;
        for (id, program) in programs.iter() {
            if let Some(operation) = program.operation {
                catalogue.programs.entry(operation).or_default().push(id);
            }
        }
        catalogue.add_programs(report)?;
        catalogue.add_operations(report)?;
        catalogue.add_variables(report)?;
        catalogue.add_vertices(report)?;
        catalogue.items.sort_by_key(|item| {
            let list = SearchList::ALL.iter().position(|list| *list == item.thing.source());
            (list, item.thing)
        });
        Ok(catalogue)
    }

    fn add_programs(&mut self, report: &Report) -> Result<(), ReportError> {
        let executions = self.runs.by_program();
        let mut steps: BTreeMap<ProgramId, BTreeMap<ProgramKind, ProgramRunTotals>> =
            BTreeMap::new();
        for ((_, program, kind), totals) in &self.runs.steps {
            steps.entry(*program).or_default().entry(*kind).or_default().add(totals);
        }
        for (id, program) in report.executed_program_nodes()?.iter() {
            let item_of = |thing, kind: ProgramKind, count, totals: Option<&ProgramRunTotals>| {
                CatalogueItem {
                    thing,
                    name: program.name.clone(),
                    kind: kind.name().to_owned(),
                    ipu: program.ipu,
                    count,
                    cycles: totals.map(|totals| totals.cycles),
                    bytes: totals.map(|totals| totals.bytes),
                }
            };
            for (kind, totals) in steps.get(&id).into_iter().flatten() {
                let thing = SearchEntity::Steps(id, *kind);
                self.items.push(item_of(thing, *kind, totals.steps, Some(totals)));
            }
            let of = executions.get(&id);
            let count = of.map_or(0, |of| of.executions);
            let totals = of.map(|of| &of.totals);
            self.items.push(item_of(SearchEntity::Program(id), program.kind, count, totals));
        }
        Ok(())
    }

    fn add_operations(&mut self, report: &Report) -> Result<(), ReportError> {
        let runs = self.runs.by_program();
        for (index, operation) in report.operations()?.iter().enumerate() {
            let id = OperationId(index as u32);
            let programs = self.programs.get(&id).map_or(&[][..], Vec::as_slice);
            let of = programs.iter().filter_map(|program| runs.get(program));
            let (count, cycles) = of.fold((0, Cycles::ZERO), |(count, cycles), of| {
                (of.executions.max(count), cycles + of.totals.cycles)
            });
            self.items.push(CatalogueItem {
                thing: SearchEntity::Operation(id),
                name: operation.name.clone(),
                kind: operation.kind.clone(),
                ipu: operation.ipu,
                count,
                cycles: if count > 0 { Some(cycles) } else { None },
                bytes: None,
            });
        }
        Ok(())
    }

    fn add_variables(&mut self, report: &Report) -> Result<(), ReportError> {
        let first = first_variables(report, None, MAX_VARIABLES)?;
        self.more_variables = first.more;
        for (id, variable) in first.found {
            let bytes = variable.tiles.map(|part| part.bytes).total();
            let item = CatalogueItem {
                thing: SearchEntity::Variable(id),
                name: variable.name,
                kind: variable.category.name().to_owned(),
                ipu: None,
                count: variable.tiles.tile_count().into(),
                cycles: None,
                bytes: Some(bytes),
            };
            if is_tensor(variable.category) {
                self.items.push(CatalogueItem { thing: SearchEntity::Tensor(id), ..item.clone() });
            }
            self.items.push(item);
        }
        Ok(())
    }

    fn add_vertices(&mut self, report: &Report) -> Result<(), ReportError> {
        let mut instances: BTreeMap<VertexTypeId, u64> = BTreeMap::new();
        for (_, set) in report.compute_sets()? {
            for group in &set.vertices {
                *instances.entry(group.vertex_type).or_default() += group.count.total();
            }
        }
        for (index, vertex) in report.vertex_types()?.iter().enumerate() {
            let id = VertexTypeId(index as u32);
            let count = instances.get(&id).copied().unwrap_or(0);
            self.items.push(CatalogueItem {
                thing: SearchEntity::VertexType(id),
                name: vertex.name.clone(),
                kind: "Vertex".to_owned(),
                ipu: None,
                count,
                cycles: None,
                bytes: Some(
                    vertex.code_bytes.saturating_add(vertex.state_bytes.saturating_mul(count)),
                ),
            });
        }
        Ok(())
    }
}
