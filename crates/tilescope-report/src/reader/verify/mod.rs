//! The invariants of a report: sums that must agree, references that must be valid.

mod code;
mod content;
mod data_flow;
mod engines;
mod exchanges;
mod execution;
mod mark_cycles;
mod marks;
mod memory;
mod replica_links;
mod routes;
mod samples;
mod tables;
mod tree_runs;

use super::{InvariantViolation, Report, ReportOrigin, ReportPart};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_STEPS;
use crate::model::{CategoryBytes, DataFlows, MemoryRegion, ProgramKind, TileMemory};
use crate::trace::{FixedPointBalance, LaneStepCursor, Trace, VerifiedTrace};
use crate::units::{Bytes, IpuId, StepId, TileId, TileRange, TileRuns};
use data_flow::DataFlowCheck;
use mark_cycles::MarkCycleCheck;
use replica_links::ReplicaLinkCheck;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of steps compared at a time.
const BATCH: usize = 4096;
/// The maximum number of findings reported per invariant; further ones are only counted.
const MAX_REPORTED_VIOLATIONS: usize = 5;
/// The number of variables and marks checked at a time.
const PAGE: usize = 10_000;
/// The number of steps x IPUs up to which a background check reads all steps.
const MAX_BARS_APART: u64 = 2_000_000;
/// Share of the work before the check of the trace, for progress reports.
const SHARE_BEFORE_TRACE: f64 = 0.1;
/// Share of the index in the work on the trace, if rows of steps are read as well.
const SHARE_OF_INDEX: f64 = 0.3;

/// The findings of one invariant.
struct InvariantCheck<'a> {
    name: &'static str,
    found: &'a mut Vec<InvariantViolation>,
    broken: usize,
}

impl<'a> InvariantCheck<'a> {
    fn new(name: &'static str, found: &'a mut Vec<InvariantViolation>) -> Self {
        Self { name, found, broken: 0 }
    }

    fn check(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.broken += 1;
            if self.broken <= MAX_REPORTED_VIOLATIONS {
                self.found.push(InvariantViolation { law: self.name.into(), text: text() });
            }
        }
    }
}

impl Drop for InvariantCheck<'_> {
    fn drop(&mut self) {
        if self.broken > MAX_REPORTED_VIOLATIONS {
            let text = format!("and {} more", self.broken - MAX_REPORTED_VIOLATIONS);
            self.found.push(InvariantViolation { law: self.name.into(), text });
        }
    }
}

/// The findings of one invariant; only the first are kept as text.
#[derive(Debug, Default)]
struct Findings {
    texts: Vec<String>,
    count: usize,
}

impl Findings {
    fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.texts.len() < MAX_REPORTED_VIOLATIONS {
            self.texts.push(text());
        }
    }

    fn tell(self, law: &'static str, found: &mut Vec<InvariantViolation>) {
        self.add_to(&mut InvariantCheck::new(law, found));
    }

    fn add_to(self, check: &mut InvariantCheck) {
        let kept = self.texts.len();
        self.texts.into_iter().for_each(|text| check.check(false, || text));
        check.broken += self.count - kept;
    }
}

impl Report {
    /// Checks the invariants of a report; empty if all hold. Reads everything once. An unreadable
    /// part is a finding, too.
    pub fn verify(&self) -> Result<Vec<InvariantViolation>, ReportError> {
        self.verify_with(&mut |_| {}, &Arc::default())
    }

