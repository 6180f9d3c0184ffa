//! Causality: data that a step reads were written by an earlier one, and steps that exchange data
//! have synced. If replicas differ, each class is followed by itself, and replicas that meet wait
//! for each other.

use super::replica_links::ReplicaLinkCheck;
use super::{Findings, InvariantViolation};
use crate::model::{
    DataAccess, DataAccessKind, DataBuffer, DataFlows, DataPlace, ProgramKind, ReplicaClasses,
    SyncGroupMembers,
};
use crate::reader::ProgramNodeTable;
use crate::trace::{StepObserver, StepRecord};
use crate::units::{Cycles, IpuId, ProgramId, ReplicaClassId, ReplicaIpu, StepId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;

/// Data in a buffer, or in transit between buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldData {
    /// Number of the micro-batch, as the host sent them; `None` for weights and state.
    micro_batch: Option<u64>,
    /// The cycle at which they become available.
    since: Cycles,
}

/// The content of a buffer.
#[derive(Debug, Default)]
struct BufferState {
    /// The data written last.
    now: Option<HeldData>,
    /// The data in a stash, the oldest first.
    stashed: VecDeque<HeldData>,
    /// The last step that read it, and its end.
    last_read: (StepId, Cycles),
    /// End of the last earlier step that read it.
    read_until: Cycles,
    /// Micro-batches that the host has sent or received so far.
    sent: u64,
}

/// The data that an operation or a copy has read so far.
#[derive(Clone, Copy, Debug, Default)]
struct OpenFlow {
    micro_batch: Option<u64>,
    /// True if it copies although there are no data yet.
    is_empty: bool,
    /// True if it loads from streaming memory.
    is_load: bool,
}

/// The properties of a program that the check uses.
#[derive(Clone, Debug, Default)]
struct ProgramRole {
    /// Range of its accesses in [`DataFlowCheck::accesses`].
    accesses: Range<usize>,
    is_external_sync: bool,
    /// True if it must directly follow an external sync.
    needs_sync: bool,
    /// True if its step on an IPU is checked when the other IPUs, or replicas, have reached it.
    is_joint: bool,
    /// True if it is one step of several IPUs of a replica.
    is_between_ipus: bool,
    /// True for a step of a collective, of each IPU by itself.
    is_collective: bool,
    /// True if replicas that differ meet in it.
    meets_replicas: bool,
    /// True if all replicas leave it at once.
    joins_replicas: bool,
    /// True if it uses links between replicas.
    uses_links: bool,
    /// True if none of this applies.
    is_plain: bool,
}

/// An access, with a flag for the first of its flow.
#[derive(Clone, Copy, Debug)]
struct ProgramAccess {
    access: DataAccess,
    begins: bool,
}

/// An external sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExternalSync {
    step: StepId,
    /// True if all replicas wait for each other in it.
    joins_replicas: bool,
    /// True if it joins all IPUs that must wait before one of them copies to other replicas.
    joins_group: bool,
}

/// The progress of the replicas of a class.
#[derive(Debug, Default)]
struct ReplicaState {
    buffers: Vec<BufferState>,
    flows: Vec<OpenFlow>,
    /// By IPU: its last step, if that was an external sync.
    synced: Vec<Option<ExternalSync>>,
}

impl ReplicaState {
    /// The sync that an IPU has just left.
    fn sync_of(&mut self, ipu: IpuId) -> Option<&mut Option<ExternalSync>> {
        if self.synced.len() <= ipu.index() {
            self.synced.resize(ipu.index() + 1, None);
        }
        self.synced.get_mut(ipu.index())
    }
}

