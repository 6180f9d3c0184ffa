//! Program nodes and operations.

use super::trace_index::ExecutedProgram;
use super::{Report, ReportOrigin};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_IPUS};
use crate::model::{
    ArithmeticType, CostBasis, ModelOperation, OutlinedCall, ProgramKind, ProgramNode,
    StreamEndpoint, TrainingPass,
};
use crate::row_cells::RowCells;
use crate::units::{ComputeSetId, IpuId, OperationId, ProgramId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The program nodes of a report. Ids of other tools' files need not be dense.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramNodeTable {
    nodes: Vec<(ProgramId, ProgramNode)>,
    roots: Vec<ProgramId>,
}

impl ProgramNodeTable {
    /// The table of a program that is in no report.
    pub fn of_nodes(nodes: &[ProgramNode]) -> Self {
        let nodes = (0..).map(ProgramId).zip(nodes.iter().cloned()).collect();
        Self { nodes, roots: Vec::new() }
    }

    /// The program with this id, if there is one.
    pub fn get(&self, id: ProgramId) -> Option<&ProgramNode> {
        self.nodes.get(self.place(id)?).map(|(_, program)| program)
    }

    fn get_mut(&mut self, id: ProgramId) -> Option<&mut ProgramNode> {
        let place = self.place(id)?;
        self.nodes.get_mut(place).map(|(_, program)| program)
    }

    /// The index of a program among all of them: ids may be sparse.
    pub(super) fn place(&self, id: ProgramId) -> Option<usize> {
        // If ids are dense, as in our own files, an id is its index.
        match self.nodes.get(id.index()) {
            Some((found, _)) if *found == id => Some(id.index()),
            _ => self.nodes.binary_search_by_key(&id, |(id, _)| *id).ok(),
        }
    }

    /// The program whose code a program runs: a different one for further calls of outlined code.
    pub fn body(&self, id: ProgramId) -> ProgramId {
        self.get(id).and_then(|program| program.outlined).map_or(id, |outlined| outlined.body)
    }

    /// Programs that run outlined code of another program, with that program.
    pub fn further_uses(&self) -> impl Iterator<Item = (ProgramId, ProgramId)> {
        let uses = self.iter().filter_map(|(id, program)| Some((id, program.outlined?.body)));
        uses.filter(|(id, body)| id != body)
    }

    /// All programs by id. Children always exist and never form cycles; several programs may share
    /// one.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &ProgramNode)> {
        self.nodes.iter().map(|(id, program)| (*id, program))
    }

    /// Number of programs in the report.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Roots of the tree; empty if the tree is not known.
    pub fn roots(&self) -> &[ProgramId] {
        &self.roots
    }

    /// Adds further types of programs after the first one wherever the tree has it.
    fn add_beside(&mut self, further: &BTreeMap<ProgramId, Vec<ProgramId>>) {
        if further.is_empty() {
            return;
        }
        let all_types = |ids: &[ProgramId]| -> Vec<ProgramId> {
            let mut all = Vec::new();
            for id in ids {
                all.push(*id);
                all.extend(further.get(id).into_iter().flatten());
            }
            all
        };
        for (_, node) in &mut self.nodes {
            node.children = all_types(&node.children);
        }
        self.roots = all_types(&self.roots);
    }

    /// Takes out children that lead back to a program they are below of. Gives their number.
    ///
    /// A depth-first walk from every node: a child that is still on the path closes a cycle.
    /// O(programs + children).
    #[expect(clippy::indexing_slicing, reason = "places come from `place`, never from the file")]
    fn break_reference_loops(&mut self) -> usize {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            Unvisited,
            OnPath,
            Finished,
        }
        let mut seen = vec![VisitState::Unvisited; self.nodes.len()];
        let mut circular = Vec::new();
        for start in 0..self.nodes.len() {
            if seen[start] != VisitState::Unvisited {
                continue;
            }
            seen[start] = VisitState::OnPath;
            // A stack instead of recursion: a hostile file may nest programs arbitrarily deep.
            let mut path = vec![(start, 0)];
            while let Some((place, next)) = path.pop() {
                let Some(&child) = self.nodes[place].1.children.get(next) else {
                    seen[place] = VisitState::Finished;
                    continue;
                };
                path.push((place, next + 1));
                match self.place(child) {
                    Some(child) if seen[child] == VisitState::Unvisited => {
                        seen[child] = VisitState::OnPath;
                        path.push((child, 0));
                    }
                    Some(child) if seen[child] == VisitState::Finished => {}
                    _ => circular.push((place, next)),
                }
            }
        }
        circular.sort_unstable();
        for part in circular.chunk_by(|a, b| a.0 == b.0) {
            // Children are removed after the walk, because it refers to them by index.
            let mut cut = part.iter().map(|(_, index)| *index).peekable();
            let mut index = 0;
            self.nodes[part[0].0].1.children.retain(|_| {
                let keep = cut.next_if_eq(&index).is_none();
                index += 1;
                keep
            });
        }
        circular.len()
    }
}

