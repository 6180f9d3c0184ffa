//! What several IPUs do at the same time up to syncs that they share: the stages of a phase, and the
//! weight updates where they overlap.

use super::{FragmentStart, ProgramRunner, StepSink};
use crate::compile::{FragmentItem, StageFragment};
use crate::schedule::ScheduleSlot;
use crate::spec::AccumulateOuterSchedule;
use std::ops::Range;
use tilescope_report::units::{Cycles, IpuId, ProgramId};
use tilescope_report::{MarkKind, TrainingPass};

/// Steps of a fragment, or those before it.
struct FragmentPart<'a> {
    fragment: &'a StageFragment,
    items: &'a [FragmentItem],
    /// Kind and index of the mark that tells of them.
    mark: Option<(MarkKind, u64)>,
}

/// What one IPU has to do, and how far it is.
struct IpuQueue<'a> {
    ipu: IpuId,
    parts: Vec<FragmentPart<'a>>,
    /// The part that is worked on, and the next of its items.
    part: usize,
    item: usize,
    /// Where that part began.
    start: FragmentStart,
}

/// A sync at which an IPU waits.
#[derive(Clone, Copy, Debug)]
enum SharedSync {
    /// Before a copy from or to the host or streaming memory.
    Host(ProgramId),
    /// With the other IPUs of its set.
    Set(ProgramId),
}