/// Follows data from buffer to buffer through the steps.
pub(super) struct DataFlowCheck<'a> {
    programs: &'a ProgramNodeTable,
    buffers: &'a [DataBuffer],
    roles: Vec<ProgramRole>,
    /// True if the id of every program is its index.
    is_dense: bool,
    /// Parts of the last step, if it is joint.
    joint: Vec<(ReplicaIpu, StepRecord)>,
    accesses: Vec<ProgramAccess>,
    /// By class of replicas.
    replicas: Vec<ReplicaState>,
    /// Groups of IPUs that wait for each other; `None` if they were not recorded.
    groups: Option<&'a SyncGroupMembers>,
    /// The check of the links between replicas.
    pub(super) links: ReplicaLinkCheck<'a>,
    unsynced: Findings,
    ungrouped: Findings,
    outside: Findings,
    acausal: Findings,
    apart: Findings,
}

impl<'a> DataFlowCheck<'a> {
    /// A check of a run of `programs`, on this number of classes of replicas; `flows` may be empty.
    pub(super) fn new(
        programs: &'a ProgramNodeTable,
        flows: &'a DataFlows,
        groups: Option<&'a SyncGroupMembers>,
        (classes, count): (&ReplicaClasses, usize),
        links: ReplicaLinkCheck<'a>,
    ) -> Self {
        let mut found = Self {
            programs,
            buffers: &flows.buffers,
            roles: Vec::new(),
            is_dense: (0..).map(ProgramId).zip(programs.iter()).all(|(id, (own, _))| id == own),
            joint: Vec::new(),
            accesses: Vec::with_capacity(flows.accesses.len()),
            replicas: (0..count.max(1))
                .map(|_| ReplicaState {
                    buffers: flows.buffers.iter().map(BufferState::at_start).collect(),
                    ..ReplicaState::default()
                })
                .collect(),
            groups,
            links,
            unsynced: Findings::default(),
            ungrouped: Findings::default(),
            outside: Findings::default(),
            acausal: Findings::default(),
            apart: Findings::default(),
        };
        // Files without flows make no claims.
        if !flows.accesses.is_empty() {
            found.list_roles(&flows.accesses, classes);
        }
        found
    }

    fn list_roles(&mut self, accesses: &[DataAccess], classes: &ReplicaClasses) {
        let mut of_programs: BTreeMap<ProgramId, Vec<ProgramAccess>> = BTreeMap::new();
        let mut before = None;
        let mut flows = 0;
        for access in accesses {
            let begins = before != Some(access.flow);
            before = Some(access.flow);
            let all = of_programs.entry(access.program).or_default();
            all.push(ProgramAccess { access: *access, begins });
            flows = flows.max(access.flow.index().min(accesses.len()) + 1);
        }
        for replica in &mut self.replicas {
            replica.flows.resize(flows, OpenFlow::default());
        }
        let differ = self.replicas.len() > 1;
        for (id, node) in self.programs.iter() {
            let first = self.accesses.len();
            self.accesses.extend(of_programs.remove(&id).unwrap_or_default());
            let is_global = node.kind == ProgramKind::GlobalExchange;
            let is_external_sync = node.is_external_sync();
            // Between IPUs of a replica it is one joint step; between replicas each has its own.
            let is_between_ipus = is_global && node.ipu.is_none();
            let is_collective = is_global && node.ipu.is_some();
            let meets_replicas = differ && is_collective;
            let joins_replicas = differ && classes.joins.contains(&id);
            let needs_sync = is_global || node.kind == ProgramKind::StreamCopyBegin;
            let accesses = first..self.accesses.len();
            let uses_links = self.links.watches(id);
            self.roles.push(ProgramRole {
                is_plain: accesses.is_empty() && !is_external_sync && !needs_sync && !uses_links,
                accesses,
                is_external_sync,
                needs_sync,
                is_joint: is_between_ipus
                    || (is_external_sync && self.groups.is_some())
                    || meets_replicas
                    || joins_replicas,
                is_between_ipus,
                is_collective,
                meets_replicas,
                joins_replicas,
                uses_links,
            });
        }
    }

