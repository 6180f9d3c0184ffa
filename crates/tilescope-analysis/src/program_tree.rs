//! The compiled program as a tree: control programs, the functions they call, and the facts about
//! each node.
//!
//! A call is shown as a leaf with the name of its function; functions are separate trees, so that a
//! body with many callers is listed once.

use crate::critical_path::{ProgramExposure, exposure};
use crate::trace::{ProgramExecutions, program_runs};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tilescope_report::units::{
    Bytes, Cycles, NumberFormat, ProgramId, exact_bytes, grouped, percent,
};
use tilescope_report::{
    ComputeSet, ProgramKind, ProgramNode, ProgramNodeTable, Report, ReportError, ReportPart,
    StreamEndpoint, TileTraffic,
};

/// A program that is called by others, or run from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramTreeGroup {
    /// Its root; `None` for the list of all programs, if the tree was not recorded.
    pub root: Option<ProgramId>,
    pub title: String,
    /// True if it is called by others.
    pub function: bool,
}

/// Control programs in their order, then the functions that they call in that order, and so on
/// down: stages come before the functions of their layers. If the tree was not recorded, all
/// programs are one list.
pub fn groups(programs: &ProgramNodeTable) -> Vec<ProgramTreeGroup> {
    let mut groups: Vec<ProgramTreeGroup> = Vec::new();
    if programs.roots().is_empty() && !programs.is_empty() {
        let title = "All programs".to_owned();
        groups.push(ProgramTreeGroup { root: None, title, function: false });
    }
    for (index, root) in programs.roots().iter().enumerate() {
        let name = programs.get(*root).map_or("", |program| program.name.as_str());
        let title = if name.is_empty() { index.to_string() } else { format!("{index}: {name}") };
        groups.push(ProgramTreeGroup { root: Some(*root), title, function: false });
    }
    let mut functions = Vec::new();
    let mut seen: BTreeSet<ProgramId> = programs.roots().iter().copied().collect();
    let mut trees: VecDeque<ProgramId> = programs.roots().iter().copied().collect();
    // Programs that are not reachable from a root come last.
    let mut others = programs.iter().map(|(id, _)| id);
    while let Some(tree) = trees.pop_front().or_else(|| others.next()) {
        let mut open = vec![tree];
        while let Some(program) = open.pop().and_then(|id| programs.get(id)) {
            let fresh = program.children.iter().copied().filter(|child| seen.insert(*child));
            let children: Vec<ProgramId> = fresh.collect();
            if program.kind == ProgramKind::Call {
                functions.extend_from_slice(&children);
                trees.extend(children);
            } else {
                open.extend(children.iter().rev());
            }
        }
    }
    for root in functions {
        let name = programs.get(root).map_or("", |program| program.name.as_str());
        let title = if name.is_empty() { format!("Function {}", root.0) } else { name.to_owned() };
        groups.push(ProgramTreeGroup { root: Some(root), title, function: true });
    }
    groups
}

/// The visible children of a node.
fn shown_children(program: &ProgramNode) -> &[ProgramId] {
    if program.kind == ProgramKind::Call { &[] } else { &program.children }
}

/// A line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramTreeRow {
    pub id: ProgramId,
    /// Number of parents.
    pub depth: u32,
    /// True if it has children.
    pub parent: bool,
    /// The number of consecutive stream copies that the row stands for, with the id of the first; 0
    /// for a single node.
    pub copies: u32,
}

/// The largest number of lines of a tree.
pub(crate) const MAX_ROWS: usize = 500_000;

