//! Senders and receivers of the operands and partial sums of a pass.

use super::work_builder::OperandExchangeFlow;
use crate::poplar::routes::WorkRoute;
use crate::poputil::list_length;
use std::iter::zip;
use tilescope_report::units::{Bytes, Quantity, TileId, TileRange, TileRuns};
use tilescope_report::{RouteBytes, RoutePattern, TileGroups};

/// Bytes of one operand, or of partial sums, that the tiles exchange.
pub(crate) struct OperandTransfer {
    /// Bytes of each tile, from tile 0 on.
    pub flows: Vec<OperandExchangeFlow>,
    pub pattern: OperandPattern,
}

/// The receivers of each tile's data.
pub(crate) enum OperandPattern {
    /// Only the bytes of each tile are known.
    Unknown,
    /// The tiles of a group share a slice, and each sends its share to all others. Data that they
    /// do not hold, such as halos, come from tiles of the same group of `around`. If slices overlap
    /// so much that tiles do not need all shares, those in a group of `same` still read the same.
    Shares { users: TileGroups, same: TileGroups, around: TileGroups },
    /// Each tile of a group gets a part of the partial sums of all others, and all get different
    /// parts.
    Partials(TileGroups),
    /// Data stay within groups.
    Within(TileGroups),
    /// Tensors move from one layout to another.
    Moves(Vec<WorkRoute>),
}

impl OperandTransfer {
    /// An exchange with known bytes of each tile and unknown senders.
    pub(crate) fn unknown(flows: Vec<OperandExchangeFlow>) -> Self {
        Self { flows, pattern: OperandPattern::Unknown }
    }

    /// The routes of all bytes, or `None` if only those of each tile are known.
    pub(super) fn routes(&self) -> Option<Vec<WorkRoute>> {
        match &self.pattern {
            OperandPattern::Unknown => None,
            OperandPattern::Shares { users, same, around } => self
                .shares(users, around)
                .or_else(|| self.shares(same, around))
                .or_else(|| self.within(around)),
            OperandPattern::Partials(groups) => {
                self.partials(groups).or_else(|| self.within(groups))
            }
            OperandPattern::Within(groups) => self.within(groups),
            OperandPattern::Moves(routes) => {
                let mut received = vec![Bytes::ZERO; self.flows.len()];
                for (tiles, bytes) in routes.iter().flat_map(|route| route.tiles.iter()) {
                    for tile in tiles.iter().filter(|_| !bytes.received.is_zero()) {
                        *received.get_mut(tile.index())? += bytes.received;
                    }
                }
                let is_all = zip(&self.flows, received).all(|(flow, sum)| flow.received == sum);
                let is_known =
                    routes.iter().any(|route| !matches!(route.pattern, RoutePattern::Unknown(_)));
                if is_all && is_known { Some(routes.clone()) } else { None }
            }
        }
    }

    /// The routes of shares within groups, and of all other data around them.
    fn shares(&self, users: &TileGroups, around: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(users)?;
        let mut groups = vec![SharingGroup::default(); list_length(users.count())];
        for (flow, group) in zip(&self.flows, &group_of) {
            groups[*group].tiles += 1;
            groups[*group].held += flow.sent;
            groups[*group].received += flow.received;
        }
        for (flow, group) in zip(&self.flows, &group_of) {
            let group = &mut groups[*group];
            let lacking = flow.received.checked_sub(group.held - flow.sent)?;
            group.lacking = group.lacking.max(lacking);
        }
        let mut shared = Vec::new();
        let mut lacking = Vec::new();
        for (flow, group) in zip(&self.flows, &group_of) {
            let group = &mut groups[*group];
            let others = group.held - flow.sent;
            if group.is_complete() {
                let delivered = group.next_delivery(flow.sent);
                shared.push(RouteBytes { delivered, received: flow.received });
                lacking.push(OperandExchangeFlow { received: Bytes::ZERO, ..*flow });
            } else {
                let delivered = (group.tiles - 1) * flow.sent;
                shared.push(RouteBytes { delivered, received: others });
                lacking.push(OperandExchangeFlow { received: flow.received - others, ..*flow });
            }
        }
        let mut routes = vec![route(shared, RoutePattern::Broadcast(users.clone()))];
        routes.extend(Self::unknown(lacking).within(around)?);
        Some(routes)
    }

