//! Copies between stages.

use super::fragment_items::{FragmentItem, first_leaf, last_leaf};
use super::program_builder::ProgramBuilder;
use super::tensor_analysis::StageBoundary;
use crate::poplar::code_bytes;
use crate::poplar::exchange::send_instructions;
use crate::poplar::work::OperationWork;
use crate::popops::relayout;
use crate::poputil::tensor_layout::LOAD_BYTES;
use crate::schedule::StageCopyTiming;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{Bytes, Elements, IpuId, ProgramId, TileId, TileRuns};
use tilescope_report::{
    ExchangeRoute, MemoryCategory, ProgramKind, ProgramNode, TileTraffic, TrainingPass,
};

/// Bytes that one IPU sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterIpuFlow {
    /// The IPU of the replica that sends.
    pub from: IpuId,
    /// The IPU of the replica that receives.
    pub to: IpuId,
    pub bytes: Bytes,
}

/// Copies between stages that happen together.
#[derive(Clone, Debug)]
pub struct StageCopyGroup {
    /// The stages and passes after which the copies happen. Empty if they happen after every slot.
    pub after: Vec<(usize, TrainingPass)>,
    /// The sync before the exchange between IPUs, and the exchange. `None` if all copies stay on
    /// one IPU.
    pub exchange: Option<[ProgramId; 2]>,
    /// Bytes between pairs of IPUs.
    pub flows: Vec<InterIpuFlow>,
    /// The number of tiles that take part, by IPU.
    pub active_tiles: Vec<u32>,
    /// Copies between stages of the same IPU.
    pub local: Vec<FragmentItem>,
}

