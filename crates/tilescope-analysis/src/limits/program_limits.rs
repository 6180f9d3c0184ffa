//! Totals of each program's steps, compared with the limits of the machine.

use super::cycle_class::{ClassCycles, CycleClass};
use super::exchange_bound::ExchangeBound;
use super::machine::Machine;
use crate::label_conventions::rearranges;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::trace::{LaneInfo, ProgramStepSums};
use tilescope_report::units::{
    Bytes, ComputeSetId, CycleRange, Cycles, IpuId, ProgramId, Quantity,
};
use tilescope_report::{
    ComputeRate, ComputeSet, ExchangeTraffic, HostCallPart, ProgramKind, ProgramNode,
    ProgramNodeTable, Report, ReportError, ReportPart, StepActivity, StreamEndpoint, Target,
    VertexWork,
};

/// Sums over the steps of programs, and their lower bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProgramLimits {
    /// Number of executions; for several programs, that of the most frequent one.
    pub executions: u64,
    pub cycles: ClassCycles,
    /// Floating point operations of vertices that count them, including those on padding.
    pub vertex_flops: Option<u64>,
    /// The fastest engine that its vertices compute on.
    pub rate: Option<ComputeRate>,
    /// Cycles of compute sets that do more than copy, without their starts, and the same times the
    /// number of their tiles.
    pub computing: f64,
    pub computing_on_tiles: f64,
    pub exchange: ExchangeSums,
    /// Bytes moved over links, with the host, and with remote buffers.
    pub link_bytes: Bytes,
    pub host_bytes: Bytes,
    pub remote_bytes: Bytes,
    /// True if some of its steps move an unrecorded number of bytes.
    pub unknown_bytes: bool,
}

/// Sums over exchanges between the tiles of an IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ExchangeSums {
    /// Cycles of the steps, including their starts.
    pub cycles: Cycles,
    /// Bytes to compare with the send rate of tiles.
    pub bytes: f64,
    /// The same for exchanges that do more than change a layout.
    pub needed_bytes: f64,
    /// Cycles that the busiest tile of each exchange needs at least.
    pub tile_cycles: f64,
}

impl ProgramLimits {
    /// Adds the sums of another program of the same operation.
    pub(crate) fn add(&mut self, other: &Self) {
        self.executions = self.executions.max(other.executions);
        self.cycles.add(&other.cycles);
        self.vertex_flops = match (self.vertex_flops, other.vertex_flops) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
        self.rate = faster(self.rate, other.rate);
        self.computing += other.computing;
        self.computing_on_tiles += other.computing_on_tiles;
        let sum = &mut self.exchange;
        let more = &other.exchange;
        sum.cycles = sum.cycles.saturating_add(more.cycles);
        sum.bytes += more.bytes;
        sum.needed_bytes += more.needed_bytes;
        sum.tile_cycles += more.tile_cycles;
        self.link_bytes = self.link_bytes.saturating_add(other.link_bytes);
        self.host_bytes = self.host_bytes.saturating_add(other.host_bytes);
        self.remote_bytes = self.remote_bytes.saturating_add(other.remote_bytes);
        self.unknown_bytes |= other.unknown_bytes;
    }
}

/// The faster of two engines.
fn faster(one: Option<ComputeRate>, other: Option<ComputeRate>) -> Option<ComputeRate> {
    let rates = one.into_iter().chain(other);
    rates.reduce(|best, next| if next.flops_per_cycle > best.flops_per_cycle { next } else { best })
}

/// Cycles of the compute tiles of an IPU over the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IpuCycles {
    pub ipu: IpuId,
    pub cycles: ClassCycles,
}

/// All steps of a run, by program and by IPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitsOfPrograms {
    pub by_program: BTreeMap<ProgramId, ProgramLimits>,
    /// IPUs with a lane, in order.
    pub ipus: Vec<IpuCycles>,
    /// Cycles of the run.
    pub run: CycleRange,
}

impl LimitsOfPrograms {
    /// Reads the sums of all lanes; empty if the program was not executed.
    pub(crate) fn read(
        report: &Report,
        machine: &Machine,
        sets: &BTreeMap<ComputeSetId, ComputeSet>,
        exchanges: &BTreeMap<ProgramId, ExchangeTraffic>,
    ) -> Result<Self, ReportError> {
        let Some(trace) = report.trace()? else { return Ok(Self::default()) };
        let read = |index: usize| match trace.lane(index) {
            Some(lane) => Ok(Some((lane.info(), lane.program_sums()?))),
            None => Ok(None),
        };
        let lanes = (0..trace.lanes().len()).into_par_iter().map(read);
        let lanes: Vec<Option<(LaneInfo, Arc<Vec<ProgramStepSums>>)>> =
            lanes.collect::<Result<_, ReportError>>()?;
        let programs = report.executed_program_nodes()?;
        let target = report.target()?;
        let works = report.vertex_types()?.iter().map(|kind| kind.work()).collect();
        let has_bytes = report.has(ReportPart::StepBytes);
        let figures =
            ProgramFigures { machine, programs, target, works, sets, exchanges, has_bytes };
        let mut all = Self { run: trace.range(), ..Self::default() };
        let mut executions = Vec::new();
        for (info, sums) in lanes.into_iter().flatten() {
            for sums in sums.iter() {
                if let Some(program) = sums.program {
                    executions.push(((program, info.ipu, sums.kind()), sums.steps));
                }
            }
            all.add_lane(&figures, info, &sums);
        }
        all.count_executions(executions);
        Ok(all)
    }