    /// The route of partial sums within groups.
    fn partials(&self, groups: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(groups)?;
        let mut tiles = vec![0u64; list_length(groups.count())];
        group_of.iter().for_each(|group| tiles[*group] += 1);
        // The part of each tile's partial sums that a tile adds.
        let mut parts = Vec::new();
        let mut all = vec![Bytes::ZERO; tiles.len()];
        for (flow, group) in zip(&self.flows, &group_of) {
            let others = (tiles[*group] - 1).max(1);
            if !flow.received.0.is_multiple_of(others) {
                return None;
            }
            let part = flow.received / others;
            parts.push(part);
            all[*group] += part;
        }
        let bytes = zip(&self.flows, zip(&parts, &group_of)).map(|(flow, (part, group))| {
            let delivered = if tiles[*group] > 1 { all[*group] - *part } else { Bytes::ZERO };
            RouteBytes { delivered, received: flow.received }
        });
        Some(vec![route(bytes.collect(), RoutePattern::Gather(groups.clone()))])
    }

    /// The route of data that stay within groups, sent in proportion to the bytes that tiles hold.
    fn within(&self, groups: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(groups)?;
        let mut sums = vec![SharingGroup::default(); list_length(groups.count())];
        for (flow, group) in zip(&self.flows, &group_of) {
            sums[*group].held += flow.sent;
            sums[*group].received += flow.received;
        }
        if sums.iter().any(|sum| sum.held.is_zero() && !sum.received.is_zero()) {
            return None;
        }
        let bytes = zip(&self.flows, &group_of).map(|(flow, group)| RouteBytes {
            delivered: sums[*group].next_delivery(flow.sent),
            received: flow.received,
        });
        Some(vec![route(bytes.collect(), RoutePattern::Unknown(groups.clone()))])
    }

    /// The group of each tile, or `None` if a tile is in none.
    fn groups(&self, groups: &TileGroups) -> Option<Vec<usize>> {
        let tiles = TileId(0).onwards().zip(&self.flows);
        tiles.map(|(tile, _)| groups.group_of(tile).map(list_length)).collect()
    }
}

/// Tiles that share data.
#[derive(Clone, Copy, Default)]
struct SharingGroup {
    tiles: u64,
    /// Bytes that they hold for others.
    held: Bytes,
    /// Bytes that they receive.
    received: Bytes,
    /// The largest number of bytes that a tile needs and no other tile holds.
    lacking: Bytes,
    /// Bytes of the tiles so far.
    held_before: Bytes,
    delivered_before: Bytes,
}

impl SharingGroup {
    /// Returns true if the tiles hold all data that they need. Shares are rounded down.
    fn is_complete(&self) -> bool {
        self.received.is_zero() || (!self.held.is_zero() && self.lacking.0 < self.tiles)
    }

    /// Bytes that the next tile delivers, in proportion to the bytes that it holds. Those of all
    /// tiles add up to the bytes that they receive.
    fn next_delivery(&mut self, held: Bytes) -> Bytes {
        self.held_before += held;
        let until = self.received.share(self.held_before.0, self.held.0.max(1));
        let delivered = until - self.delivered_before;
        self.delivered_before = until;
        delivered
    }
}

/// The route of data that arrive on tiles from 0 on, if only these bytes are known. The model lets
/// tiles send as much as they receive.
pub(super) fn unknown_route(received: &[Bytes]) -> WorkRoute {
    let bytes = received.iter().map(|bytes| RouteBytes { delivered: *bytes, received: *bytes });
    route_from_any(bytes.collect())
}

/// The route of data from unknown senders, with the bytes of tiles from 0 on.
pub(super) fn route_from_any(bytes: Vec<RouteBytes>) -> WorkRoute {
    let end = TileId(0) + u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    WorkRoute::of_unknown_order(runs_of(bytes), end)
}

/// A route of all data with one pattern, with the bytes of tiles from 0 on.
fn route(bytes: Vec<RouteBytes>, pattern: RoutePattern) -> WorkRoute {
    WorkRoute { tiles: runs_of(bytes), pattern }
}