    /// Reports the findings after all steps. Returns the check of the links, which remains to be
    /// done.
    pub(super) fn finish(mut self, found: &mut Vec<InvariantViolation>) -> ReplicaLinkCheck<'a> {
        self.end_joint_step();
        let states = self.replicas.iter().flat_map(|of| self.buffers.iter().zip(&of.buffers));
        for (buffer, state) in states {
            // The backward passes of a run read all that its forward passes stashed.
            if !state.stashed.is_empty() {
                let count = state.stashed.len();
                let name = &buffer.name;
                self.acausal.add(|| format!("{count} micro-batches of {name} are never restored"));
            }
        }
        self.unsynced.tell("copies_are_synced", found);
        self.ungrouped.tell("syncs_are_of_groups", found);
        self.outside.tell("collectives_join_their_group", found);
        self.acausal.tell("reads_follow_writes", found);
        self.apart.tell("replicas_wait_for_each_other", found);
        self.links
    }

    fn role(&self, program: Option<ProgramId>) -> Option<&ProgramRole> {
        let program = program?;
        let place = if self.is_dense { program.index() } else { self.programs.place(program)? };
        self.roles.get(place)
    }

    /// Checks the last joint step, all of whose parts are there.
    fn end_joint_step(&mut self) {
        let mut parts = std::mem::take(&mut self.joint);
        while !parts.is_empty() {
            // Of several lanes of an IPU, each has a separate step.
            let mut later: Vec<(ReplicaIpu, StepRecord)> = Vec::new();
            let mut before = None;
            parts.retain(|part| {
                let is_first = before.replace(part.0) != Some(part.0);
                if !is_first {
                    later.push(*part);
                }
                is_first
            });
            self.joint_step(&parts);
            parts.clear();
            parts.append(&mut later);
        }
        // Its memory is reused.
        self.joint = parts;
    }

    /// Checks a step of several IPUs, given by class of replicas and IPU.
    fn joint_step(&mut self, on_ipus: &[(ReplicaIpu, StepRecord)]) {
        let role = on_ipus.first().and_then(|(_, record)| self.role(record.program));
        let Some(role) = role.cloned() else { return };
        if role.joins_replicas || role.meets_replicas {
            self.check_meeting(on_ipus, &role);
        }
        for of_class in on_ipus.chunk_by(|one, other| one.0.class == other.0.class) {
            if role.is_external_sync {
                self.sync_step(of_class, role.joins_replicas);
            } else if role.is_between_ipus {
                self.copy_between_ipus(of_class);
            } else {
                of_class.iter().for_each(|(at, record)| self.own_step(*at, record, &role));
            }
        }
    }

    /// The description of a step.
    fn words(&self, at: ReplicaIpu, record: &StepRecord) -> StepWords<'a> {
        StepWords { programs: self.programs, at, step: record.step, program: record.program }
    }

    /// The sync that an IPU has just left.
    fn sync_of(&mut self, at: ReplicaIpu) -> Option<&mut Option<ExternalSync>> {
        self.replicas.get_mut(at.class.index())?.sync_of(at.ipu)
    }

    /// Records the IPUs of a replica that wait for each other in a step, and checks that they
    /// belong to one group.
    fn sync_step(&mut self, on_ipus: &[(ReplicaIpu, StepRecord)], joins_replicas: bool) {
        let ipus: Vec<IpuId> = on_ipus.iter().map(|(at, _)| at.ipu).collect();
        let joins_group = self.groups.is_none_or(|groups| groups.may_join_replicas(&ipus));
        for (at, record) in on_ipus {
            if let Some(sync) = self.sync_of(*at) {
                *sync = Some(ExternalSync { step: record.step, joins_replicas, joins_group });
            }
        }
        // All IPUs of the replica have met, so no earlier copy can still use its links.
        if self.groups.is_some_and(|groups| groups.gs1.len() == ipus.len()) {
            self.links.all_met();
        }
        // Reports before version 2.3 do not record the groups.
        let is_grouped = self.groups.is_none_or(|groups| groups.may_sync(&ipus));
        if !is_grouped && let Some((at, record)) = on_ipus.first() {
            let words = self.words(*at, record);
            let ipus = ipus.iter().map(IpuId::to_string).collect::<Vec<_>>().join(", ");
            self.ungrouped
                .add(|| format!("{words} joins IPUs {ipus}, which do not form a sync group"));
        }
    }

    /// Checks that all replicas reach a step, and begin or leave it at once.
    fn check_meeting(&mut self, on_ipus: &[(ReplicaIpu, StepRecord)], role: &ProgramRole) {
        let Some((at, first)) = on_ipus.first() else { return };
        let words = self.words(*at, first);
        let all = self.replicas.len();
        let came = on_ipus.chunk_by(|one, other| one.0.class == other.0.class).count();
        if came != all {
            self.apart.add(|| {
                format!("{words} joins replicas, but only {came} of {all} classes reach it")
            });
        }
        let mut check_cycles = |what: &str, cycle: fn(&StepRecord) -> Cycles| {
            let cycles = on_ipus.iter().map(|(_, record)| cycle(record));
            let least = cycles.clone().min();
            let most = cycles.max();
            if let (Some(least), Some(most)) = (least, most)
                && least < most
            {
                self.apart.add(|| {
                    format!("{words} joins replicas, which {what} it at cycles {least} to {most}")
                });
            }
        };
        if role.joins_replicas {
            check_cycles("leave", |record| record.range.end);
        }
        if role.meets_replicas {
            check_cycles("begin", |record| record.range.start);
        }
    }

    /// Checks a copy between IPUs of a replica: the IPUs have waited for each other, and all data
    /// are sent before any arrive.
    fn copy_between_ipus(&mut self, on_ipus: &[(ReplicaIpu, StepRecord)]) {
        let Some((at, record)) = on_ipus.first() else { return };
        let syncs: Vec<Option<StepId>> = on_ipus
            .iter()
            // Taken, because a sync permits one copy.
            .map(|(at, _)| self.sync_of(*at).and_then(Option::take).map(|sync| sync.step))
            .collect();
        let waited = syncs.iter().all(|sync| sync.is_some() && Some(sync) == syncs.first());
        if !waited {
            let words = self.words(*at, record);
            self.unsynced.add(|| format!("{words} joins IPUs that have not waited for each other"));
        }
        let is_send = |access: &ProgramAccess| access.access.kind == DataAccessKind::Send;
        // Sends come first, because no IPU can pass on data that it receives in the same step.
        for wanted in [true, false] {
            for (at, record) in on_ipus {
                let places = self.role(record.program).map_or(0..0, |role| role.accesses.clone());
                for place in places {
                    if self.accesses.get(place).is_some_and(|access| is_send(access) == wanted) {
                        self.access(place, *at, record);
                    }
                }
            }
        }
    }

    /// Checks a step of a single IPU.
    fn own_step(&mut self, at: ReplicaIpu, record: &StepRecord, role: &ProgramRole) {
        let ProgramRole { is_external_sync, needs_sync, joins_replicas, .. } = *role;
        let sync = ExternalSync { step: record.step, joins_replicas, joins_group: true };
        // Any other step ends the effect of a sync: a copy must follow it directly.
        let now = if is_external_sync { Some(sync) } else { None };
        if role.uses_links {
            self.links.copy(at.class, at.ipu, record);
        }
        for place in role.accesses.clone() {
            self.access(place, at, record);
        }
        let sync = self.sync_of(at).and_then(|sync| std::mem::replace(sync, now));
        if needs_sync && sync.is_none() {
            let words = self.words(at, record);
            self.unsynced.add(|| format!("{words} does not follow an external sync"));
        }
        if role.meets_replicas && sync.is_some_and(|sync| !sync.joins_replicas) {
            let words = self.words(at, record);
            self.apart.add(|| format!("{words} follows a sync of one replica only"));
        }
        if role.is_collective && sync.is_some_and(|sync| !sync.joins_group) {
            let words = self.words(at, record);
            self.outside.add(|| format!("{words} follows a sync of only part of its sync group"));
        }
    }

    /// Checks the next step of an IPU.
    fn step(&mut self, at: ReplicaIpu, record: &StepRecord) {
        if self.joint.first().is_some_and(|(_, joint)| joint.step != record.step) {
            self.end_joint_step();
        }
        let Some(role) = self.role(record.program) else { return };
        // Data cross between lanes: all of them must have arrived.
        if role.is_joint {
            self.joint.push((at, *record));
            return;
        }
        if role.is_plain {
            self.forget_sync(at);
            return;
        }
        let role = role.clone();
        self.own_step(at, record, &role);
    }

    /// Records that an IPU has executed a step since its last sync.
    fn forget_sync(&mut self, at: ReplicaIpu) {
        if let Some(sync) = self.sync_of(at) {
            *sync = None;
        }
    }

    fn access(&mut self, place: usize, at: ReplicaIpu, record: &StepRecord) {
        let words = self.words(at, record);
        let Some(ProgramAccess { access, begins }) = self.accesses.get(place).copied() else {
            return;
        };
        let Some(replica) = self.replicas.get_mut(at.class.index()) else { return };
        let Some(buffer) = self.buffers.get(access.buffer.index()) else { return };
        let Some(state) = replica.buffers.get_mut(access.buffer.index()) else { return };
        let Some(flow) = replica.flows.get_mut(access.flow.index()) else { return };
        // This is called once for each IPU of a joint step.
        if buffer.ipu != at.ipu {
            return;
        }
        if begins {
            *flow = OpenFlow::default();
        }
        let mut at = BufferAccess { buffer, state, flow, record, words, found: &mut self.acausal };
        match access.kind {
            DataAccessKind::Read | DataAccessKind::Send => at.read(access.kind),
            DataAccessKind::Write | DataAccessKind::Receive => at.write(access.kind),
            DataAccessKind::Free => at.state.now = None,
        }
    }
}

