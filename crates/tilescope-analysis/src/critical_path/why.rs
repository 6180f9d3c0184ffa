//! Explanation of the length of a step: the lane it waits for, the work there in the meantime, and
//! so on down to the machine or the host, and the options that determine it.

use super::mechanism::Mechanism;
use crate::label_conventions::rearranges;
use crate::replica_classes::ipu_words;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tilescope_report::trace::{CriticalPath, LaneStep, LaneWait, PathHop};
use tilescope_report::units::{
    CycleRange, Cycles, NumberFormat, OperationId, ProgramId, ReplicaIpu, StepId, percent,
};
use tilescope_report::{
    HostCallPart, INTERNAL_SYNC, MachineAction, MarkFilter, MarkKind, ProgramKind, ProgramNode,
    ReplicaClasses, Report, ReportError, StepActivity, TrainingPass,
};

/// The maximum number of links of a chain: longer explanations do not help.
const MAX_LINKS: usize = 8;

/// The location of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhyPlace {
    pub at: ReplicaIpu,
    pub sub_lane: u8,
    pub step: StepId,
    /// Its position on the lane.
    pub position: u64,
    pub range: CycleRange,
    pub program: Option<ProgramId>,
}

/// A statement that the next link explains.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyLink {
    /// `IPU 1 waits for IPU 0`
    pub text: String,
    /// Figures: `24,310 cycles in External, one of 4 lanes`.
    pub detail: String,
    /// The cycles in question.
    pub cycles: Cycles,
    /// The step in question.
    pub place: Option<WhyPlace>,
}

/// The explanation of the length of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhyChain {
    /// The links from the step to its cause.
    pub links: Vec<WhyLink>,
    /// Keys of a spec that determine the last link, the most effective first.
    pub options: &'static [&'static str],
    /// The operation whose operands the last link rearranges; Tile mapping shows both layouts.
    pub rearranged: Option<OperationId>,
}

impl WhyChain {
    /// The chain in one sentence.
    pub fn sentence(&self) -> String {
        let texts = self.links.iter().map(|link| link.text.as_str());
        texts.collect::<Vec<_>>().join("; ")
    }
}

/// Explains a step of a lane, with figures in the format `numbers`; `None` if nothing was executed,
/// or the lane has no such step.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn why(
    report: &Report,
    step: StepId,
    at: ReplicaIpu,
    sub_lane: u8,
    numbers: NumberFormat,
) -> Result<Option<WhyChain>, ReportError> {
    let Some(path) = report.critical_path()? else { return Ok(None) };
    let Some(lane) = path.position_of(at, sub_lane) else { return Ok(None) };
    let Some(step) = path.lane_at(lane).map(|lane| lane.find(step)).transpose()?.flatten() else {
        return Ok(None);
    };
    let facts = WhyFacts::read(report, path, numbers)?;
    Ok(Some(facts.chain(lane, step)?))
}

/// Explains the largest parts of the critical path: at most `limit` chains, each with a different
/// subject.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn why_run(
    report: &Report,
    limit: usize,
    numbers: NumberFormat,
) -> Result<Vec<WhyChain>, ReportError> {
    let Some(path) = report.critical_path()? else { return Ok(Vec::new()) };
    let facts = WhyFacts::read(report, path, numbers)?;
    let programs = facts.path.programs()?;
    let mut sums: BTreeMap<(usize, WhatIsDone), (Cycles, Cycles, u64)> = BTreeMap::new();
    for program in programs.iter() {
        let node = program.program.and_then(|id| facts.programs.get(id));
        let what = WhatIsDone::of(program.program, node);
        let sum = sums.entry((program.lane, what)).or_default();
        sum.0 = sum.0.saturating_add(program.cycles);
        if program.cycles > sum.1 {
            (sum.1, sum.2) = (program.cycles, program.position);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (cycles, ..))| Reverse(*cycles));
    let mut chains = Vec::new();
    for ((lane, _), (cycles, _, position)) in sums.into_iter().take(limit) {
        let step = facts.path.lane_at(lane).map(|lane| lane.step(position)).transpose()?.flatten();
        let Some(step) = step else { continue };
        let mut chain = facts.chain(lane, step)?;
        let what = facts.name(&step);
        let share = percent(cycles.as_f64() / facts.path.range().length().as_f64().max(1.0));
        chain.links.insert(
            0,
            WhyLink {
                text: format!("{what} on {} takes {share} of the run", facts.lane_name(lane)),
                detail: format!("{cycles} cycles of the critical path"),
                cycles,
                place: facts.place(lane, &step),
            },
        );
        chains.push(chain);
    }
    Ok(chains)
}

