//! Builder of the phases of an [`OperationWork`], and the traffic of exchanges.

use super::operand_routes::{OperandTransfer, route_from_any};
use crate::poplar::routes::{WorkRoute, WorkRoutes};
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{
    MemoryConstraint, OperationWork, OperationWorkItem, TemporaryVariable, VertexInstances,
    WorkPhase, WorkPhaseKind,
};
use crate::targets::IpuTarget;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, Quantity, TileId, TileRange, TileRuns};
use tilescope_report::{MemoryCategory, RouteBytes, TileTraffic};

/// Bytes of the longest message. Longer sends are split.
const MESSAGE_BYTES: Bytes = Bytes(256);

/// Bytes of one operand that one tile receives and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OperandExchangeFlow {
    pub received: Bytes,
    /// Maximum number of bytes sent, with a multicast counted once: the bytes that the tile holds
    /// for others.
    pub sent: Bytes,
    pub messages_in: u64,
    /// Number of different messages sent. 0 means one multicast.
    pub messages_out: u64,
    /// Additional cycles of short pieces besides their bytes.
    pub placing_cycles: Cycles,
    /// True if the adjacent tile on the same bus receives the same bytes.
    pub paired: bool,
}

/// Number of messages for `bytes` to one set of receivers.
pub(crate) fn messages(bytes: Bytes) -> u64 {
    bytes.next_multiple_of(MESSAGE_BYTES) / MESSAGE_BYTES
}

/// Builds the items of an [`OperationWork`]. Phases without effect are omitted.
#[derive(Default)]
pub(crate) struct ConvWorkBuilder {
    items: Vec<OperationWorkItem>,
    temporaries: Vec<TemporaryVariable>,
    phases: usize,
    /// Items before the loop under construction, and its number of iterations.
    outer: Option<(Vec<OperationWorkItem>, u64)>,
}

impl ConvWorkBuilder {
    /// Number of phases so far, which is the index of the next one.
    pub(crate) fn phase_count(&self) -> usize {
        self.phases
    }

    /// Adds an exchange of several operands at once.
    pub(crate) fn exchange(
        &mut self,
        machine: &IpuTarget,
        name: String,
        operands: &[OperandTransfer],
    ) {
        let tiles = operands.iter().map(|operand| operand.flows.len()).max().unwrap_or(0);
        let mut traffic = vec![TileTraffic::default(); tiles];
        let mut cycles = vec![Cycles::ZERO; tiles];
        let mut routes = Vec::new();
        let mut is_known = false;
        for operand in operands {
            let delivered = deliveries(&operand.flows);
            let known = operand.routes();
            is_known |= known.is_some();
            routes.extend(
                known.unwrap_or_else(|| vec![route_of_unknown_senders(&operand.flows, &delivered)]),
            );
            for (tile, (flow, delivered)) in operand.flows.iter().zip(delivered).enumerate() {
                let all = &mut traffic[tile];
                let sent = flow.sent.min(delivered);
                all.bytes_in += flow.received;
                all.bytes_out += sent;
                all.bytes_delivered += delivered;
                all.messages_in += flow.messages_in;
                // A send instruction carries up to 64 words and never parts of two messages.
                let each = flow.messages_out.max(1);
                all.messages_out += each * messages(sent.div_ceil(each));
                // Operands arrive one after the other over the tile's single link. Sends run in
                // parallel to them.
                cycles[tile] +=
                    machine.exchange_cycles(flow.received, flow.paired) + flow.placing_cycles;
            }
        }
        for (cycles, traffic) in cycles.iter_mut().zip(&traffic) {
            *cycles = (*cycles).max(machine.exchange_cycles(traffic.bytes_out, false));
        }
        let mut traffic_runs = TileRuns::empty();
        let mut cycle_runs = TileRuns::empty();
        for (tile, (traffic, cycles)) in TileId(0).onwards().zip(traffic.iter().zip(&cycles)) {
            if *traffic != TileTraffic::default() {
                traffic_runs.push(TileRange::single(tile), *traffic);
                cycle_runs.push(TileRange::single(tile), *cycles);
            }
        }
        // Poplar elides copies of data already in place, whereas an empty phase would still cost
        // its start.
        if traffic_runs.is_empty() {
            return;
        }
        let routes =
            if is_known { WorkRoutes::new(&traffic_runs, routes) } else { WorkRoutes::default() };
        self.push(
            name,
            WorkPhaseKind::Exchange { traffic: traffic_runs, cycles: cycle_runs, routes },
        );
    }

    /// Adds a compute set. Tiles without cycles take no part.
    pub(crate) fn compute(
        &mut self,
        name: String,
        cycles: &[Cycles],
        vertices: Vec<VertexInstances>,
    ) {
        if cycles.iter().all(|cycles| cycles.is_zero()) {
            return;
        }
        let cycles = nonzero_runs_of(cycles.iter().copied());
        self.push(name, WorkPhaseKind::Compute { cycles, vertices });
    }