/// The lines of a tree, without those below `folded` nodes.
pub fn rows(
    programs: &ProgramNodeTable,
    root: Option<ProgramId>,
    folded: &BTreeSet<ProgramId>,
) -> Vec<ProgramTreeRow> {
    let Some(root) = root else { return all_programs(programs) };
    let mut rows = Vec::new();
    let mut open = vec![(root, 0)];
    while let Some((id, depth)) = open.pop() {
        let Some(program) = programs.get(id) else { continue };
        let children = shown_children(program);
        rows.push(ProgramTreeRow { id, depth, parent: !children.is_empty(), copies: 0 });
        if rows.len() == MAX_ROWS {
            break;
        }
        if !folded.contains(&id) {
            open.extend(children.iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    rows
}

/// A line for each program, where the tree is not known. The begin, transfer and end of a stream copy
/// follow each other.
fn all_programs(programs: &ProgramNodeTable) -> Vec<ProgramTreeRow> {
    let mut first_of_name: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = Vec::with_capacity(programs.len());
    for (place, (id, program)) in programs.iter().enumerate() {
        let place = if is_stream_copy(program.kind) {
            *first_of_name.entry(&program.name).or_insert(place)
        } else {
            place
        };
        places.push((place, id));
    }
    places.sort_unstable();
    places.truncate(MAX_ROWS);
    let ids = places.into_iter().map(|(_, id)| id);
    ids.map(|id| ProgramTreeRow { id, depth: 0, parent: false, copies: 0 }).collect()
}

/// Fewer consecutive stream copies are shown one by one.
const MIN_COPIES: usize = 4;

/// The lines of a tree, with one line for consecutive stream copies and the syncs between them. The
/// copies are listed below that line if the first of them is in `opened`, or one of them is
/// `wanted`.
pub fn with_folded_copies(
    programs: &ProgramNodeTable,
    rows: Vec<ProgramTreeRow>,
    opened: &BTreeSet<ProgramId>,
    wanted: Option<ProgramId>,
) -> Vec<ProgramTreeRow> {
    let mut shown = Vec::with_capacity(rows.len());
    for run in rows.chunk_by(|a, b| {
        a.depth == b.depth && joins_copies(programs, a) && joins_copies(programs, b)
    }) {
        let run_programs = run.iter().filter_map(|row| programs.get(row.id));
        let copies = run_programs.filter(|program| is_stream_copy(program.kind)).count();
        let Some(first) = run.first().filter(|_| copies >= MIN_COPIES) else {
            shown.extend_from_slice(run);
            continue;
        };
        let copies = u32::try_from(copies).unwrap_or(u32::MAX);
        shown.push(ProgramTreeRow { parent: true, copies, ..first.clone() });
        let holds_wanted = run.iter().any(|row| Some(row.id) == wanted);
        if holds_wanted || opened.contains(&first.id) {
            for row in run {
                shown.push(ProgramTreeRow { depth: row.depth + 1, ..row.clone() });
            }
        }
    }
    shown
}

/// True for lines that can be part of consecutive stream copies.
fn joins_copies(programs: &ProgramNodeTable, row: &ProgramTreeRow) -> bool {
    let program = programs.get(row.id).filter(|_| !row.parent);
    program.is_some_and(|program| is_stream_copy(program.kind) || program.is_external_sync())
}

/// True if a program is part of a copy with the host or a remote buffer.
pub fn is_stream_copy(kind: ProgramKind) -> bool {
    matches!(
        kind,
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyMid | ProgramKind::StreamCopyEnd
    )
}

/// Costs of a node's steps in the run, over all IPUs and all its positions in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTreeCosts {
    /// Cycles of all steps, summed over lanes that work at the same time: not elapsed time.
    pub lane_cycles: Cycles,
    /// Bytes that the steps moved.
    pub bytes: Bytes,
    /// Cycles on the critical path, exposed and hidden; `None` if the path is not known.
    pub exposure: Option<ProgramExposure>,
    /// The number of positions of the node in the tree; its costs are the sum over all of them.
    pub places: u32,
}

/// Costs of the nodes of a tree, and the run that they are part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramTreeTotals {
    /// Costs by node. Nodes that share a part with other nodes have no entry.
    pub nodes: BTreeMap<ProgramId, ProgramTreeCosts>,
    /// Cycles of the run.
    pub run: Cycles,
    /// Number of lanes that work at the same time.
    pub lanes: u64,
}

impl ProgramTreeTotals {
    /// Cycles of a node as a mean over all lanes: at most those of the run, and at most those of
    /// its children together.
    pub fn mean_elapsed(&self, costs: &ProgramTreeCosts) -> Cycles {
        self.mean(costs.lane_cycles)
    }

    /// Cycles as a mean over all lanes.
    pub fn mean(&self, cycles: Cycles) -> Cycles {
        cycles / self.lanes.max(1)
    }
}

/// The largest number of nodes that are visited to compute sums.
const MAX_VISITS: usize = 20_000_000;

/// The costs of each node, including all nodes below it and all that it calls. Nodes that share a
/// part with other nodes have no entry: their portion of its executions was not recorded. Calls of a
/// function have the sum over all of its callers.
///
/// # Errors
/// A trace that cannot be read.
pub fn costs(report: &Report) -> Result<ProgramTreeTotals, ReportError> {
    let Some(trace) = report.trace()? else { return Ok(ProgramTreeTotals::default()) };
    let programs = report.executed_program_nodes()?;
    let exposures = exposure(report)?;
    let runs = program_runs(&trace)?.by_program();
    let runs = OutlinedRuns::new(runs, exposures.as_ref(), &programs);
    let mut parents: BTreeMap<ProgramId, BTreeSet<ProgramId>> = BTreeMap::new();
    let mut places: BTreeMap<ProgramId, u32> = BTreeMap::new();
    for (id, program) in programs.iter() {
        for child in &program.children {
            parents.entry(*child).or_default().insert(id);
            *places.entry(*child).or_default() += 1;
        }
    }
    let mut nodes = BTreeMap::new();
    let mut visits = 0;
    for (id, _) in programs.iter() {
        let below = below(&programs, &runs, id);
        visits += below.len();
        if visits > MAX_VISITS {
            // Existing sums are complete; the others are missing.
            break;
        }
        let is_shared = below.iter().any(|node| {
            *node != id && parents.get(node).is_some_and(|above| !above.is_subset(&below))
        });
        if is_shared {
            continue;
        }
        let places = places.get(&id).copied().unwrap_or(1);
        let mut sum = ProgramTreeCosts { places, ..ProgramTreeCosts::default() };
        let mut exposed = ProgramExposure::nothing();
        for of in below.iter().filter_map(|node| runs.by_node.get(node)) {
            sum.bytes = sum.bytes.saturating_add(of.bytes);
            exposed.add(&of.exposure);
        }
        sum.lane_cycles = exposed.cycles;
        sum.exposure = if exposures.is_some() { Some(exposed) } else { None };
        nodes.insert(id, sum);
    }
    // The portion of each caller of a function was not recorded: a call has the sum of all calls.
    for (id, program) in programs.iter().filter(|(_, program)| program.kind == ProgramKind::Call) {
        let [function] = program.children[..] else { continue };
        let Some(costs) = nodes.get(&function).copied() else { continue };
        nodes.entry(id).or_insert(costs);
    }
    let lanes = trace.lanes().len() as u64;
    Ok(ProgramTreeTotals { nodes, run: trace.range().length(), lanes })
}

/// Costs of steps by the node that executes them: leaves, and calls of outlined code, whose steps
/// name the call.
struct OutlinedRuns {
    by_node: BTreeMap<ProgramId, NodeSums>,
    calls: BTreeSet<ProgramId>,
}

/// Costs of the steps of a node.
struct NodeSums {
    exposure: ProgramExposure,
    bytes: Bytes,
}

impl OutlinedRuns {
    fn new(
        runs: BTreeMap<ProgramId, ProgramExecutions>,
        exposures: Option<&BTreeMap<ProgramId, ProgramExposure>>,
        programs: &ProgramNodeTable,
    ) -> Self {
        let mut found = Self { by_node: BTreeMap::new(), calls: BTreeSet::new() };
        for (id, run) in runs {
            let outlined = programs.get(id).and_then(|program| program.outlined);
            let call = outlined.map(|outlined| outlined.call);
            found.calls.extend(call);
            let of_cycles =
                ProgramExposure { cycles: run.totals.cycles, ..ProgramExposure::nothing() };
            let exposure = exposures.and_then(|all| all.get(&id)).copied().unwrap_or(of_cycles);
            for node in call.into_iter().chain([programs.body(id)]) {
                let sums = found.by_node.entry(node).or_insert_with(|| NodeSums {
                    exposure: ProgramExposure::nothing(),
                    bytes: Bytes::ZERO,
                });
                sums.exposure.add(&exposure);
                sums.bytes = sums.bytes.saturating_add(run.totals.bytes);
            }
        }
        found
    }
}

/// A node, all nodes below it, and all that these call. Costs of calls of outlined code are
/// recorded, so nodes below such calls are left out.
fn below(programs: &ProgramNodeTable, runs: &OutlinedRuns, id: ProgramId) -> BTreeSet<ProgramId> {
    let mut found = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(node) = open.pop() {
        if runs.calls.contains(&node) {
            continue;
        }
        let children = programs.get(node).map_or(&[][..], |program| &program.children);
        open.extend(children.iter().copied().filter(|child| found.insert(*child)));
    }
    found
}

/// The number of nodes of each kind in a tree, the most frequent first.
pub fn tally(programs: &ProgramNodeTable, root: Option<ProgramId>) -> Vec<(ProgramKind, u64)> {
    let mut counts: BTreeMap<ProgramKind, u64> = BTreeMap::new();
    for row in rows(programs, root, &BTreeSet::new()) {
        if let Some(program) = programs.get(row.id) {
            *counts.entry(program.kind).or_default() += 1;
        }
    }
    let mut tally: Vec<(ProgramKind, u64)> = counts.into_iter().collect();
    tally.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    tally
}

/// The group that contains a program, and the nodes above it there, which must not be folded. For a
/// further call of outlined code, those of the program in the function.
pub fn find(
    programs: &ProgramNodeTable,
    groups: &[ProgramTreeGroup],
    wanted: ProgramId,
) -> Option<(usize, Vec<ProgramId>)> {
    let wanted = programs.body(wanted);
    let mut seen = BTreeSet::new();
    for (index, group) in groups.iter().enumerate() {
        let Some(root) = group.root else {
            if programs.get(wanted).is_some() {
                return Some((index, Vec::new()));
            }
            continue;
        };
        let mut path: Vec<(ProgramId, usize)> = vec![(root, 0)];
        while let Some((id, next)) = path.pop() {
            if id == wanted {
                return Some((index, path.into_iter().map(|(id, _)| id).collect()));
            }
            let children = programs.get(id).map_or(&[][..], shown_children);
            if let Some(child) = children.get(next) {
                path.push((id, next + 1));
                if seen.insert(*child) {
                    path.push((*child, 0));
                }
            }
        }
    }
    None
}

/// A line of the tree: `OnTileExecute (layer1/conv/Convolve)`.
pub fn label(program: &ProgramNode) -> String {
    let mut text = program.kind.name().to_owned();
    if !program.name.is_empty() {
        text = format!("{text} ({})", program.name);
    }
    if program.kind == ProgramKind::Repeat {
        text = format!("{text} x {}", grouped(program.repeats));
    }
    text
}

/// A named value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFact {
    pub name: &'static str,
    pub value: String,
    /// The formula of a derived value.
    pub formula: Option<&'static str>,
}