/// The work that a step is part of, as users know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WhatIsDone {
    Operation(OperationId),
    /// A copy or another program without an operation.
    Program(Option<String>),
}

impl WhatIsDone {
    fn of(id: Option<ProgramId>, node: Option<&ProgramNode>) -> Self {
        match node.map(|node| (node.operation, &node.name)) {
            Some((Some(operation), _)) => Self::Operation(operation),
            Some((None, name)) => Self::Program(Some(name.clone())),
            None => Self::Program(id.map(|id| format!("program {}", id.0))),
        }
    }
}

/// The facts that chains are built from.
struct WhyFacts<'a> {
    report: &'a Report,
    path: CriticalPath,
    numbers: NumberFormat,
    programs: std::sync::Arc<tilescope_report::ProgramNodeTable>,
    operations: std::sync::Arc<Vec<tilescope_report::ModelOperation>>,
    classes: ReplicaClasses,
    handshake: Option<Cycles>,
}

impl<'a> WhyFacts<'a> {
    fn read(
        report: &'a Report,
        path: CriticalPath,
        numbers: NumberFormat,
    ) -> Result<Self, ReportError> {
        let costs = report.action_costs()?;
        let begin = costs.iter().find(|cost| cost.action == MachineAction::StreamBegin);
        Ok(Self {
            report,
            path,
            numbers,
            programs: report.programs()?,
            operations: report.operations()?,
            classes: report.replica_classes()?,
            handshake: begin.map(|cost| cost.cycles),
        })
    }

    fn node(&self, step: &LaneStep) -> Option<&ProgramNode> {
        self.programs.get(step.program?)
    }

