//! Work of several IPUs at the same time, up to syncs that they share: the stages of a phase, and
//! the weight updates if they overlap.

use super::{FragmentStart, ProgramRunner, StepSink};
use crate::compile::{FragmentItem, StageFragment};
use crate::schedule::ScheduleSlot;
use crate::specification::AccumulateOuterSchedule;
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{MarkKind, TrainingPass};

/// Steps of a fragment, or the loads before it.
struct FragmentPart<'a> {
    fragment: &'a StageFragment,
    items: &'a [FragmentItem],
    /// Kind and index of the mark of the part.
    mark: Option<(MarkKind, u64)>,
}

/// The work of one IPU, and the position in it.
struct IpuQueue<'a> {
    ipu: IpuId,
    parts: Vec<FragmentPart<'a>>,
    /// The index of the current part.
    part: usize,
    /// The position in that part, with one entry for each enclosing loop.
    places: Vec<PlaceInItems<'a>>,
    /// The start of that part.
    start: FragmentStart,
    /// The sync at which the IPU waits.
    waits_at: Option<SharedSync>,
}

/// A position in some items, which run `rounds` more times.
struct PlaceInItems<'a> {
    items: &'a [FragmentItem],
    next: usize,
    rounds: u64,
}

/// A sync at which an IPU waits.
#[derive(Clone, Copy, Debug)]
enum SharedSync {
    /// A sync before a copy from or to the host or streaming memory.
    Host(ProgramId),
    /// A sync with the other IPUs of its set, or with those that share rows with it.
    Set(ProgramId),
    /// A sync before a copy between replicas.
    Replicas(ProgramId),
}

/// The next work of an IPU.
enum QueuedWork<'a> {
    /// Steps that the IPU runs alone.
    Items(&'a [FragmentItem]),
    /// A sync with other IPUs.
    Sync(SharedSync),
    /// The end of a part.
    PartEnds,
}

fn update_part(fragment: &StageFragment, iteration: u64) -> FragmentPart<'_> {
    let mark = Some((MarkKind::Update, iteration));
    FragmentPart { fragment, items: &fragment.items, mark }
}

fn shared_sync(item: &FragmentItem) -> Option<SharedSync> {
    match item {
        FragmentItem::HostSync { program, .. } => Some(SharedSync::Host(*program)),
        FragmentItem::SetSync { program, .. } => Some(SharedSync::Set(*program)),
        FragmentItem::ReplicaSync { program, .. } => Some(SharedSync::Replicas(*program)),
        _ => None,
    }
}

/// True if an item, or an item in a loop, waits for other IPUs.
fn is_shared(item: &FragmentItem) -> bool {
    match item {
        FragmentItem::Loop { body, .. } => body.iter().any(is_shared),
        item => shared_sync(item).is_some(),
    }
}