const PROGRAMS: SelectQuery<'static> = SelectQuery::all(
    "programs",
    &["id", "name", "type", "ipu", "compute_set", "operation", "stream", "repeats"],
)
.clauses("ORDER BY id");
const CHILDREN: SelectQuery<'static> =
    SelectQuery::all("program_children", &["parent", "child"]).clauses("ORDER BY parent, position");
const OUTLINED: SelectQuery<'static> =
    SelectQuery::all("outlined_programs", &["program", "body", "call"]);
const OPERATIONS: SelectQuery<'static> = SelectQuery::all(
    "operations",
    &[
        "name",
        "kind",
        "pass",
        "block",
        "ipu",
        "flops",
        "shapes",
        "plan",
        "source",
        "element_type",
        "inner_runs",
        "cost_basis",
    ],
);
const OPERATION_INPUTS: SelectQuery<'static> =
    SelectQuery::all("operation_inputs", &["operation", "input"])
        .clauses("ORDER BY operation, position");

impl Report {
    /// All program nodes, read once. In foreign files, only kinds of executed programs are known,
    /// after the trace is prepared.
    pub fn programs(&self) -> Result<Arc<ProgramNodeTable>, ReportError> {
        self.programs.get(|| {
            let mut programs = ProgramNodeTable::default();
            if !self.db.has("programs", "id") {
                return Ok(programs);
            }
            self.db.read(PROGRAMS, |cells| {
                programs.nodes.extend(cells.small(0).map(|id| (ProgramId(id), program(cells))));
                Ok(ControlFlow::Continue(()))
            })?;
            // Without a primary key in a foreign file, ids may be repeated; the first one counts.
            programs.nodes.dedup_by_key(|(id, _)| *id);
            self.read_children(&mut programs)?;
            for (program, operation) in &self.debug_info()?.operation_of {
                if let Some(program) = programs.get_mut(*program) {
                    // The report itself takes precedence over the file beside it.
                    program.operation = program.operation.or(Some(*operation));
                }
            }
            self.read_outlined(&mut programs)?;
            self.read_executed_kinds(&mut programs)?;
            // Last, because the readers above add references; the tree must be complete before it
            // is cut.
            self.drop_dangling(&mut programs)?;
            let cut = programs.break_reference_loops();
            if cut > 0 {
                self.warnings.add(format!("{cut} programs contain themselves: truncated"));
            }
            Ok(programs)
        })
    }