    fn add_lane(&mut self, figures: &ProgramFigures, info: LaneInfo, sums: &[ProgramStepSums]) {
        let mut of_ipu = ClassCycles::default();
        for sums in sums {
            let own = figures.limits(info.ipu, sums);
            of_ipu.add(&own.cycles);
            if let Some(id) = sums.program {
                self.by_program.entry(id).or_default().add(&own);
            }
        }
        // Other lanes work beside the compute tiles, so their cycles are not part of the run.
        if info.sub_lane == 0 {
            self.ipus.push(IpuCycles { ipu: info.ipu, cycles: of_ipu });
        }
    }

    /// Counts executions over all IPUs. One execution may have several steps of different kinds:
    /// the begin, middle and end of a stream copy.
    fn count_executions(&mut self, mut steps: Vec<((ProgramId, IpuId, ProgramKind), u64)>) {
        steps.sort_unstable();
        for of_program in steps.chunk_by(|((one, ..), _), ((next, ..), _)| one == next) {
            let on_ipu = of_program.chunk_by(|((_, one, _), _), ((_, next, _), _)| one == next);
            let most = on_ipu.map(|kinds| {
                let kinds = kinds.chunk_by(|((.., one), _), ((.., next), _)| one == next);
                let steps = kinds.map(|lanes| lanes.iter().map(|(_, steps)| steps).sum());
                steps.max().unwrap_or(0u64)
            });
            let executions = most.sum();
            if let Some(((id, ..), _)) = of_program.first() {
                self.by_program.entry(*id).or_default().executions = executions;
            }
        }
    }
}

/// All parts of a report that describe the work of steps.
struct ProgramFigures<'a> {
    machine: &'a Machine,
    programs: Arc<ProgramNodeTable>,
    target: Arc<Target>,
    /// The work of vertices of each type.
    works: Vec<VertexWork>,
    sets: &'a BTreeMap<ComputeSetId, ComputeSet>,
    exchanges: &'a BTreeMap<ProgramId, ExchangeTraffic>,
    /// True if steps state the bytes they move.
    has_bytes: bool,
}

/// One execution of a compute set on the tiles of an IPU.
#[derive(Default)]
struct ComputeSetOnIpu {
    /// Cycles of the slowest tile, and their sum over all tiles.
    longest: Cycles,
    total: Cycles,
    tiles: u64,
}

/// Returns true if the steps of a program wait for the host: the begin of a copy, or a sync for a part
/// of a host call.
fn waits_for_host(program: &ProgramNode) -> bool {
    match program.kind {
        ProgramKind::StreamCopyBegin => program.stream == StreamEndpoint::Host,
        ProgramKind::Sync => HostCallPart::of_sync(&program.name).is_some(),
        _ => false,
    }
}