impl<'a> IpuQueue<'a> {
    /// Items up to the next sync with others, and that sync; nothing where all is done.
    fn next_items(&self) -> Option<(&'a [FragmentItem], Option<SharedSync>)> {
        let items: &'a [FragmentItem] = self.parts.get(self.part)?.items;
        let rest = &items[self.item..];
        let sync = |item: &FragmentItem| match item {
            FragmentItem::HostSync { program, .. } => Some(SharedSync::Host(*program)),
            FragmentItem::SetSync { program, .. } => Some(SharedSync::Set(*program)),
            _ => None,
        };
        let own = rest.iter().take_while(|item| sync(item).is_none()).count();
        Some((&rest[..own], rest.get(own).and_then(sync)))
    }
}

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    /// The updates of all stages after the passes of an iteration: phase by phase or stage by stage,
    /// or all IPUs at once.
    pub(super) fn updates(&mut self, iteration: u64) -> Result<(), S::Error> {
        let compiled = self.compiled;
        let every = 0..compiled.placement.stages.len();
        match self.spec.options.accumulate_outer_schedule {
            AccumulateOuterSchedule::Serial => compiled
                .placement
                .peers()
                .iter()
                .try_for_each(|stages| self.updates_of(stages.clone(), iteration)),
            AccumulateOuterSchedule::OverlapCycleOptimized
            | AccumulateOuterSchedule::OverlapMemoryOptimized => self.updates_of(every, iteration),
        }
    }

    fn updates_of(&mut self, stages: Range<usize>, iteration: u64) -> Result<(), S::Error> {
        let parts = &self.compiled.parts;
        let updates = stages.filter_map(|stage| parts.fragment(stage, TrainingPass::Update));
        let mark = Some((MarkKind::Update, iteration));
        let updates =
            updates.map(|fragment| FragmentPart { fragment, items: &fragment.items, mark });
        self.side_by_side(updates.collect())
    }

    /// The turns of a slot whose stages work on the same phase.
    pub(super) fn turns_side_by_side(
        &mut self,
        slot: &ScheduleSlot,
        iteration: u64,
    ) -> Result<(), S::Error> {
        let (parts, batches) = (&self.compiled.parts, self.compiled.schedule.micro_batches);
        let turns = slot.turns.iter().filter_map(|turn| {
            let fragment = parts.fragment(turn.stage, turn.pass)?;
            let mark = Some((MarkKind::Stage, iteration * batches + turn.micro_batch));
            Some(FragmentPart { fragment, items: &fragment.items, mark })
        });
        let turns: Vec<FragmentPart> = turns.collect();
        if turns.len() > 1 {
            // A copy of one of them stops the I/O tiles of all, which have done nothing here yet.
            turns.iter().for_each(|turn| self.io_waits_for_compute(turn.fragment.ipu));
        }
        self.side_by_side(turns)
    }

    /// Fetches what a slot needs of streaming memory, while the one before it works.
    pub(super) fn prefetch_remote_loads(&mut self, slot: &ScheduleSlot) -> Result<(), S::Error> {
        let parts = &self.compiled.parts;
        let loads = slot.turns.iter().filter_map(|turn| {
            let fragment = parts.fragment(turn.stage, turn.pass)?;
            Some(FragmentPart { fragment, items: &fragment.remote_loads, mark: None })
        });
        self.side_by_side(loads.collect())
    }

    /// Every IPU works up to its next sync with others; then those that wait for each other sync
    /// once, and go on at the same time.
    fn side_by_side(&mut self, parts: Vec<FragmentPart<'a>>) -> Result<(), S::Error> {
        let mut queues = self.queues_by_ipu(parts);
        loop {
            let mut waiting: Vec<(IpuId, SharedSync)> = Vec::new();
            for queue in &mut queues {
                if let Some(sync) = self.work_up_to_sync(queue)? {
                    waiting.push((queue.ipu, sync));
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            self.sync_waiting(&mut queues, waiting)?;
        }
    }

    fn sync_waiting(
        &mut self,
        queues: &mut [IpuQueue<'a>],
        waiting: Vec<(IpuId, SharedSync)>,
    ) -> Result<(), S::Error> {
        let merge = self.spec.options.merge_exchange;
        let in_set: Vec<IpuId> = waiting
            .iter()
            .filter(|(_, sync)| matches!(sync, SharedSync::Set(_)))
            .map(|(ipu, _)| *ipu)
            .collect();
        let mut synced: Vec<IpuId> = Vec::new();
        for (ipu, sync) in waiting {
            match sync {
                SharedSync::Set(_) if synced.contains(&ipu) => {}
                SharedSync::Set(program) => {
                    let group = self.compiled.sync_groups.copy_sync_group(&in_set);
                    self.external_sync(program, &group, Cycles::ZERO)?;
                    synced.extend(group);
                }
                SharedSync::Host(_) if merge && synced.contains(&ipu) => {}
                SharedSync::Host(program) => {
                    let group = self.compiled.sync_groups.host_sync_group(ipu);
                    self.host_sync(program, group)?;
                    synced.extend(group);
                    // A copy of its own goes on before the next one syncs.
                    let queue = queues.iter_mut().find(|queue| !merge && queue.ipu == ipu);
                    if let Some(queue) = queue {
                        self.copy_after_sync(queue)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn queues_by_ipu(&self, parts: Vec<FragmentPart<'a>>) -> Vec<IpuQueue<'a>> {
        let mut queues: Vec<IpuQueue<'a>> = Vec::new();
        for part in parts {
            let ipu = part.fragment.ipu;
            match queues.iter_mut().find(|queue| queue.ipu == ipu) {
                Some(queue) => queue.parts.push(part),
                None => queues.push(IpuQueue {
                    ipu,
                    parts: vec![part],
                    part: 0,
                    item: 0,
                    start: self.fragment_start(ipu),
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
        while let Some((items, sync)) = queue.next_items() {
            if queue.item == 0 {
                queue.start = self.fragment_start(queue.ipu);
            }
            self.items(items)?;
            queue.item += items.len();
            if sync.is_some() {
                queue.item += 1;
                return Ok(sync);
            }
            let FragmentPart { fragment, mark, .. } = &queue.parts[queue.part];
            if let Some((kind, index)) = mark {
                self.fragment_mark(fragment, *kind, *index, &queue.start)?;
            }
            queue.part += 1;
            queue.item = 0;
        }
        Ok(None)
    }

    /// The steps of the copy behind a sync.
    fn copy_after_sync(&mut self, queue: &mut IpuQueue<'a>) -> Result<(), S::Error> {
        if let Some((items, _)) = queue.next_items() {
            self.items(items)?;
            queue.item += items.len();
        }
        Ok(())
    }
}