    /// All program nodes with what their steps tell: in foreign files kinds, and a node for each type
    /// of step of a program. Prepares the trace, which takes long for these.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn executed_program_nodes(&self) -> Result<Arc<ProgramNodeTable>, ReportError> {
        if self.origin == ReportOrigin::Foreign && !self.db.has("programs", "type") {
            self.prepare_trace(&mut |_| {}, &Arc::default())?;
        }
        self.programs()
    }

    fn read_children(&self, programs: &mut ProgramNodeTable) -> Result<(), ReportError> {
        let table = "program_children";
        if ["parent", "position", "child"].iter().all(|column| self.db.has(table, column)) {
            let mut lost = 0;
            self.db.read(CHILDREN, |cells| {
                let child =
                    cells.small(1).map(ProgramId).filter(|id| programs.place(*id).is_some());
                let parent = cells.small(0).and_then(|id| programs.get_mut(ProgramId(id)));
                match (parent, child) {
                    (Some(parent), Some(child)) => parent.children.push(child),
                    _ => lost += 1,
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if lost > 0 {
                self.warnings.add(format!("{lost} children of programs do not exist: left out"));
            }
        }
        let roots =
            self.db.list(SelectQuery::all("program_roots", &["program"]), |c| c.small(0))?;
        let roots = roots.into_iter().flatten().map(ProgramId);
        programs.roots = roots.filter(|root| programs.place(*root).is_some()).collect();
        Ok(())
    }

    /// Reads which programs run outlined code.
    fn read_outlined(&self, programs: &mut ProgramNodeTable) -> Result<(), ReportError> {
        let mut lost = 0;
        for cells in self.db.list(OUTLINED, |cells| [0, 1, 2].map(|column| cells.small(column)))? {
            let [program, body, call] = cells.map(|id| id.map(ProgramId));
            let exists = |id: &ProgramId| programs.place(*id).is_some();
            let outlined = body.filter(exists).zip(call.filter(exists));
            let user = program.and_then(|id| programs.get_mut(id));
            match (user, outlined) {
                (Some(user), Some((body, call))) => {
                    user.outlined = Some(OutlinedCall { body, call });
                }
                _ => lost += 1,
            }
        }
        if lost > 0 {
            self.warnings.add(format!("{lost} outlined programs do not exist: left out"));
        }
        Ok(())
    }

    /// Sets the kinds of executed programs: in foreign files only steps have types. A program with
    /// steps of several types, such as those of a stream copy, becomes one node for each type.
    fn read_executed_kinds(&self, programs: &mut ProgramNodeTable) -> Result<(), ReportError> {
        let mut further: BTreeMap<ProgramId, Vec<ProgramId>> = BTreeMap::new();
        for ExecutedProgram { id, source, class, compute_set } in self.executed_programs()? {
            if id != source
                && programs.get(id).is_none()
                && let Some(first) = programs.get(source).cloned()
            {
                let node = ProgramNode { children: Vec::new(), compute_set: None, ..first };
                // Further types come after all programs of the file, in the order of their ids.
                programs.nodes.push((id, node));
                further.entry(source).or_default().push(id);
            }
            if let Some(program) = programs.get_mut(id) {
                program.kind = class.kind();
                program.stream = class.stream();
                // Some tools record compute sets of programs, others only those of steps.
                program.compute_set = program.compute_set.or(compute_set);
            }
        }
        programs.add_beside(&further);
        Ok(())
    }

    /// Removes references to missing items.
    fn drop_dangling(&self, programs: &mut ProgramNodeTable) -> Result<(), ReportError> {
        let sets = self.compute_set_names()?;
        let operations = self.operations()?.len();
        let mut lost = 0;
        for (_, program) in &mut programs.nodes {
            let no_set = program.compute_set.is_some_and(|id| !sets.contains_key(&id));
            let no_operation = program.operation.is_some_and(|id| id.index() >= operations);
            program.compute_set.take_if(|_| no_set);
            program.operation.take_if(|_| no_operation);
            lost += usize::from(no_set) + usize::from(no_operation);
        }
        // If there are no compute sets at all, they were not recorded.
        if lost > 0 && !sets.is_empty() {
            self.warnings.add(format!("{lost} references of programs have no target: left out"));
        }
        Ok(())
    }

    /// The model's operations, indexed by [`OperationId`]. For a file without any, those named by
    /// the `debug.cbor` beside it.
    pub fn operations(&self) -> Result<Arc<Vec<ModelOperation>>, ReportError> {
        self.operations.get(|| {
            if !self.db.has_rows("operations") {
                return Ok(self.debug_info()?.operations.clone());
            }
            let mut operations = self.db.list(OPERATIONS, |cells| ModelOperation {
                name: cells.text(0).unwrap_or_default(),
                kind: cells.text(1).unwrap_or_default(),
                pass: cells
                    .text(2)
                    .and_then(|n| TrainingPass::from_name(&n))
                    .unwrap_or(TrainingPass::Forward),
                block: cells.text(3),
                ipu: cells.small_up_to(4, MAX_IPUS - 1).map(IpuId),
                flops: cells.count(5, MAX_COUNT).unwrap_or(0),
                shapes: cells.text(6).unwrap_or_default(),
                plan: cells.long_text(7),
                source: cells.text(8),
                element_type: cells.named(9, ArithmeticType::from_name),
                // Used as a divisor.
                inner_runs: cells.count(10, MAX_COUNT).filter(|runs| *runs > 0),
                cost_basis: cells.named(11, CostBasis::from_name),
                inputs: Vec::new(),
            })?;
            self.read_operation_inputs(&mut operations)?;
            Ok(operations)
        })
    }

    /// Reads the inputs of operations. Only earlier operations count, so that there are no cycles.
    fn read_operation_inputs(&self, operations: &mut [ModelOperation]) -> Result<(), ReportError> {
        let table = "operation_inputs";
        if !["operation", "position", "input"].iter().all(|column| self.db.has(table, column)) {
            return Ok(());
        }
        let mut lost = 0;
        self.db.read(OPERATION_INPUTS, |cells| {
            let pair = cells.small(0).zip(cells.small(1));
            let reader = pair.filter(|(of, input)| input < of).and_then(|(of, input)| {
                Some((operations.get_mut(of as usize)?, OperationId(input)))
            });
            match reader {
                Some((operation, input)) => operation.inputs.push(input),
                None => lost += 1,
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if lost > 0 {
            self.warnings
                .add(format!("{lost} inputs of operations are not earlier operations: left out"));
        }
        Ok(())
    }
}

fn program(cells: &RowCells) -> ProgramNode {
    let kind = cells.text(2).map_or(ProgramKind::Unknown, |name| ProgramKind::from_name(&name));
    ProgramNode {
        kind,
        name: cells.text(1).unwrap_or_default(),
        children: Vec::new(),
        ipu: cells.small_up_to(3, MAX_IPUS - 1).map(IpuId),
        compute_set: cells.small(4).map(ComputeSetId),
        operation: cells.small(5).map(OperationId),
        stream: cells
            .text(6)
            .and_then(|n| StreamEndpoint::from_name(&n))
            .unwrap_or(StreamEndpoint::Host),
        repeats: cells.count(7, MAX_COUNT).unwrap_or(1),
        outlined: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(children: &[&[u32]]) -> ProgramNodeTable {
        let node = |children: &&[u32]| ProgramNode {
            kind: ProgramKind::Sequence,
            name: String::new(),
            children: children.iter().map(|&id| ProgramId(id)).collect(),
            ipu: None,
            compute_set: None,
            operation: None,
            stream: StreamEndpoint::Host,
            repeats: 1,
            outlined: None,
        };
        let nodes = children.iter().map(node);
        let nodes = nodes.enumerate().map(|(id, node)| (ProgramId(id as u32), node)).collect();
        ProgramNodeTable { nodes, roots: Vec::new() }
    }

    #[test]
    fn cycles_are_cut_and_sharing_is_kept() {
        let cases: [(&[&[u32]], usize); 5] = [
            (&[&[0]], 1),
            (&[&[1], &[0]], 1),
            (&[&[1, 2], &[2], &[]], 0),
            (&[&[1, 1], &[2, 2], &[0, 1]], 2),
            (&[&[1], &[2], &[3], &[1, 0]], 2),
        ];
        for (children, cut) in cases {
            let mut programs = programs(children);
            assert_eq!(programs.break_reference_loops(), cut, "{children:?}");
            assert_eq!(programs.break_reference_loops(), 0);
        }
    }
}