/// One access of a step to a buffer.
struct BufferAccess<'a> {
    buffer: &'a DataBuffer,
    state: &'a mut BufferState,
    flow: &'a mut OpenFlow,
    record: &'a StepRecord,
    words: StepWords<'a>,
    found: &'a mut Findings,
}

impl BufferAccess<'_> {
    fn read(&mut self, kind: DataAccessKind) {
        let Self { buffer, state, flow, record, words, found } = self;
        let name = &buffer.name;
        state.note_reader(record);
        flow.is_load |= buffer.place == DataPlace::RemoteBuffer;
        let Some(held) = state.take(buffer) else {
            flow.is_empty = true;
            if kind == DataAccessKind::Read {
                found.add(|| format!("{words} reads {name} before it is written"));
            }
            return;
        };
        if let (Some(before), Some(here)) = (flow.micro_batch, held.micro_batch)
            && before != here
        {
            found.add(|| {
                format!(
                    "{words} reads {name} of micro-batch {here}, but its other inputs are of \
                     micro-batch {before}"
                )
            });
        }
        flow.micro_batch = flow.micro_batch.or(held.micro_batch);
        let start = record.range.start;
        let since = held.since;
        if since > start {
            found.add(|| {
                format!(
                    "{words} reads {name} at cycle {start}, but it is written until cycle {since}"
                )
            });
        }
    }

    fn write(&mut self, kind: DataAccessKind) {
        let Self { buffer, state, flow, record, words, found } = self;
        let name = &buffer.name;
        let entries = buffer.entries;
        let start = record.range.start;
        // Data that a pipeline sends while it fills are stale: no step may read them.
        if flow.is_empty && kind == DataAccessKind::Receive {
            state.now = None;
            return;
        }
        // Micro-batches replace each other, but loading weights that are already there is a
        // mistake.
        if flow.is_load && buffer.persistent && state.now.is_some() {
            found.add(|| format!("{words} loads {name}, which is already loaded"));
        }
        // Tiles that work in place read and write in one step.
        let until = state.read_by_others_until(record);
        if until > start && !buffer.is_stash() {
            found.add(|| {
                format!(
                    "{words} overwrites {name} at cycle {start}, but it is read until cycle {until}"
                )
            });
        }
        let micro_batch = flow.micro_batch.filter(|_| !buffer.persistent);
        if let Some(late) = micro_batch.filter(|late| state.was_sent(buffer, *late)) {
            found.add(|| format!("{words} sends {name} of micro-batch {late} again"));
        }
        let fits = state.put(buffer, HeldData { micro_batch, since: record.range.end });
        if !fits {
            found.add(|| format!("{words} stores more than {entries} entries in {name}"));
        }
    }
}