impl ProgramBuilder<'_> {
    /// Adds the copies between the stages of a pipeline, which may follow any slot.
    pub(super) fn link_copies_of_pipeline(&mut self) -> Vec<StageCopyGroup> {
        // The copies of each stage follow its fragment instead (`link_copies_behind`).
        if self.plan.schedule.one_by_one {
            return Vec::new();
        }
        let boundaries: Vec<StageBoundary> = self.plan.tensors.boundaries().copied().collect();
        self.link_copies(&boundaries)
    }

    /// Adds the copies of the results of `stages`, which work together, in a pass whose program
    /// continues after them. PopART assigns copies to another phase to the phase that they come
    /// from, after its loads and before its updates (willow streamingmemoryopinserter.cpp,
    /// setPriority).
    pub(super) fn link_copies_behind(
        &mut self,
        stages: &Range<usize>,
        pass: TrainingPass,
    ) -> Vec<StageCopyGroup> {
        if !self.plan.schedule.one_by_one {
            return Vec::new();
        }
        let mut boundaries: Vec<StageBoundary> = self.plan.tensors.boundaries().copied().collect();
        boundaries.retain(|of| stages.contains(&of.from_stage) && of.from_pass == pass);
        self.link_copies(&boundaries)
    }

    /// Adds copies between stages, in the groups of the schedule.
    fn link_copies(&mut self, boundaries: &[StageBoundary]) -> Vec<StageCopyGroup> {
        if boundaries.is_empty() {
            return Vec::new();
        }
        let copying = self.plan.schedule.copying;
        if copying == StageCopyTiming::EverySlot {
            return vec![self.link_copy(Vec::new(), boundaries)];
        }
        let starts: BTreeSet<(usize, TrainingPass)> = boundaries.iter().map(start).collect();
        let mut groups: BTreeMap<(usize, TrainingPass), Vec<(usize, TrainingPass)>> =
            BTreeMap::new();
        for (stage, pass) in starts {
            let group = match copying {
                // The backward pass of the last stage follows its forward pass in the next slot, so
                // passes alternate over stages.
                StageCopyTiming::EveryOtherSlot => {
                    let side = (stage + usize::from(pass == TrainingPass::Forward)) % 2;
                    (side, TrainingPass::Forward)
                }
                StageCopyTiming::AfterEachStep { stages } => (stage / stages, pass),
                _ => (stage, pass),
            };
            groups.entry(group).or_default().push((stage, pass));
        }
        let mut copies = Vec::new();
        for group in groups.into_values() {
            let mut from_group = boundaries.to_vec();
            from_group.retain(|boundary| group.contains(&start(boundary)));
            copies.push(self.link_copy(group, &from_group));
        }
        copies
    }

    fn link_copy(
        &mut self,
        after: Vec<(usize, TrainingPass)>,
        boundaries: &[StageBoundary],
    ) -> StageCopyGroup {
        let mut local = Vec::new();
        let mut between = Vec::new();
        for boundary in boundaries {
            let from = self.plan.ipu(boundary.from_stage);
            let to = self.plan.ipu(boundary.to_stage);
            // A pipeline copies on one IPU too: the next micro-batch overwrites the original.
            if from == to {
                local.extend(self.local_copy(boundary))
            } else {
                between.push(*boundary)
            }
        }
        let mut copy = StageCopyGroup {
            after,
            exchange: None,
            flows: Vec::new(),
            active_tiles: Vec::new(),
            local,
        };
        if !between.is_empty() {
            self.exchange_between_ipus(&mut copy, &between);
        }
        copy
    }

    fn exchange_between_ipus(&mut self, copy: &mut StageCopyGroup, boundaries: &[StageBoundary]) {
        let sync = self.tables.external_sync();
        let name = match copy.after.as_slice() {
            [_] => {
                let first = self.plan.name(boundaries[0].tensor);
                format!("{first}/inter-ipu-copy/GlobalPre")
            }
            _ => "inter-ipu-copies/GlobalPre".to_string(),
        };
        let step = self.tables.next_step();
        let exchange = self.tables.push_leaf(ProgramNode::new(ProgramKind::GlobalExchange, name));
        let mut tiles = vec![TileTraffic::default(); self.all_tiles()];
        for boundary in boundaries {
            let from = self.plan.ipu(boundary.from_stage);
            let to = self.plan.ipu(boundary.to_stage);
            let bytes = self.plan.bytes(boundary.tensor);
            copy.flows.push(InterIpuFlow { from, to, bytes: bytes.total() });
            // Both ends have the same layout of the tensor.
            let sent = bytes.shifted(self.plan.tiles_before(from));
            let received = bytes.shifted(self.plan.tiles_before(to));
            self.tables.routes.push(ExchangeRoute::in_order(exchange, &sent, &received));
            add_inter_ipu_traffic(&mut tiles, &sent, true);
            add_inter_ipu_traffic(&mut tiles, &received, false);
            self.extend_boundary_lifetimes(boundary, step..step + 1);
            self.flows.note_stage_copy(boundary, exchange, exchange);
        }
        copy.active_tiles = tiles
            .chunks(self.tables.tiles_per_ipu as usize)
            .map(|ipu| ipu.iter().map(|tile| u32::from(*tile != TileTraffic::default())).sum())
            .collect();
        let target = self.tables.kind;
        // Each replica has code for its own routes, and every tile holds the code of all of them.
        let replicas = u64::from(self.plan.spec.options.replication_factor);
        let tiles = tiles.into_iter().map(|tile| {
            let code_bytes = replicas * code_bytes::global_code_bytes(&tile, target);
            if tile != TileTraffic::default() {
                Some(TileTraffic { code_bytes, ..tile })
            } else {
                None
            }
        });
        let tiles = TileRuns::from_tiles(TileId(0), tiles.collect::<Vec<_>>());
        self.tables.traffic(exchange, IpuId(0), tiles, MemoryCategory::GlobalExchangeCode);
        copy.exchange = Some([sync, exchange]);
    }

    /// Adds a copy to the next stage of the same IPU. The tensor stays on its tiles.
    fn local_copy(&mut self, boundary: &StageBoundary) -> Vec<FragmentItem> {
        let plan = self.plan;
        let tensor = boundary.tensor;
        let dtype = plan.dtype(tensor);
        let elements = plan.bytes(tensor).map(|bytes| Elements(*bytes / dtype.bytes()));
        let phase = relayout::copy("stage-copy", dtype, &elements, LOAD_BYTES / dtype.bytes());
        let work = OperationWork::of_phase(phase);
        let ipu = plan.ipu(boundary.from_stage);
        let first = self.tables.next_step();
        let items = self.tables.work(None, plan.name(tensor), ipu, &work).items;
        self.extend_boundary_lifetimes(boundary, first..self.tables.next_step());
        if let (Some(first), Some(last)) = (first_leaf(&items), last_leaf(&items)) {
            self.flows.note_stage_copy(boundary, first, last);
        }
        items
    }

    fn all_tiles(&self) -> usize {
        self.tables.code.category(MemoryCategory::Stack).len()
    }

    /// Extends the lifetimes of a copied tensor. The sent tensor lives until the copy. The received
    /// one lives from then to its last use, and always in a pipeline, where it is read in the next
    /// slot.
    fn extend_boundary_lifetimes(&mut self, boundary: &StageBoundary, steps: Range<u32>) {
        let [sent, received] = self.plan.boundary_buffers(boundary);
        let lifetimes = &mut self.variables.lifetimes;
        lifetimes.extend_to(sent, steps.clone());
        if self.plan.schedule.one_by_one {
            lifetimes.extend_to(received, steps);
        } else {
            lifetimes.keep_always(received);
        }
    }
}

/// The stage and the pass after which a copy can begin.
fn start(boundary: &StageBoundary) -> (usize, TrainingPass) {
    (boundary.from_stage, boundary.from_pass)
}

/// Adds the traffic of a copy between IPUs, sent or received by each tile in messages of 64 words.
fn add_inter_ipu_traffic(tiles: &mut [TileTraffic], bytes: &TileRuns<Bytes>, sends_it: bool) {
    for (range, bytes) in bytes.iter() {
        for tile in &mut tiles[range.indices()] {
            if sends_it {
                tile.bytes_out += *bytes;
                tile.bytes_delivered += *bytes;
                tile.messages_out += send_instructions(*bytes, 1);
            } else {
                tile.bytes_in += *bytes;
                tile.messages_in += send_instructions(*bytes, 1);
            }
        }
    }
}