impl ProgramFigures<'_> {
    /// Totals of the steps of one program and kind on an IPU.
    fn limits(&self, ipu: IpuId, sums: &ProgramStepSums) -> ProgramLimits {
        let program = sums.program.and_then(|id| Some((id, self.programs.get(id)?)));
        let mut limits = ProgramLimits::default();
        let cycles = sums.cycles;
        match (sums.activity(), program) {
            (StepActivity::Compute, Some((_, program))) => {
                self.compute(&mut limits, ipu, program, sums);
            }
            (StepActivity::Compute, None) => {
                limits.cycles = ClassCycles::of(CycleClass::Compute, cycles);
            }
            (StepActivity::InternalExchange, Some((id, program))) => {
                self.exchange(&mut limits, ipu, (id, program), sums);
            }
            (StepActivity::InternalExchange, None) => {
                limits.cycles = ClassCycles::of(CycleClass::Exchange, cycles);
                limits.unknown_bytes = true;
            }
            (StepActivity::GlobalExchange, _) => {
                limits.cycles = ClassCycles::of(CycleClass::Links, cycles);
                limits.link_bytes = sums.bytes_moved;
                limits.unknown_bytes = !self.has_bytes;
            }
            (StepActivity::Host | StepActivity::Sync, Some((_, program)))
                if waits_for_host(program) =>
            {
                limits.cycles = ClassCycles::of(CycleClass::HostWait, cycles);
            }
            (StepActivity::Host, _) => {
                limits.cycles = ClassCycles::of(CycleClass::Host, cycles);
                limits.host_bytes = sums.bytes_moved;
                limits.unknown_bytes = !self.has_bytes;
            }
            (StepActivity::RemoteBuffer, _) => {
                limits.cycles = ClassCycles::of(CycleClass::RemoteBuffers, cycles);
                limits.remote_bytes = sums.bytes_moved;
                limits.unknown_bytes = !self.has_bytes;
            }
            (StepActivity::Sync, _) => {
                limits.cycles = ClassCycles::of(CycleClass::SyncAndStart, cycles);
            }
            (StepActivity::Other, _) => {
                limits.cycles = ClassCycles::of(CycleClass::Other, cycles);
            }
        }
        limits
    }

    fn compute(
        &self,
        limits: &mut ProgramLimits,
        ipu: IpuId,
        program: &ProgramNode,
        sums: &ProgramStepSums,
    ) {
        let set = program.compute_set.and_then(|id| self.sets.get(&id));
        let only_copies = set.is_some_and(|set| self.only_copies(set));
        let rearranges = only_copies || rearranges(&program.name);
        let class = if rearranges { CycleClass::Rearrangement } else { CycleClass::Compute };
        let own = set.map(|set| self.on_ipu(set, ipu)).unwrap_or_default();
        let steps = sums.steps;
        let tiles = u64::from(self.machine.tiles);
        // Without cycles of tiles, their waits and starts are not known.
        let body = match own.longest {
            Cycles::ZERO => sums.cycles,
            longest => sums.cycles.min(longest.saturating_mul(steps)),
        };
        let working = match own.longest {
            Cycles::ZERO => body,
            longest => body.min(body.share(own.total.0, longest.0.saturating_mul(tiles))),
        };
        limits.cycles[CycleClass::SyncAndStart] = sums.cycles.saturating_sub(body);
        if rearranges {
            limits.cycles[class] = body;
            return;
        }
        limits.cycles[class] = working;
        limits.cycles[CycleClass::Balance] = body.saturating_sub(working);
        if !own.longest.is_zero() {
            limits.computing = body.as_f64();
            limits.computing_on_tiles = body.as_f64() * own.tiles as f64;
        }
        for group in set.into_iter().flat_map(|set| &set.vertices) {
            let work = self.works.get(group.vertex_type.index()).copied();
            limits.rate = faster(limits.rate, work.and_then(|work| self.machine.rate_of(work)));
            let flops = group.flops.map(|flops| flops.saturating_mul(steps));
            limits.vertex_flops = match (limits.vertex_flops, flops) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        }
    }

    /// True if all vertices of a compute set only move data.
    fn only_copies(&self, set: &ComputeSet) -> bool {
        !set.vertices.is_empty()
            && set
                .vertices
                .iter()
                .all(|group| self.works.get(group.vertex_type.index()) == Some(&VertexWork::Copy))
    }

    fn on_ipu(&self, set: &ComputeSet, ipu: IpuId) -> ComputeSetOnIpu {
        let mut found = ComputeSetOnIpu::default();
        let tiles = self.target.tiles_of_ipu(ipu);
        for (own, cycles) in set.cycles.iter().map(|(run, of)| (run.intersection(tiles), of)) {
            let count = u64::from(own.count());
            if count > 0 {
                found.longest = found.longest.max(*cycles);
                found.total = found.total.saturating_add(cycles.saturating_mul(count));
                found.tiles += count;
            }
        }
        found
    }

    fn exchange(
        &self,
        limits: &mut ProgramLimits,
        ipu: IpuId,
        (id, program): (ProgramId, &ProgramNode),
        sums: &ProgramStepSums,
    ) {
        let class = if rearranges(&program.name) {
            CycleClass::Rearrangement
        } else {
            CycleClass::Exchange
        };
        // Further calls of a function move the data of the function's own exchanges.
        let traffic = self.exchanges.get(&self.programs.body(id));
        let tiles = self.target.tiles_of_ipu(ipu);
        let bound = traffic.map(|traffic| ExchangeBound::new(self.machine, traffic, tiles));
        let body = bound.map_or(sums.cycles, |bound| bound.moving(sums));
        limits.cycles[class] = body;
        limits.cycles[CycleClass::SyncAndStart] = sums.cycles.saturating_sub(body);
        let (bytes, tile_cycles) = match bound {
            Some(bound) => {
                let bytes = self.machine.sent_bytes(bound.sent, bound.received);
                let most = bound.cycles.map_or(0.0, |cycles| cycles.most);
                (bytes * sums.steps as f64, most * sums.steps as f64)
            }
            None => (self.machine.sent_bytes(Bytes::ZERO, sums.bytes_moved), 0.0),
        };
        limits.unknown_bytes = traffic.is_none() && !self.has_bytes;
        let needed_bytes = if class == CycleClass::Exchange { bytes } else { 0.0 };
        limits.exchange = ExchangeSums { cycles: sums.cycles, bytes, needed_bytes, tile_cycles };
    }
}