/// The description of a step: program, place and number.
#[derive(Clone, Copy)]
struct StepWords<'a> {
    programs: &'a ProgramNodeTable,
    at: ReplicaIpu,
    step: StepId,
    program: Option<ProgramId>,
}

impl fmt::Display for StepWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let program = self.program.and_then(|id| self.programs.get(id));
        let name = program.map_or("", |node| &node.name);
        write!(f, "step {} on IPU {}", self.step, self.at.ipu)?;
        if self.at.class != ReplicaClassId(0) {
            write!(f, " of replica class {}", self.at.class)?;
        }
        write!(f, " ({name})")
    }
}

impl StepObserver for DataFlowCheck<'_> {
    fn steps(&mut self, at: ReplicaIpu, records: &[StepRecord]) {
        let mut rest = records;
        while let Some((first, later)) = rest.split_first() {
            self.step(at, first);
            rest = later;
            if self.joint.is_empty() {
                // Most steps only end the last sync of their IPU.
                let is_plain =
                    |record: &StepRecord| self.role(record.program).is_some_and(|of| of.is_plain);
                let plain = later.iter().take_while(|record| is_plain(record)).count();
                if plain > 0 {
                    self.forget_sync(at);
                    rest = later.get(plain..).unwrap_or_default();
                }
            }
        }
    }
}