/// All known facts about a node, with figures in the format `numbers`.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn facts(
    report: &Report,
    id: ProgramId,
    numbers: NumberFormat,
) -> Result<Vec<ProgramFact>, ReportError> {
    let programs = report.executed_program_nodes()?;
    let Some(program) = programs.get(id) else { return Ok(Vec::new()) };
    let mut facts = ProgramFactList::default();
    facts.add("Id", id.0.to_string());
    if let Some(ipu) = program.ipu {
        facts.add("IPU", ipu.to_string());
    }
    match program.kind {
        ProgramKind::Repeat => facts.add("Iterations", grouped(program.repeats)),
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyMid | ProgramKind::StreamCopyEnd => {
            let end = match program.stream {
                StreamEndpoint::Host => "Host",
                StreamEndpoint::RemoteBuffer => "Remote buffer",
            };
            facts.add("Other end", end.to_owned());
        }
        _ => {}
    }
    if !program.children.is_empty() {
        facts.add("Children", grouped(program.children.len() as u64));
    }
    outlined_facts(&programs, id, &mut facts);
    if let Some(operation) = program.operation
        && let Ok(operations) = report.operations()
        && let Some(of) = operations.get(operation.index())
    {
        facts.add("Operation", format!("{} ({})", of.name, of.kind));
    }
    if let Some(set) = program.compute_set {
        match report.compute_set(set)? {
            Some(set) => compute_set(report, &set, &mut facts)?,
            None => facts.add("Compute set", "not recorded".to_owned()),
        }
    }
    if let Some(exchange) = report.exchange(id)? {
        traffic(
            &exchange.tiles.iter().map(|(r, t)| (r.count(), *t)).collect::<Vec<_>>(),
            numbers,
            &mut facts,
        );
    } else if program.kind.moves_data() && !report.has(ReportPart::Exchanges) {
        facts.add("Traffic", "not recorded".to_owned());
    }
    Ok(facts.0)
}