    /// The name of the operation or program of a step.
    fn name(&self, step: &LaneStep) -> String {
        let node = self.node(step);
        let operation = node.and_then(|node| self.operations.get(node.operation?.index()));
        let name = operation.map(|of| of.name.clone()).or(node.map(|node| node.name.clone()));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| step.kind.name().to_owned())
    }

    fn lane_name(&self, lane: usize) -> String {
        let Some(info) = self.path.lane_infos().get(lane) else { return "an IPU".to_owned() };
        let tiles = if info.sub_lane > 0 { "the I/O tiles of " } else { "" };
        let at = ReplicaIpu { class: info.class, ipu: info.ipu };
        format!("{tiles}{}", ipu_words(&self.classes, at))
    }

    fn place(&self, lane: usize, step: &LaneStep) -> Option<WhyPlace> {
        let info = self.path.lane_infos().get(lane)?;
        let LaneStep { step, position, range, program, .. } = *step;
        let at = ReplicaIpu { class: info.class, ipu: info.ipu };
        let sub_lane = info.sub_lane;
        Some(WhyPlace { at, sub_lane, step, position, range, program })
    }

    fn link(&self, text: String, detail: String, lane: usize, step: &LaneStep) -> WhyLink {
        WhyLink { text, detail, cycles: step.range.length(), place: self.place(lane, step) }
    }

    fn chain(&self, lane: usize, step: LaneStep) -> Result<WhyChain, ReportError> {
        let mut lane = lane;
        let mut step = step;
        let mut links = Vec::new();
        while links.len() + 2 < MAX_LINKS {
            let Some(wait) = self.path.wait_of(lane, &step)? else { break };
            links.push(self.wait_link(lane, &step, &wait));
            let Some((next, found, share)) = self.most_of(&wait)? else { break };
            let what = self.name(&found);
            let whose = self.lane_name(next);
            let text = format!("{whose} runs {what}");
            let detail = format!("for {} of that time", percent(share));
            // A step that waits in turn has its own text.
            if self.path.wait_of(next, &found)?.is_none() {
                links.push(self.link(text, detail, next, &found));
            }
            if (next, found.position) == (lane, step.position) {
                break;
            }
            (lane, step) = (next, found);
        }
        let (mechanism, text, detail) = self.cause(&step)?;
        links.push(self.link(text, detail, lane, &step));
        let operation = self.node(&step).and_then(|node| node.operation);
        let rearranged = operation.filter(|_| mechanism == Mechanism::Rearrangement);
        Ok(WhyChain { links, options: mechanism.entry().options, rearranged })
    }

    fn wait_link(&self, lane: usize, step: &LaneStep, wait: &LaneWait) -> WhyLink {
        let own = self.lane_name(lane);
        let other = self.lane_name(wait.awaited);
        let cycles = wait.range.length();
        let place = match wait.hop {
            PathHop::Join(_) => {
                let next = match wait.lanes {
                    0..=2 => String::new(),
                    _ => format!(", {} cycles after the second-last", wait.lead),
                };
                let name = self.name(step);
                let lanes = wait.lanes;
                format!(
                    "{cycles} cycles at {name}, which joins {lanes} lanes; {other} arrives \
                     last{next}"
                )
            }
            PathHop::HandOver => format!("{cycles} cycles before {}", self.name(step)),
        };
        let link = self.link(format!("{own} waits for {other}"), place, lane, step);
        WhyLink { cycles, ..link }
    }

    /// The largest part of a wait: the lane, one of its steps, and the share.
    fn most_of(&self, wait: &LaneWait) -> Result<Option<(usize, LaneStep, f64)>, ReportError> {
        let stretches = self.path.path_to(wait.awaited, wait.range)?;
        let mut sums: BTreeMap<(usize, WhatIsDone), (Cycles, Cycles, u64)> = BTreeMap::new();
        for program in self.path.programs_of(&stretches)? {
            let node = program.program.and_then(|id| self.programs.get(id));
            let key = (program.lane, WhatIsDone::of(program.program, node));
            let sum = sums.entry(key).or_default();
            sum.0 = sum.0.saturating_add(program.cycles);
            if program.cycles >= sum.1 {
                (sum.1, sum.2) = (program.cycles, program.position);
            }
        }
        let most = sums.into_iter().max_by_key(|(_, (cycles, ..))| *cycles);
        let Some(((lane, _), (cycles, _, position))) = most else { return Ok(None) };
        let step = self.path.lane_at(lane).map(|lane| lane.step(position)).transpose()?.flatten();
        let share = cycles.as_f64() / wait.range.length().as_f64().max(1.0);
        Ok(step.map(|step| (lane, step, share)))
    }

    /// The mechanism that a step spends its cycles on, with its text.
    fn cause(&self, step: &LaneStep) -> Result<(Mechanism, String, String), ReportError> {
        let (mechanism, detail) = self.mechanism(step)?;
        if let Some(text) = self.layouts(step).filter(|_| mechanism == Mechanism::Rearrangement) {
            return Ok((mechanism, text, detail));
        }
        let verb = match mechanism {
            Mechanism::Compute
            | Mechanism::WeightUpdate
            | Mechanism::Rearrangement
            | Mechanism::NotRecorded => "spends its cycles on",
            _ => "waits for",
        };
        let text = format!("{} {verb} {}", self.name(step), mechanism.entry().name);
        Ok((mechanism, text, detail))
    }

    /// The layouts between which a step rearranges data: from those of the operations that made it
    /// to the one that its operation needs. `None` for a program without an operation.
    fn layouts(&self, step: &LaneStep) -> Option<String> {
        let node = self.node(step)?;
        let operation = self.operations.get(node.operation?.index())?;
        let makers = operation.inputs.iter().filter_map(|id| self.operations.get(id.index()));
        let mut makers: Vec<&str> = makers.map(|of| of.name.as_str()).collect();
        makers.dedup();
        let from = match makers.as_slice() {
            [] => "of its inputs".to_owned(),
            [one] => format!("of {one}"),
            [one, other] => format!("of {one} or {other}"),
            [one, ..] => format!("of {one} or another of its {} operands", makers.len()),
        };
        let name = &operation.name;
        Some(format!("{name} rearranges data from the layout {from} to the one that it needs"))
    }

    fn mechanism(&self, step: &LaneStep) -> Result<(Mechanism, String), ReportError> {
        let node = self.node(step);
        let name = node.map_or("", |node| node.name.as_str());
        let cycles = step.range.length();
        let plain = format!("{cycles} cycles");
        if let Some(part) = HostCallPart::of_sync(name) {
            let mechanism = match part {
                HostCallPart::Loader => Mechanism::Loader,
                HostCallPart::Results => Mechanism::HostReturn,
                _ => Mechanism::HostCall,
            };
            return Ok((mechanism, format!("{cycles} cycles, once per host call")));
        }
        let moved = step.bytes_in.max(step.bytes_out);
        let rate = format!(
            "{} in {cycles} cycles, {:.1} B per cycle",
            self.numbers.bytes(moved.0),
            moved.as_f64() / cycles.as_f64().max(1.0)
        );
        Ok(match (step.kind, step.activity) {
            (_, StepActivity::RemoteBuffer) => (Mechanism::StreamingMemory, rate),
            (ProgramKind::StreamCopyMid, _) if step.bytes_out > step.bytes_in => {
                (Mechanism::HostOutput, rate)
            }
            (ProgramKind::StreamCopyMid, _) => (Mechanism::HostInput, rate),
            (ProgramKind::StreamCopyBegin, _) => self.begin(step)?,
            (ProgramKind::StreamCopyEnd, _) => (Mechanism::Handshake, plain),
            (ProgramKind::GlobalExchange, _) => {
                let collective = crate::label_conventions::collective(name).is_some();
                let links = if collective { Mechanism::Collective } else { Mechanism::IpuLinks };
                (links, rate)
            }
            (ProgramKind::Sync, _) if name == INTERNAL_SYNC => (Mechanism::InternalSync, plain),
            (ProgramKind::Sync, _) => {
                (Mechanism::ExternalSync, format!("{cycles} cycles: it arrives last"))
            }
            (ProgramKind::DoExchange, _) => (Mechanism::InternalExchange, rate),
            (ProgramKind::OnTileExecute, _) => {
                let balance =
                    format!("{cycles} cycles, tile balance {}", percent(step.tile_balance.share()));
                (self.compute(node), balance)
            }
            _ => (Mechanism::NotRecorded, plain),
        })
    }

    /// The mechanism of a compute step.
    fn compute(&self, node: Option<&ProgramNode>) -> Mechanism {
        let operation = node.and_then(|node| self.operations.get(node.operation?.index()));
        let name = node.map_or("", |node| node.name.as_str());
        match operation.map(|of| of.pass) {
            Some(TrainingPass::Update) => Mechanism::WeightUpdate,
            _ if rearranges(name) => Mechanism::Rearrangement,
            _ => Mechanism::Compute,
        }
    }

    /// The mechanism that the begin of a copy with the host waits for.
    fn begin(&self, step: &LaneStep) -> Result<(Mechanism, String), ReportError> {
        let cycles = step.range.length();
        let handshake = self.handshake.unwrap_or(Cycles::MAX);
        let waiting = cycles.saturating_sub(handshake);
        if waiting <= handshake.min(cycles) {
            return Ok((Mechanism::Handshake, format!("{cycles} cycles")));
        }
        let detail = format!("{waiting} of its {cycles} cycles exceed the handshake");
        // A callback that ends as the copy continues was the cause; otherwise the host's links
        // were.
        let end = step.range.end;
        let filter = MarkFilter {
            kind: Some(MarkKind::Callback),
            ipu: None,
            window: Some(CycleRange::new(end.saturating_sub(Cycles(1)), end)),
            limit: usize::MAX,
        };
        let callbacks = self.report.marks(&filter)?;
        let held_up = callbacks.iter().any(|mark| mark.cycles.end == step.range.end);
        Ok((if held_up { Mechanism::Callback } else { Mechanism::SharedHostLink }, detail))
    }
}
