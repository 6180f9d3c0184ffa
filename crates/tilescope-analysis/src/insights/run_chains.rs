//! Chains of steps that wait for each other, as bounds of the possible reduction of a run.
//!
//! A run takes at least as long as any chain of its steps. If a change removes cycles from steps,
//! the remainder of every chain is still a chain of the changed run. So the reduction is at most
//! the cycles removed from the critical path, and the run never gets shorter than the remaining
//! steps of any one IPU.

use super::host_call::awaited_part;
use super::insight_facts::copies;
use crate::label_conventions::is_of_stash;
use crate::trace::{ProgramRuns, RunShare, WholeRun};
use std::collections::BTreeMap;
use tilescope_report::units::{Cycles, IpuId, ProgramId};
use tilescope_report::{
    MachineAction, ProgramKind, ProgramNode, ProgramNodeTable, Report, ReportError,
};

/// Steps of a program of one kind, within a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChainPart<'a> {
    pub(crate) id: ProgramId,
    pub(crate) program: &'a ProgramNode,
    pub(crate) kind: ProgramKind,
    pub(crate) steps: u64,
    pub(crate) cycles: Cycles,
}

/// A chain of consecutive steps.
#[derive(Clone, Debug, Default)]
struct Chain {
    cycles: Cycles,
    parts: BTreeMap<(ProgramId, ProgramKind), (u64, Cycles)>,
}

impl Chain {
    fn add(&mut self, program: ProgramId, kind: ProgramKind, steps: u64, cycles: Cycles) {
        let part = self.parts.entry((program, kind)).or_default();
        *part = (part.0 + steps, part.1.saturating_add(cycles));
    }

    /// Remaining cycles if `removed` returns the removed cycles of each part.
    fn left(&self, programs: &ProgramNodeTable, removed: &impl Fn(ChainPart<'_>) -> f64) -> f64 {
        let removed = self.parts.iter().filter_map(|(&(id, kind), &(steps, cycles))| {
            let part = ChainPart { id, program: programs.get(id)?, kind, steps, cycles };
            Some(removed(part).clamp(0.0, cycles.as_f64()))
        });
        self.cycles.as_f64() - removed.sum::<f64>()
    }
}

/// The waits of every IPU in each call of the host, independent of the others: the IPU that arrives
/// last waits for the host alone, so these are the smallest waits of all IPUs.
fn host_calls(
    runs: &ProgramRuns,
    programs: &ProgramNodeTable,
) -> Vec<(ProgramId, ProgramKind, u64, Cycles)> {
    let is_call = |id: &ProgramId| programs.get(*id).and_then(awaited_part).is_some();
    let mut least: BTreeMap<(ProgramId, ProgramKind), (u64, Cycles)> = BTreeMap::new();
    for ((_, id, kind), of) in runs.steps.iter().filter(|((_, id, _), _)| is_call(id)) {
        let found = least.entry((*id, *kind)).or_insert((of.steps, of.cycles));
        *found = (found.0.min(of.steps), found.1.min(of.cycles));
    }
    least.into_iter().map(|((id, kind), (steps, cycles))| (id, kind, steps, cycles)).collect()
}

/// The critical path of a run, and the work of each IPU.
#[derive(Clone, Debug)]
pub struct RunChains {
    run: WholeRun,
    path: Chain,
    /// The work of each IPU itself, and calls of the host; empty if I/O tiles work beside the other
    /// tiles of an IPU.
    ipus: Vec<Chain>,
    /// The handshake before a copy with the host; the cycles of its begin beyond that are waits.
    handshake: Cycles,
}

impl RunChains {
    /// Reads the chains; `None` if nothing was executed.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub(super) fn read(
        report: &Report,
        runs: Option<&ProgramRuns>,
        programs: &ProgramNodeTable,
    ) -> Result<Option<Self>, ReportError> {
        let (Some(runs), Some(path)) = (runs, report.critical_path()?) else { return Ok(None) };
        let run = WholeRun::of_path(&path);
        // Cycles without a recorded step belong to no part, so nothing removes them.
        let mut of_path = Chain { cycles: path.range().length(), parts: BTreeMap::new() };
        for of in path.programs()?.iter() {
            let program = of.program.into_iter();
            program.for_each(|program| of_path.add(program, of.kind(), of.steps, of.cycles));
        }
        let costs = report.action_costs()?;
        let begin = costs.iter().find(|cost| cost.action == MachineAction::StreamBegin);
        let handshake = begin.map_or(Cycles::ZERO, |cost| cost.cycles);
        let mut chains = Self { run, path: of_path, ipus: Vec::new(), handshake };
        if report.target()?.io_tiles_per_ipu == 0 {
            chains.ipus = chains.work_of_ipus(runs, programs);
        }
        Ok(Some(chains))
    }

