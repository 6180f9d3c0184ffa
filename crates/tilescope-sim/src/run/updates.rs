//! Weight updates of all stages: one after the other, or side by side.

use super::{FragmentStart, ProgramRunner, StepSink};
use crate::compile::{FragmentItem, StageFragment};
use crate::spec::AccumulateOuterSchedule;
use tilescope_report::units::{Cycles, IpuId, ProgramId};
use tilescope_report::{MarkKind, TrainingPass};

/// The updates of the stages of one IPU, as far as they are done.
struct IpuUpdates<'a> {
    ipu: IpuId,
    fragments: Vec<&'a StageFragment>,
    /// The fragment that is worked on, and the next of its items.
    fragment: usize,
    item: usize,
    /// Where that fragment began.
    start: FragmentStart,
}

impl<'a> IpuUpdates<'a> {
    /// Items up to the next sync with others, and that sync; nothing where all is done.
    fn next_items(&self) -> Option<(&'a [FragmentItem], Option<ProgramId>)> {
        let rest = &self.fragments.get(self.fragment)?.items[self.item..];
        let sync = |item: &FragmentItem| matches!(item, FragmentItem::HostSync { .. });
        let own = rest.iter().position(sync).unwrap_or(rest.len());
        let program = match rest.get(own) {
            Some(FragmentItem::HostSync { program, .. }) => Some(*program),
            _ => None,
        };
        Some((&rest[..own], program))
    }
}

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    /// The updates of all stages after the passes of an iteration.
    pub(super) fn updates(&mut self, iteration: u64) -> Result<(), S::Error> {
        match self.spec.options.accumulate_outer_schedule {
            AccumulateOuterSchedule::Serial => (0..self.compiled.placement.stages.len())
                .try_for_each(|stage| self.update(stage, iteration)),
            AccumulateOuterSchedule::OverlapCycleOptimized
            | AccumulateOuterSchedule::OverlapMemoryOptimized => self.overlapped_updates(iteration),
        }
    }

    /// Every IPU works up to its next copy from or to streaming memory; then those that wait for
    /// each other sync once, and copy at the same time.
    fn overlapped_updates(&mut self, iteration: u64) -> Result<(), S::Error> {
        let mut ipus = self.updates_by_ipu();
        loop {
            let mut waiting: Vec<(IpuId, ProgramId)> = Vec::new();
            for updates in &mut ipus {
                if let Some(sync) = self.update_up_to_sync(updates, iteration)? {
                    waiting.push((updates.ipu, sync));
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            let mut synced: Vec<IpuId> = Vec::new();
            for (ipu, sync) in waiting {
                let group = self.compiled.sync_groups.host_sync_group(ipu);
                let joins = self.spec.options.merge_exchange && synced.contains(&ipu);
                if !joins {
                    self.external_sync(sync, group, Cycles::ZERO)?;
                    synced.extend(group);
                }
                if !self.spec.options.merge_exchange {
                    // A copy of its own goes on before the next one syncs.
                    let updates = ipus.iter_mut().find(|updates| updates.ipu == ipu);
                    if let Some(updates) = updates {
                        self.copy_after_sync(updates)?;
                    }
                }
            }
        }
    }

    fn updates_by_ipu(&self) -> Vec<IpuUpdates<'a>> {
        let parts = &self.compiled.parts;
        let mut ipus: Vec<IpuUpdates<'a>> = Vec::new();
        let updates =
            parts.fragments.iter().filter(|fragment| fragment.pass == TrainingPass::Update);
        for fragment in updates {
            match ipus.iter_mut().find(|updates| updates.ipu == fragment.ipu) {
                Some(updates) => updates.fragments.push(fragment),
                None => ipus.push(IpuUpdates {
                    ipu: fragment.ipu,
                    fragments: vec![fragment],
                    fragment: 0,
                    item: 0,
                    start: self.fragment_start(fragment.ipu),
                }),
            }
        }
        ipus
    }

    /// Works up to the next sync of an IPU with others, and gives its program.
    fn update_up_to_sync(
        &mut self,
        updates: &mut IpuUpdates<'a>,
        iteration: u64,
    ) -> Result<Option<ProgramId>, S::Error> {
        while let Some((items, sync)) = updates.next_items() {
            if updates.item == 0 {
                updates.start = self.fragment_start(updates.ipu);
            }
            self.items(items)?;
            updates.item += items.len();
            if sync.is_some() {
                updates.item += 1;
                return Ok(sync);
            }
            let fragment = updates.fragments[updates.fragment];
            self.fragment_mark(fragment, MarkKind::Update, iteration, &updates.start)?;
            updates.fragment += 1;
            updates.item = 0;
        }
        Ok(None)
    }

    /// The steps of the copy behind a sync.
    fn copy_after_sync(&mut self, updates: &mut IpuUpdates<'a>) -> Result<(), S::Error> {
        if let Some((items, _)) = updates.next_items() {
            self.items(items)?;
            updates.item += items.len();
        }
        Ok(())
    }
}