/// Adds the position of outlined code, and the number of its calls.
fn outlined_facts(programs: &ProgramNodeTable, id: ProgramId, facts: &mut ProgramFactList) {
    let Some(outlined) = programs.get(id).and_then(|program| program.outlined) else { return };
    let calls = programs.iter().filter_map(|(_, program)| program.outlined);
    let uses = calls.filter(|of| of.body == outlined.body).count();
    facts.add("Calls of its function", grouped(uses as u64));
    if let Some(body) = programs.get(outlined.body).filter(|_| outlined.body != id) {
        facts.add("Runs the code of", label(body));
    }
}

#[derive(Default)]
struct ProgramFactList(Vec<ProgramFact>);

impl ProgramFactList {
    fn add(&mut self, name: &'static str, value: String) {
        self.0.push(ProgramFact { name, value, formula: None });
    }

    fn derived(&mut self, name: &'static str, value: String, formula: &'static str) {
        self.0.push(ProgramFact { name, value, formula: Some(formula) });
    }
}

fn compute_set(
    report: &Report,
    set: &ComputeSet,
    facts: &mut ProgramFactList,
) -> Result<(), ReportError> {
    facts.add("Compute set", set.name.clone());
    let tiles = u64::from(set.cycles.tile_count());
    if tiles > 0 {
        let most = set.cycles.max();
        let all = set.cycles.total();
        facts.add("Tiles that take part", grouped(tiles));
        facts.add("Cycles, slowest tile", grouped(most.0));
        let mean = all / tiles;
        facts.derived(
            "Cycles per IPU",
            grouped(mean.0),
            "cycles of all tiles / tiles that take part",
        );
        facts.derived("Cycles, all tiles", grouped(all.0), "sum over tiles, not elapsed time");
        let per_ipu = u64::from(report.target()?.tiles_per_ipu).max(1);
        let balance = all.as_f64() / (most.max(Cycles(1)) * per_ipu).as_f64();
        let formula = "cycles of all tiles / (slowest tile x tiles of an IPU)";
        facts.derived("Tile balance", percent(balance.min(1.0)), formula);
    }
    let types = report.vertex_types()?;
    let count: u64 = set.vertices.iter().map(|group| group.count.total()).sum();
    if count > 0 {
        facts.add("Vertices", grouped(count));
    }
    let mut groups: Vec<(u64, &str)> = Vec::new();
    for group in &set.vertices {
        let name = types.get(group.vertex_type.index()).map_or("unknown", |kind| &kind.name);
        match groups.iter_mut().find(|(_, known)| *known == name) {
            Some((count, _)) => *count += group.count.total(),
            None => groups.push((group.count.total(), name)),
        }
    }
    groups.sort_by_key(|(count, _)| u64::MAX - count);
    for (count, name) in groups {
        facts.add("", format!("{} x {name}", grouped(count)));
    }
    Ok(())
}