    /// The work of each IPU, without its waits for others.
    fn work_of_ipus(&self, runs: &ProgramRuns, programs: &ProgramNodeTable) -> Vec<Chain> {
        let mut ipus: BTreeMap<IpuId, Chain> = BTreeMap::new();
        for ((ipu, id, kind), of) in &runs.steps {
            let Some(program) = programs.get(*id) else { continue };
            let part =
                ChainPart { id: *id, program, kind: *kind, steps: of.steps, cycles: of.cycles };
            let work = of.cycles - self.waiting(part);
            let chain = ipus.entry(*ipu).or_default();
            chain.cycles = chain.cycles.saturating_add(work);
            chain.add(*id, *kind, of.steps, work);
        }
        let mut ipus: Vec<Chain> = ipus.into_values().collect();
        for (id, kind, steps, cycles) in host_calls(runs, programs) {
            for chain in &mut ipus {
                chain.cycles = chain.cycles.saturating_add(cycles);
                chain.add(id, kind, steps, cycles);
            }
        }
        ipus
    }

    /// Cycles in which steps wait for other IPUs or the host.
    pub(crate) fn waiting(&self, part: ChainPart<'_>) -> Cycles {
        match part.kind {
            _ if part.program.is_internal_sync() => Cycles::ZERO,
            ProgramKind::Sync => part.cycles,
            ProgramKind::StreamCopyBegin => {
                part.cycles.saturating_sub(self.handshake.saturating_mul(part.steps))
            }
            _ => Cycles::ZERO,
        }
    }

    /// The largest possible gain, as a share of the run, of a change that removes the cycles given
    /// by `removed` from some steps.
    pub(crate) fn gain(
        &self,
        programs: &ProgramNodeTable,
        removed: impl Fn(ChainPart<'_>) -> f64,
    ) -> RunShare {
        let left = |chain: &Chain| chain.left(programs, &removed);
        let longest = self.ipus.iter().map(left).fold(left(&self.path), f64::max);
        self.run.without_all_but(longest)
    }

    /// The same for a change that also removes syncs at which IPUs wait for each other: only the
    /// work of each IPU itself is a chain then. `None` if single IPUs are not known.
    pub(crate) fn gain_without_syncs(
        &self,
        programs: &ProgramNodeTable,
        removed: impl Fn(ChainPart<'_>) -> f64,
    ) -> Option<RunShare> {
        let longest = self.ipus.iter().map(|chain| chain.left(programs, &removed));
        Some(self.run.without_all_but(longest.reduce(f64::max)?))
    }

    /// The share of the run that the cycles given by `removed` take on the critical path.
    pub(crate) fn share_of_path(
        &self,
        programs: &ProgramNodeTable,
        removed: impl Fn(ChainPart<'_>) -> f64,
    ) -> RunShare {
        self.run.without_all_but(self.path.left(programs, &removed))
    }

    /// The largest possible gain if no IPU waits for another: the one that works longest remains.
    pub(crate) fn gain_without_waits(&self) -> Option<RunShare> {
        let longest = self.ipus.iter().map(|chain| chain.cycles).max()?;
        Some(self.run.without_all_but(longest.as_f64()))
    }

    /// The largest possible gain if the work is distributed evenly over the IPUs.
    pub(crate) fn gain_of_even_work(&self) -> Option<RunShare> {
        let longest = self.ipus.iter().map(|chain| chain.cycles).max()?;
        let all: Cycles = self.ipus.iter().map(|chain| chain.cycles).sum();
        let mean = all.as_f64() / self.ipus.len() as f64;
        let with_mean = self.run.without_all_but(mean);
        Some((with_mean - self.run.without_all_but(longest.as_f64())).clamped())
    }

    /// The gain if each IPU does an even share of the work by itself: nothing waits for another IPU,
    /// and nothing is exchanged between them. If a replica is a single IPU, it also has no stashes,
    /// and one handshake with the host where several IPUs had one each. `None` if single IPUs are
    /// not recorded.
    pub(crate) fn gain_of_whole_batches(
        &self,
        programs: &ProgramNodeTable,
        is_single: bool,
    ) -> Option<RunShare> {
        let count_saved = |part: ChainPart<'_>| match part.kind {
            ProgramKind::GlobalExchange => part.cycles.as_f64(),
            _ if is_single && is_of_stash(&part.program.name) => part.cycles.as_f64(),
            _ => 0.0,
        };
        if self.ipus.is_empty() {
            return None;
        }
        let mut all = 0.0;
        let mut handshakes = 0.0;
        let mut most = 0.0;
        for chain in &self.ipus {
            all += chain.left(programs, &count_saved);
            let own = chain.cycles.as_f64() - chain.left(programs, &handshake_cycles);
            handshakes += own;
            most = f64::max(most, own);
        }
        if is_single {
            all -= handshakes - most;
        }
        Some(self.run.without_all_but(all / self.ipus.len() as f64))
    }
}

/// The cycles of a part that begins or ends a copy with the host; 0 for other parts.
fn handshake_cycles(part: ChainPart<'_>) -> f64 {
    match part.kind {
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyEnd if copies(part.program) => {
            part.cycles.as_f64()
        }
        _ => 0.0,
    }
}