    /// Adds copies on tiles with `cycles`, by the given number of `vertices` on each tile, at least
    /// one.
    pub(crate) fn copies(&mut self, name: String, cycles: &[Cycles], vertices: &[u64]) {
        let mut counts = Vec::new();
        for (tile, cycles) in cycles.iter().enumerate() {
            let vertices = vertices.get(tile).copied().unwrap_or(1).max(1);
            counts.push(if cycles.is_zero() { 0 } else { vertices });
        }
        let kind = "poplar_rt::DstStridedCopy64BitMultiAccess".to_owned();
        let copies = vertex_on(kind, counts, 2);
        self.compute(name, cycles, vec![copies]);
    }

    /// Begins a loop over the phases that follow, until [`ConvWorkBuilder::end_loop`].
    pub(crate) fn begin_loop(&mut self, times: u64) {
        debug_assert!(self.outer.is_none(), "serial loops do not nest");
        self.outer = Some((std::mem::take(&mut self.items), times));
    }

    pub(crate) fn end_loop(&mut self) {
        if let Some((items, times)) = self.outer.take() {
            let body = std::mem::replace(&mut self.items, items);
            self.items.push(OperationWorkItem::Loop { times, body });
        }
    }

    /// Adds a temporary that is live from phase `from` to the last phase so far.
    pub(crate) fn temporary(
        &mut self,
        name: String,
        category: MemoryCategory,
        interleaved: bool,
        from: usize,
        bytes: &[Bytes],
    ) {
        self.temporary_until(name, category, interleaved, from..self.phases, bytes);
    }

    /// Adds a temporary that is live in phases `live`.
    pub(crate) fn temporary_until(
        &mut self,
        name: String,
        category: MemoryCategory,
        interleaved: bool,
        live: Range<usize>,
        bytes: &[Bytes],
    ) {
        if live.is_empty() || bytes.iter().all(|bytes| bytes.is_zero()) {
            return;
        }
        let bytes = nonzero_runs_of(bytes.iter().copied());
        let place = if interleaved { MemoryConstraint::Interleaved } else { MemoryConstraint::Any };
        self.temporaries.push(TemporaryVariable {
            name,
            category,
            bytes,
            memory_constraint: place,
            live,
        });
    }

    pub(crate) fn finish(mut self) -> OperationWork {
        self.end_loop();
        OperationWork { items: self.items, temporaries: self.temporaries }
    }

    fn push(&mut self, name: String, kind: WorkPhaseKind) {
        self.items.push(OperationWorkItem::Phase(WorkPhase { name, kind }));
        self.phases += 1;
    }
}

/// The route of data with known bytes of each tile and unknown senders.
fn route_of_unknown_senders(flows: &[OperandExchangeFlow], delivered: &[Bytes]) -> WorkRoute {
    let mut bytes = Vec::new();
    for (flow, delivered) in flows.iter().zip(delivered) {
        bytes.push(RouteBytes { delivered: *delivered, received: flow.received });
    }
    route_from_any(bytes)
}

/// Bytes that each tile delivers, in proportion to the bytes it holds, rounded so that the sum
/// equals all bytes received.
fn deliveries(flows: &[OperandExchangeFlow]) -> Vec<Bytes> {
    let received: Bytes = flows.iter().map(|flow| flow.received).sum();
    let held: Bytes = flows.iter().map(|flow| flow.sent).sum();
    debug_assert!(received.is_zero() || !held.is_zero(), "received data is held by some tile");
    let mut delivered = Vec::new();
    let mut sent = Bytes::ZERO;
    let mut delivered_before = Bytes::ZERO;
    for flow in flows {
        sent += flow.sent;
        // Differences of rounded running sums add up to the total, whereas rounded shares would
        // not.
        let delivered_so_far = received.share(sent.0, held.0.max(1));
        delivered.push(delivered_so_far - delivered_before);
        delivered_before = delivered_so_far;
    }
    delivered
}

/// Run-length encodes the nonzero values of tiles from 0 on.
pub(crate) fn nonzero_runs_of<T: Quantity>(values: impl IntoIterator<Item = T>) -> TileRuns<T> {
    per_tile(TileId(0).onwards().zip(values))
}

/// One vertex of a type on every tile with a nonzero value in `present`.
pub(crate) fn vertex_on(
    vertex_type: String,
    present: impl IntoIterator<Item = u64>,
    edges: u64,
) -> VertexInstances {
    VertexInstances::of_edges(vertex_type, nonzero_runs_of(present), edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_received_is_delivered() {
        let flow = |received, sent| OperandExchangeFlow {
            received: Bytes(received),
            sent: Bytes(sent),
            ..OperandExchangeFlow::default()
        };
        for flows in [
            vec![flow(10, 3), flow(7, 5), flow(0, 0)],
            vec![flow(10, 0), flow(7, 1), flow(5, 0)],
            vec![flow(1, 1)],
        ] {
            let delivered = deliveries(&flows);
            assert_eq!(
                delivered.iter().sum::<Bytes>(),
                flows.iter().map(|flow| flow.received).sum::<Bytes>()
            );
        }
    }
}