/// Adds sums of sent and received data, from runs of tiles with the same traffic.
fn traffic(runs: &[(u32, TileTraffic)], numbers: NumberFormat, facts: &mut ProgramFactList) {
    let sides: [(&'static str, TileTrafficField, &str); 2] =
        [("Received", |of| of.bytes_in.0, "to"), ("Sent", |of| of.bytes_out.0, "by")];
    for (name, value, word) in sides {
        let with_traffic = runs.iter().filter(|(_, of)| value(of) > 0);
        let count: u64 = with_traffic.map(|(tiles, _)| u64::from(*tiles)).sum();
        if count > 0 {
            let bytes = sum_over_tiles(runs, value);
            let count = grouped(count);
            let text =
                format!("{} ({}) {word} {count} tiles", numbers.bytes(bytes), exact_bytes(bytes));
            facts.add(name, text);
        }
    }
    let messages = sum_over_tiles(runs, |of| of.messages_in);
    if messages > 0 {
        facts.add("Messages received", grouped(messages));
    }
    facts.add("Exchange code", exact_bytes(sum_over_tiles(runs, |of| of.code_bytes.0)));
}

type TileTrafficField = fn(&TileTraffic) -> u64;

fn sum_over_tiles(runs: &[(u32, TileTraffic)], value: TileTrafficField) -> u64 {
    let parts = runs.iter().map(|(tiles, of)| u64::from(*tiles).saturating_mul(value(of)));
    parts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;

    fn programs() -> (ProgramNodeTable, [ProgramId; 5]) {
        let mut report = ReportBuilder::new(1, 4);
        let work = report.compute("a", 10);
        let function = report.program(ProgramKind::Sequence, "f");
        report.parts.programs[function.index()].children = vec![work];
        let call = report.program(ProgramKind::Call, "f");
        report.parts.programs[call.index()].children = vec![function];
        let body = report.program(ProgramKind::Repeat, "");
        report.parts.programs[body.index()].children = vec![call, call];
        let root = report.root(ProgramKind::Sequence, "main", &[body]);
        let directory = tempfile::tempdir().unwrap();
        report.write(directory.path()).unwrap();
        let report = Report::open(directory.path()).unwrap();
        let programs = report.programs().unwrap().as_ref().clone();
        (programs, [root, body, call, function, work])
    }

    #[test]
    fn functions_are_separate_trees() {
        let (programs, [root, body, call, function, work]) = programs();
        let groups = groups(&programs);
        let found: Vec<_> = groups.iter().map(|group| (group.root, group.function)).collect();
        assert_eq!(found, [(Some(root), false), (Some(function), true)]);
        let line = |row: &ProgramTreeRow| (row.id, row.depth, row.parent);
        let main: Vec<_> = rows(&programs, Some(root), &BTreeSet::new()).iter().map(line).collect();
        assert_eq!(main, [(root, 0, true), (body, 1, true), (call, 2, false), (call, 2, false)]);
        let folded = BTreeSet::from([body]);
        assert_eq!(rows(&programs, Some(root), &folded).len(), 2);
        assert_eq!(find(&programs, &groups, work), Some((1, vec![function])));
        assert_eq!(find(&programs, &groups, call), Some((0, vec![root, body])));
        assert_eq!(find(&programs, &groups, ProgramId(99)), None);
    }

    #[test]
    fn functions_come_before_those_that_they_call() {
        let mut report = ReportBuilder::new(1, 4);
        let work = report.compute("a", 10);
        let mut called = work;
        for name in ["operation", "layer", "stage"] {
            let function = report.program(ProgramKind::Sequence, name);
            report.parts.programs[function.index()].children = vec![called];
            called = report.program(ProgramKind::Call, name);
            report.parts.programs[called.index()].children = vec![function];
        }
        report.root(ProgramKind::Sequence, "main", &[called]);
        let directory = tempfile::tempdir().unwrap();
        report.write(directory.path()).unwrap();
        let groups = groups(&Report::open(directory.path()).unwrap().programs().unwrap());
        let titles: Vec<&str> = groups.iter().map(|group| group.title.as_str()).collect();
        assert_eq!(titles, ["0: main", "stage", "layer", "operation"]);
    }

    #[test]
    fn stream_copies_in_a_row_are_one_line_until_it_is_opened() {
        let mut report = ReportBuilder::new(1, 4);
        let work = report.compute("a", 10);
        let copies: Vec<ProgramId> =
            (0..6).map(|_| report.program(ProgramKind::StreamCopyMid, "in")).collect();
        let sync = report.program(ProgramKind::Sync, "External");
        let all = [&copies[..5], &[sync], &copies[5..], &[work], &copies[..2]].concat();
        let root = report.root(ProgramKind::Sequence, "main", &all);
        let directory = tempfile::tempdir().unwrap();
        report.write(directory.path()).unwrap();
        let programs = Report::open(directory.path()).unwrap().programs().unwrap();
        let lines = |opened: &[ProgramId], wanted| {
            let rows = rows(&programs, Some(root), &BTreeSet::new());
            let opened = opened.iter().copied().collect();
            let line = |row: ProgramTreeRow| (row.depth, row.copies);
            let shown = with_folded_copies(&programs, rows, &opened, wanted);
            shown.into_iter().map(line).collect::<Vec<_>>()
        };
        let folded = [(0, 0), (1, 6), (1, 0), (1, 0), (1, 0)];
        assert_eq!(lines(&[], None), folded);
        let open = [&folded[..2], &[(2, 0); 7], &folded[2..]].concat();
        assert_eq!(lines(&copies[..1], None), open);
        assert_eq!(lines(&[], Some(copies[4])), open);
    }

    #[test]
    fn costs_of_a_node_are_those_of_its_steps_or_absent() {
        let mut report = ReportBuilder::new(2, 4);
        let (own, shared) = (report.compute("own", 10), report.compute("shared", 10));
        let one = report.program(ProgramKind::Sequence, "one");
        let two = report.program(ProgramKind::Sequence, "two");
        report.parts.programs[one.index()].children = vec![own, shared];
        report.parts.programs[two.index()].children = vec![shared];
        let root = report.root(ProgramKind::Sequence, "main", &[one, two]);
        report.run(own, 0..100).run(shared, 100..130).run(shared, 130..160);
        let directory = tempfile::tempdir().unwrap();
        report.write(directory.path()).unwrap();
        let found = costs(&Report::open(directory.path()).unwrap()).unwrap();
        let cycles = |id| found.nodes.get(&id).map(|costs| found.mean_elapsed(costs));
        assert_eq!(cycles(own), Some(Cycles(100)));
        assert_eq!(cycles(shared), Some(Cycles(60)));
        assert_eq!([own, shared, root].map(|id| found.nodes[&id].places), [1, 2, 1]);
        assert_eq!(cycles(root), Some(found.run), "no more than the run, on several IPUs");
        assert_eq!(
            (cycles(one), cycles(two)),
            (None, None),
            "how much of it was theirs is not known"
        );
    }

    #[test]
    fn calls_have_the_costs_of_all_calls_of_their_function() {
        let mut report = ReportBuilder::new(2, 4);
        let work = report.compute("work", 10);
        let function = report.program(ProgramKind::Sequence, "function");
        report.parts.programs[function.index()].children = vec![work];
        let calls = [(); 2].map(|()| {
            let call = report.program(ProgramKind::Call, "function");
            report.parts.programs[call.index()].children = vec![function];
            call
        });
        report.root(ProgramKind::Sequence, "main", &calls);
        report.run(work, 0..100).run(work, 100..160);
        let directory = tempfile::tempdir().unwrap();
        report.write(directory.path()).unwrap();
        let found = costs(&Report::open(directory.path()).unwrap()).unwrap();
        for id in calls {
            let costs = &found.nodes[&id];
            assert_eq!((found.mean_elapsed(costs), costs.places), (Cycles(160), 2));
        }
    }
}