impl DataBuffer {
    fn is_stash(&self) -> bool {
        matches!(self.place, DataPlace::Stash | DataPlace::RemoteStash)
    }
}

impl BufferState {
    fn at_start(buffer: &DataBuffer) -> Self {
        let filled = HeldData { micro_batch: None, since: Cycles::ZERO };
        Self { now: buffer.filled.then_some(filled), ..Self::default() }
    }

    /// The data that a step reads.
    fn take(&mut self, buffer: &DataBuffer) -> Option<HeldData> {
        match buffer.place {
            DataPlace::Tiles | DataPlace::RemoteBuffer => self.now,
            DataPlace::Stash | DataPlace::RemoteStash => self.stashed.pop_front(),
            // A stream is filled in the order of the samples, so every read gets the next ones.
            DataPlace::Host => {
                let micro_batch = Some(self.sent).filter(|_| !buffer.persistent);
                self.sent += 1;
                Some(HeldData { micro_batch, since: Cycles::ZERO })
            }
        }
    }

    /// Stores the data that a step writes. Returns false if there is no space for them.
    fn put(&mut self, buffer: &DataBuffer, held: HeldData) -> bool {
        match buffer.place {
            DataPlace::Tiles | DataPlace::RemoteBuffer => self.now = Some(held),
            DataPlace::Stash | DataPlace::RemoteStash => self.stashed.push_back(held),
            DataPlace::Host => {}
        }
        let fits = self.stashed.len() as u64 <= buffer.entries;
        // A stash that is one entry too small would cause a finding at every later step and grow
        // with the run.
        if !fits {
            self.stashed.pop_front();
        }
        fits
    }

    /// Returns true if the host was sent this micro-batch, or a later one. Marks it as sent.
    fn was_sent(&mut self, buffer: &DataBuffer, micro_batch: u64) -> bool {
        let was_sent = buffer.place == DataPlace::Host && micro_batch < self.sent;
        if buffer.place == DataPlace::Host {
            self.sent = self.sent.max(micro_batch + 1);
        }
        was_sent
    }

    fn note_reader(&mut self, record: &StepRecord) {
        if self.last_read.0 != record.step {
            self.read_until = self.read_until.max(self.last_read.1);
        }
        self.last_read = (record.step, record.range.end);
    }

    /// The end of the last other step that read the current data.
    fn read_by_others_until(&self, record: &StepRecord) -> Cycles {
        let (step, until) = self.last_read;
        if step == record.step { self.read_until } else { self.read_until.max(until) }
    }
}