    /// Like [`Report::verify`]. `progress` gets a share from 0 to 1. Setting `cancel` aborts with
    /// [`ReportError::Cancelled`].
    pub fn verify_with(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<Vec<InvariantViolation>, ReportError> {
        let mut found = self.verify_tables_alone(progress, cancel)?;
        let mut on_trace =
            |share: f64| progress(SHARE_BEFORE_TRACE + (1.0 - SHARE_BEFORE_TRACE) * share);
        self.verify_trace_to(&mut found, &mut on_trace, cancel)?;
        let odd = self.warnings.of_the_file().into_iter();
        found.extend(odd.map(|text| InvariantViolation { law: "nothing_is_odd".into(), text }));
        progress(1.0);
        Ok(found)
    }

    /// Checks the invariants on separate connections, so that no query has to wait for it. It reads
    /// neither the steps of a long run nor those of a foreign file. Setting `cancel` aborts with
    /// [`ReportError::Cancelled`].
    pub fn verify_apart(
        &self,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Vec<InvariantViolation>, ReportError> {
        let mut apart = Self::open_with_cache(&self.path, None)?;
        if !self.held.has_its_name() {
            return Err(ReportError::Replaced { path: self.path.clone() });
        }
        apart.db.set_cancel(cancel.clone())?;
        let mut found = apart.verify_tables_alone(&mut |_| {}, cancel)?;
        if apart.origin() == ReportOrigin::Tilescope {
            let trace = apart.trace()?;
            if trace.is_none_or(|trace| trace.bars() <= MAX_BARS_APART) {
                apart.verify_trace_to(&mut found, &mut |_| {}, cancel)?;
            }
        }
        Ok(found)
    }

    /// Checks the invariants of everything but the steps.
    fn verify_tables_alone(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<Vec<InvariantViolation>, ReportError> {
        let mut found = Vec::new();
        let mut structure = InvariantCheck::new("file_is_sound", &mut found);
        for line in self.db.broken_structure() {
            structure.check(false, || line);
        }
        drop(structure);
        type InvariantCheckFn =
            fn(&Report, &mut Vec<InvariantViolation>) -> Result<(), ReportError>;
        let checks: [(&'static str, InvariantCheckFn); 11] = [
            ("content_is_as_written", Report::verify_content),
            ("memory_adds_up", Report::verify_memory),
            ("code_is_held", Report::verify_code),
            ("engines_hold", Report::verify_engines),
            ("exchanges_hold", Report::verify_exchanges),
            ("traffic_balances", Report::verify_traffic),
            ("routes_add_up", Report::verify_routes),
            ("programs_resolve", Report::verify_programs),
            ("variables_add_up", Report::verify_variables),
            ("marks_in_range", Report::verify_marks),
            ("samples_are_of_steps", Report::verify_samples),
        ];
        for (done, (law, check)) in (1u32..).zip(checks) {
            if cancel.load(Ordering::Relaxed) {
                return Err(ReportError::Cancelled);
            }
            match check(self, &mut found) {
                Err(ReportError::Cancelled) => return Err(ReportError::Cancelled),
                Err(error) => {
                    found.push(InvariantViolation { law: law.into(), text: error.to_string() });
                }
                Ok(()) => {}
            }
            progress(SHARE_BEFORE_TRACE * f64::from(done) / checks.len() as f64);
        }
        Ok(found)
    }

    /// Checks the invariants of the steps; unreadable parts are findings.
    fn verify_trace_to(
        &self,
        found: &mut Vec<InvariantViolation>,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), ReportError> {
        match self.verify_trace(found, progress, cancel) {
            Err(ReportError::Cancelled) => Err(ReportError::Cancelled),
            Err(error) => {
                let law = "trace_adds_up".into();
                found.push(InvariantViolation { law, text: error.to_string() });
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn verify_memory(&self, found: &mut Vec<InvariantViolation>) -> Result<(), ReportError> {
        let memory = self.tile_memory()?;
        let categories = self.tile_categories()?;
        let mut totals = InvariantCheck::new("regions_add_up", found);
        if self.has(ReportPart::Regions) {
            let columns = ["total", "non_interleaved", "interleaved", "overflowed"];
            let mut differ = 0;
            self.db.stream(SelectQuery::all("memory_by_tile", &columns), |cells| {
                let [total, parts @ ..] = [0, 1, 2, 3].map(|column| cells.int(column));
                let sum = parts.into_iter().try_fold(0i64, |sum, part| sum.checked_add(part?));
                differ += i64::from(total != sum);
                Ok(ControlFlow::Continue(()))
            })?;
            totals.check(differ == 0, || {
                let tiles = if differ == 1 { "tile" } else { "tiles" };
                format!("on {differ} {tiles} the regions do not add up to the total")
            });
            for (tiles, memory) in memory.iter() {
                totals.check(memory.including_gaps >= memory.excluding_gaps(), || {
                    format!("tile {} has more bytes without gaps than with them", tiles.first)
                });
            }
        }
        drop(totals);
        let mut law = InvariantCheck::new("categories_add_up", found);
        // In foreign files, categories are sums of variables, which may share bytes.
        if self.db.has_rows("category_bytes") && self.has(ReportPart::TileMemory) {
            for tile in changes(&memory, &categories) {
                let owned = categories.get(tile).map_or(&[][..], Vec::as_slice);
                let memory = memory.get(tile).copied().unwrap_or_default();
                let agrees = self.has(ReportPart::Regions) && by_region(owned) == regions(&memory)
                    || !self.has(ReportPart::Regions)
                        && by_region(owned).iter().sum::<Bytes>() == memory.excluding_gaps();
                law.check(agrees, || {
                    let Bytes(sum) = owned.iter().map(|share| share.bytes).sum();
                    let Bytes(total) = memory.excluding_gaps();
                    format!("tile {tile}: categories have {sum} B, but the tile has {total} B")
                });
            }
        }
        Ok(())
    }

    fn verify_traffic(&self, found: &mut Vec<InvariantViolation>) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("traffic_balances", found);
        let programs = self.programs()?;
        let mut received = BTreeMap::new();
        for (program, traffic) in self.exchange_totals()? {
            let arrived = traffic.bytes_in;
            let sent = traffic.bytes_delivered;
            // The other end of a stream copy is not a tile.
            let between_tiles =
                programs.get(program).is_none_or(|node| node.kind != ProgramKind::StreamCopyMid);
            law.check(!between_tiles || arrived == sent, || {
                format!("program {}: {} B received, {} B delivered", program.0, arrived.0, sent.0)
            });
            // A multicast is delivered more than once, and nothing less than once.
            let out = traffic.bytes_out;
            let delivered = sent;
            law.check(!between_tiles || out <= delivered, || {
                format!("program {}: {} B sent, {} B delivered", program.0, out.0, delivered.0)
            });
            law.check(programs.get(program).is_some(), || {
                format!("an exchange belongs to program {}, which does not exist", program.0)
            });
            received.insert(program, arrived);
        }
        // Routes with the bytes of each tile have a law of their own.
        if self.has_routes_by_tile() {
            return Ok(());
        }
        let mut routed = BTreeSet::new();
        for route in self.routes()? {
            let left = received.get(&route.program).copied().unwrap_or_default();
            let rest = left.checked_sub(route.bytes());
            law.check(rest.is_some(), || {
                format!("routes of program {} carry more than it receives", route.program.0)
            });
            received.insert(route.program, rest.unwrap_or_default());
            routed.insert(route.program);
        }
        // The order is not known in exchanges without a route; with a route, all of it is known.
        for program in routed {
            let left = received.get(&program).copied().unwrap_or_default();
            law.check(left.is_zero(), || {
                format!("routes of program {} carry {} B less than it receives", program.0, left.0)
            });
        }
        Ok(())
    }

    fn verify_programs(&self, found: &mut Vec<InvariantViolation>) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("programs_resolve", found);
        if self.origin() == ReportOrigin::Tilescope {
            self.verify_tables(law.found)?;
        }
        let programs = self.programs()?;
        for (step, live) in self.liveness()?.iter().enumerate() {
            law.check(programs.get(live.program).is_some(), || {
                format!(
                    "liveness step {step} belongs to program {}, which does not exist",
                    live.program.0
                )
            });
        }
        // Reading them checks their tiles and references; anomalies become warnings.
        self.compute_sets()?;
        Ok(())
    }

    fn verify_trace(
        &self,
        found: &mut Vec<InvariantViolation>,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("trace_adds_up", found);
        let is_ours = self.origin() == ReportOrigin::Tilescope;
        // Rows are read besides the index, to compare both or to build the index first.
        let has_rows = !is_ours || !self.has_columns();
        let (of_index, of_rows) =
            if has_rows { (SHARE_OF_INDEX, 1.0 - SHARE_OF_INDEX) } else { (1.0, 0.0) };
        let made = if is_ours { 0.0 } else { of_rows };
        self.prepare_trace(&mut |share| progress(made * share), cancel)?;
        let Some(trace) = self.prepared_trace() else {
            let steps = if is_ours { self.step_count()? } else { 0 };
            law.check(steps == 0, || format!("the report has {steps} steps, but no trace"));
            return Ok(());
        };
        let tiles_per_ipu = self.target()?.tiles_per_ipu;
        // Data that the steps of a slice read may have been written before its start.
        let flows = if self.is_slice() { DataFlows::default() } else { self.data_flows()? };
        let programs = self.programs()?;
        let groups = self.sync_groups()?;
        let classes = self.replica_classes()?;
        let count = trace.classes().count();
        law.check(!is_ours || count == classes.classes.len().max(1), || {
            let listed = classes.classes.len();
            format!("the report has {listed} classes of replicas, but lanes of {count}")
        });
        let classes = (&classes, count);
        let rings = self.replica_rings()?;
        let target = self.target()?;
        let most = self.bandwidths()?;
        let links = ReplicaLinkCheck::new(&rings, &target, &most);
        let mut data_flow = DataFlowCheck::new(&programs, &flows, groups.as_ref(), classes, links);
        let mut mark_cycles = MarkCycleCheck::new(self)?;
        let syncs = if trace.has_sync_points() { Some(self.sync_programs()?) } else { None };
        let mut pass = trace.pass(tiles_per_ipu, syncs);
        while let Some(window) = mark_cycles.next_window(self)? {
            pass.advance(
                &window,
                &mut data_flow,
                &mut |share| progress(made + of_index * share),
                cancel,
            )?;
            mark_cycles.check(self, &window, &pass.lanes());
        }
        let VerifiedTrace { lanes, path } = pass.finish();
        // A lane that broke off lacks writes that others read.
        if lanes.iter().all(|lane| lane.broken.is_none()) {
            data_flow.finish(law.found).finish(&lanes, law.found);
        }
        for text in lanes.iter().filter_map(|lane| lane.broken.clone()) {
            law.check(false, || text);
        }
        for text in trace.verify_pieces()? {
            law.check(false, || text);
        }
        let mut of_path = InvariantCheck::new("path_is_of_the_run", law.found);
        path?.into_iter().for_each(|text| of_path.check(false, || text));
        drop(of_path);
        if !is_ours {
            return Ok(());
        }
        let cycles = self.db.worked_out("execution_cycle_totals", "max(total)")?;
        let end = i64::try_from(trace.range().end.0).unwrap_or(i64::MAX);
        law.check(cycles == Some(end), || {
            let found = cycles.map_or("no".to_owned(), |cycles| cycles.to_string());
            format!("execution_cycle_totals has {found} cycles, but the trace has {end}")
        });
        self.verify_steps(&lanes, &mut law)?;
        // A slice has the tree of the whole run, and a damaged lane only its first steps.
        let is_whole = !self.is_slice() && lanes.iter().all(|lane| lane.broken.is_none());
        // Profiles of measured tiles list programs without their calls.
        let has_calls = self.format() >= tree_runs::FIRST_FORMAT && !self.has_tile_samples();
        if has_calls && is_whole && !programs.roots().is_empty() {
            tree_runs::check(&programs, &lanes, law.found);
        }
        mark_cycles.tell(&mut law);
        let steps = self.step_count()?;
        let recorded = self.meta.get("steps").and_then(|recorded| recorded.parse().ok());
        law.check(recorded == Some(steps), || format!("meta does not record {steps} steps"));
        let last = lanes.iter().filter_map(|lane| lane.last).map(|(step, _)| step).max();
        if has_rows {
            return self.verify_rows(&trace, &mut law, &mut |id| {
                let share = id.0 as f64 / steps.max(1) as f64;
                progress(of_index + of_rows * share);
                if cancel.load(Ordering::Relaxed) { Err(ReportError::Cancelled) } else { Ok(()) }
            });
        }
        law.check(self.db.has_rows("trace_details"), || {
            "the report has no details of steps".to_owned()
        });
        // Every step is on some lane, unless rows show that it is on none.
        law.check(last.map_or(0, |last| last.0 + 1) == steps, || {
            let last = last.map_or(0, |last| last.0);
            format!("the last step on a lane is {last}, but the report has {steps} steps")
        });
        Ok(())
    }

    /// Compares the rows of all steps with the index, bar by bar.
    fn verify_rows(
        &self,
        trace: &Trace,
        law: &mut InvariantCheck,
        progress: &mut dyn FnMut(StepId) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let lanes = (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane));
        // Rows and lanes are walked side by side, so that memory does not grow with the run.
        let mut cursors: BTreeMap<(IpuId, u8), LaneStepCursor> = lanes
            .map(|lane| ((lane.info().ipu, lane.info().sub_lane), LaneStepCursor::new(lane)))
            .collect();
        let programs = self.programs()?;
        let tiles_per_ipu = self.target()?.tiles_per_ipu;
        let mut first = StepId(0);
        loop {
            let batch = self.steps(first..StepId(MAX_STEPS), BATCH)?;
            let Some(last) = batch.last() else { break };
            first = last.id + 1;
            progress(first)?;
            for step in batch {
                let program = step.program.and_then(|id| programs.get(id));
                law.check(
                    program.is_some_and(|program| {
                        (program.kind, program.compute_set) == (step.kind, step.compute_set)
                    }),
                    || {
                        let id = step.id;
                        format!("the type or compute set of step {id} differs from its program's")
                    },
                );
                for on_ipu in &step.ipus {
                    let Some(cursor) = cursors.get_mut(&(on_ipu.ipu, on_ipu.sub_lane)) else {
                        law.check(false, || format!("step {} is on no lane", step.id));
                        continue;
                    };
                    let same = cursor.next_step()?.is_some_and(|bar| {
                        (bar.step, bar.range, bar.program, bar.kind)
                            == (step.id, on_ipu.range(), step.program, step.kind)
                            && (bar.bytes_in, bar.bytes_out) == (on_ipu.bytes_in, on_ipu.bytes_out)
                            && bar.tile_balance
                                == FixedPointBalance::from_share(on_ipu.tile_balance(tiles_per_ipu))
                    });
                    law.check(same, || {
                        format!("step {} on IPU {} differs from the index", step.id, on_ipu.ipu)
                    });
                }
            }
        }
        for cursor in cursors.values() {
            let info = cursor.lane();
            let rows = cursor.position();
            law.check(info.steps == rows, || {
                format!("IPU {}: {} steps in the index, {rows} in rows", info.ipu, info.steps)
            });
        }
        Ok(())
    }
}

/// One tile of each range over which neither of two lists changes.
fn changes(
    memory: &TileRuns<TileMemory>,
    categories: &TileRuns<Vec<CategoryBytes>>,
) -> Vec<TileId> {
    let collect_edges = |tiles: TileRange| [tiles.first, tiles.end];
    let memory = memory.iter().flat_map(|(tiles, _)| collect_edges(tiles));
    let mut tiles: Vec<TileId> =
        memory.chain(categories.iter().flat_map(|(tiles, _)| collect_edges(tiles))).collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}

fn by_region(owned: &[CategoryBytes]) -> [Bytes; 3] {
    MemoryRegion::ALL
        .map(|region| owned.iter().filter(|s| s.region == region).map(|s| s.bytes).sum())
}

fn regions(memory: &TileMemory) -> [Bytes; 3] {
    [memory.non_interleaved, memory.interleaved, memory.overflowed]
}