impl<'a> IpuQueue<'a> {
    /// Advances to the next work. Returns `None` when all is done.
    fn advance(&mut self) -> Option<QueuedWork<'a>> {
        let items: &'a [FragmentItem] = self.parts.get(self.part)?.items;
        if self.places.is_empty() {
            self.places.push(PlaceInItems { items, next: 0, rounds: 1 });
        }
        while let Some(place) = self.places.last_mut() {
            let rest = &place.items[place.next..];
            let own = rest.iter().take_while(|item| !is_shared(item)).count();
            if own > 0 {
                place.next += own;
                return Some(QueuedWork::Items(&rest[..own]));
            }
            match rest.first() {
                Some(FragmentItem::Loop { times, body }) => {
                    place.next += 1;
                    self.places.push(PlaceInItems { items: body, next: 0, rounds: *times });
                }
                Some(item) => {
                    place.next += 1;
                    return shared_sync(item).map(QueuedWork::Sync);
                }
                None if place.rounds > 1 => (place.next, place.rounds) = (0, place.rounds - 1),
                None => {
                    self.places.pop();
                }
            }
        }
        self.part += 1;
        Some(QueuedWork::PartEnds)
    }

    /// The steps up to the next sync.
    fn own_items(&mut self) -> Option<&'a [FragmentItem]> {
        let place = self.places.last_mut()?;
        let rest = &place.items[place.next..];
        let own = rest.iter().take_while(|item| !is_shared(item)).count();
        place.next += own;
        Some(&rest[..own])
    }
}

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    /// Runs the updates of all stages after the passes of an iteration: phase by phase, stage by
    /// stage, or on all IPUs at once.
    pub(super) fn updates(&mut self, iteration: u64) -> Result<(), S::Error> {
        let placement = &self.compiled.placement;
        // Serial updates keep the optimiser state of one group of stages on the chip at a time;
        // the overlapped schedules trade that memory for copies of all IPUs at once.
        let every = [0..placement.stages.len()];
        let groups = match self.spec.options.accumulate_outer_schedule {
            AccumulateOuterSchedule::Serial => placement.together(),
            AccumulateOuterSchedule::OverlapCycleOptimized
            | AccumulateOuterSchedule::OverlapMemoryOptimized => &every,
        };
        for stages in groups {
            let stages: Vec<usize> = stages.clone().collect();
            self.updates_of_stages(&stages, iteration)?;
        }
        Ok(())
    }

    /// Runs the updates of some stages at the same time.
    pub(super) fn updates_of_stages(
        &mut self,
        stages: &[usize],
        iteration: u64,
    ) -> Result<(), S::Error> {
        let parts = &self.compiled.parts;
        let mut updates = Vec::new();
        for stage in stages {
            if let Some(fragment) = parts.fragment(*stage, TrainingPass::Update) {
                updates.push(update_part(fragment, iteration));
            }
        }
        self.side_by_side(updates)
    }

    /// Runs the turns of a slot whose stages work on the same phase or step.
    pub(super) fn turns_side_by_side(
        &mut self,
        slot: &ScheduleSlot,
        iteration: u64,
    ) -> Result<(), S::Error> {
        let parts = &self.compiled.parts;
        let batches = self.compiled.schedule.micro_batches;
        let mut turns = Vec::new();
        for turn in &slot.turns {
            let batch = iteration * batches + turn.micro_batch;
            if let Some(fragment) = parts.fragment(turn.stage, turn.pass) {
                let mark = Some((MarkKind::Stage, batch));
                turns.push(FragmentPart { fragment, items: &fragment.items, mark });
            }
            // An update after every micro-batch follows its backward pass on the same IPU.
            turns.extend(self.update_behind(turn).map(|update| update_part(update, batch)));
        }
        if turns.len() > 1 {
            // A copy of one IPU stops the I/O tiles of all, which have done nothing in this slot
            // yet.
            for turn in &turns {
                self.io_waits_for_compute(turn.fragment.ipu);
            }
        }
        self.side_by_side(turns)
    }

    /// Loads the tensors that the slots of a phase need from streaming memory during the previous
    /// phase.
    pub(super) fn prefetch_remote_loads(&mut self, slots: &[ScheduleSlot]) -> Result<(), S::Error> {
        self.slot_loads(slots, |fragment| &fragment.remote_loads)
    }

    /// Starts the loads of the I/O tiles for the slots of a phase.
    pub(super) fn prefetch_by_io_tiles(&mut self, slots: &[ScheduleSlot]) -> Result<(), S::Error> {
        self.slot_loads(slots, |fragment| &fragment.io_loads)
    }

    fn slot_loads(
        &mut self,
        slots: &[ScheduleSlot],
        loads: impl Fn(&'a StageFragment) -> &'a Vec<FragmentItem>,
    ) -> Result<(), S::Error> {
        let parts = &self.compiled.parts;
        let loads = slots.iter().flat_map(|slot| &slot.turns).filter_map(|turn| {
            let fragment = parts.fragment(turn.stage, turn.pass)?;
            Some(FragmentPart { fragment, items: loads(fragment), mark: None })
        });
        self.side_by_side(loads.collect())
    }

    /// Runs every IPU up to its next sync with others. Then the IPUs that wait for each other sync
    /// once and continue at the same time.
    fn side_by_side(&mut self, parts: Vec<FragmentPart<'a>>) -> Result<(), S::Error> {
        let mut queues = self.queues_by_ipu(parts);
        loop {
            for queue in queues.iter_mut().filter(|queue| queue.waits_at.is_none()) {
                queue.waits_at = self.work_up_to_sync(queue)?;
            }
            // An IPU without a sync has reached the end of its work.
            if queues.iter().all(|queue| queue.waits_at.is_none()) {
                return Ok(());
            }
            // Host copies come first: an IPU of a set may have to copy before it reaches the sync
            // of the set.
            if !self.sync_for_host_copies(&mut queues)? {
                self.sync_for_copies(&mut queues)?;
            }
        }
    }

    /// Syncs for the copies that IPUs have reached. IPUs that wait for others of their set keep
    /// waiting, because one of those may reach a copy first.
    fn sync_for_host_copies(&mut self, queues: &mut [IpuQueue<'a>]) -> Result<bool, S::Error> {
        let merge = self.spec.options.merge_exchange;
        let mut synced: Vec<IpuId> = Vec::new();
        let mut any = false;
        for queue in queues {
            let Some(SharedSync::Host(program)) = queue.waits_at else { continue };
            (queue.waits_at, any) = (None, true);
            // Merged copies share the sync of the first IPU whose group contains them.
            if merge && synced.contains(&queue.ipu) {
                continue;
            }
            let group = self.compiled.sync_groups.host_sync_group(queue.ipu);
            self.host_sync(program, group)?;
            synced.extend(group);
            if !merge {
                // Its own copy runs before the next one syncs.
                self.copy_after_sync(queue)?;
            }
        }
        Ok(any)
    }

    /// Syncs the IPUs that have reached copies between IPUs, once for each group.
    fn sync_for_copies(&mut self, queues: &mut [IpuQueue<'a>]) -> Result<(), S::Error> {
        let sync_groups = &self.compiled.sync_groups;
        let set: Vec<IpuId> = queues
            .iter()
            .filter(|queue| matches!(queue.waits_at, Some(SharedSync::Set(_))))
            .map(|queue| queue.ipu)
            .collect();
        let mut syncs: Vec<(&[IpuId], ProgramId)> = Vec::new();
        for queue in queues {
            let group = match queue.waits_at {
                Some(SharedSync::Set(program)) => (sync_groups.copy_sync_group(&set), program),
                Some(SharedSync::Replicas(program)) => {
                    (sync_groups.copy_sync_group(&[queue.ipu]), program)
                }
                Some(SharedSync::Host(_)) | None => continue,
            };
            // IPUs of one group reach the same sync, which is one step.
            queue.waits_at = None;
            if !syncs.iter().any(|(known, _)| *known == group.0) {
                syncs.push(group);
            }
        }
        for (group, program) in syncs {
            self.replica_sync(program, group)?;
        }
        Ok(())
    }

    fn queues_by_ipu(&self, parts: Vec<FragmentPart<'a>>) -> Vec<IpuQueue<'a>> {
        let mut queues: Vec<IpuQueue<'a>> = Vec::new();
        for part in parts {
            let ipu = part.fragment.ipu;
            match queues.iter_mut().find(|queue| queue.ipu == ipu) {
                // Stages on one IPU share its tiles, so they run one after the other.
                Some(queue) => queue.parts.push(part),
                None => queues.push(IpuQueue {
                    ipu,
                    parts: vec![part],
                    part: 0,
                    places: Vec::new(),
                    start: self.fragment_start(ipu),
                    waits_at: None,
                }),
            }
        }
        queues
    }

    /// Works up to the next sync of an IPU with others.
    fn work_up_to_sync(
        &mut self,
        queue: &mut IpuQueue<'a>,
    ) -> Result<Option<SharedSync>, S::Error> {
        loop {
            // A part begins here; its mark starts with it, not with the previous part.
            if queue.places.is_empty() {
                queue.start = self.fragment_start(queue.ipu);
            }
            match queue.advance() {
                Some(QueuedWork::Items(items)) => self.items(items)?,
                Some(QueuedWork::Sync(sync)) => return Ok(Some(sync)),
                Some(QueuedWork::PartEnds) => {
                    let FragmentPart { fragment, mark, .. } = &queue.parts[queue.part - 1];
                    if let Some((kind, index)) = mark {
                        self.fragment_mark(fragment, *kind, *index, &queue.start)?;
                    }
                }
                None => return Ok(None),
            }
        }
    }

    /// Runs the steps of the copy after a sync.
    fn copy_after_sync(&mut self, queue: &mut IpuQueue<'a>) -> Result<(), S::Error> {
        queue.own_items().map_or(Ok(()), |items| self.items(items))
    }
}