/// The bytes of tiles from 0 on as runs.
fn runs_of(bytes: Vec<RouteBytes>) -> TileRuns<RouteBytes> {
    let mut tiles = TileRuns::empty();
    for (tile, bytes) in TileId(0).onwards().zip(bytes) {
        if bytes != RouteBytes::default() {
            tiles.push(TileRange::single(tile), bytes);
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::{OperationWork, WorkPhaseKind};
    use crate::poplin::ConvParams;
    use crate::poplin::conv::reduction::{reduced_part, reduction_grain};
    use crate::poplin::conv::tile_parts::{ConvAxis, PartitionedConv};
    use crate::poplin::conv::{OperandSource, forward};
    use crate::poplin::estimate::reduce::stage_depths;
    use crate::poplin::planner::{ConvOptions, ConvPass, ConvPlan, plan};
    use crate::shape::DType;
    use crate::targets::{IpuTarget, MK2};
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Routes of the phase whose name ends with `name`.
    fn routes_of(work: &OperationWork, name: &str) -> Vec<WorkRoute> {
        let phases = work.phases().into_iter().filter(|(phase, _)| phase.name.ends_with(name));
        let routes = phases.flat_map(|(phase, _)| match &phase.kind {
            WorkPhaseKind::Exchange { routes, .. } => routes.iter().cloned().collect::<Vec<_>>(),
            WorkPhaseKind::Compute { .. } => Vec::new(),
        });
        routes.collect()
    }

    /// Positions of a tile along batch and field, output channels, and input channels, if tiles are
    /// numbered with output channels innermost.
    fn position(plan: &ConvPlan, tile: u64) -> [u64; 3] {
        let split = &plan.partition;
        let (row, column) = (tile / split.out_channels, tile % split.out_channels);
        let rows = split.field_parts() * split.batch;
        [row % rows, column, row / rows]
    }

    /// Bytes of each tile if `sent` of each tile go to all others at the same `joined` place.
    fn expected(
        plan: &ConvPlan,
        tiles: u64,
        others_at: impl Fn([u64; 3], [u64; 3]) -> bool,
        bytes: impl Fn(usize, usize) -> u64,
    ) -> Vec<[u64; 2]> {
        let mut sums = vec![[0; 2]; list_length(tiles)];
        for from in 0..tiles {
            for to in 0..tiles {
                if from != to && others_at(position(plan, from), position(plan, to)) {
                    let bytes = bytes(list_length(from), list_length(to));
                    sums[list_length(from)][0] += bytes;
                    sums[list_length(to)][1] += bytes;
                }
            }
        }
        sums
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(12)))]
        /// Products of odd sizes: rows of tiles share the left operand, columns the right one, and
        /// tiles with other input channels add partial sums.
        #[test]
        fn parts_of_products_exchange_data_in_their_groups(
            [rows, groups, columns] in [20u64..900, 2..56, 20..900],
        ) {
            let machine = IpuTarget::all_tiles_of(MK2);
            // Channels in whole groups stay on the tiles that use them.
            let params = ConvParams::matmul(DType::Half, 1, rows, 16 * groups, columns);
            let plan = plan(&machine, &params, &ConvOptions::new(ConvPass::MatMul)).unwrap();
            prop_assume!(plan.partition.serial() == 1 && plan.partition.kernel_parts() == 1);
            let work = forward(&machine, &plan, OperandSource::Planned, OperandSource::Planned);
            let layout = PartitionedConv::from_plan(&plan);
            let tiles = layout.parts.len() as u64;
            let element = DType::Half.bytes();
            let users = plan.partition.field_parts() * plan.partition.batch;
            // The right operand: tiles of a column have equal shares.
            let share = |tile: usize| (layout.weights(&layout.parts[tile]) * element / users).0;
            let right = expected(
                &plan,
                tiles,
                |from, to| from[1] == to[1] && from[2] == to[2],
                |from, _| share(from),
            );
            let found = routes_of(&work, "Convolve/ExchangePre");
            let sharing = layout.tile_groups(&[ConvAxis::Batch, ConvAxis::Field]);
            let broadcast = RoutePattern::Broadcast(sharing);
            let weights = found.iter().rev().find(|route| route.pattern == broadcast);
            for (at, [sent, received]) in right.iter().enumerate() {
                let tile = TileId(u32::try_from(at).unwrap());
                let of = weights.and_then(|route| route.tiles.get(tile)).copied();
                let of = of.unwrap_or_default();
                // A share is rounded down. The rest of a slice is less than a byte of each tile.
                let rest = if *received > 0 { users } else { 0 };
                prop_assert!((*received..=received + rest).contains(&of.received.0), "{at}");
                prop_assert!((*sent..=sent + rest).contains(&of.delivered.0), "{at}");
            }
            // Partial sums: each tile gets its part from all others that add to the same outputs.
            let depth = plan.partition.in_channels;
            let sums = stage_depths(depth);
            let gathers = routes_of(&work, "Reduce0/ExchangePre");
            if depth == 1 || !sums.is_empty() {
                return Ok(());
            }
            let grain = reduction_grain(&plan, plan.params.output_type);
            let partial = plan.vertex.partial_type.bytes();
            let part = |tile: usize| {
                let part = &layout.parts[tile];
                let made = layout.partials(part).0;
                let own = reduced_part(made, grain, depth, part.member);
                ((own.end - own.start) * partial).0
            };
            let wanted = expected(
                &plan, tiles, |from, to| from[0] == to[0] && from[1] == to[1], |_, to| part(to),
            );
            prop_assert_eq!(gathers.len(), 1);
            for (at, [sent, received]) in wanted.iter().enumerate() {
                let tile = TileId(u32::try_from(at).unwrap());
                let of = gathers[0].tiles.get(tile).copied().unwrap_or_default();
                prop_assert_eq!([of.delivered.0, of.received.0], [*sent, *received]);
            }
        }
    }
}
