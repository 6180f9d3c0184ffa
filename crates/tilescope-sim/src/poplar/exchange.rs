//! Exchange phases between the tiles of one IPU, other than those of planned operations.
//!
//! Every phase obeys the law of exchange: the bytes that all tiles receive equal the bytes that all
//! tiles send, with each message counted once per receiver.

use super::routes::WorkRoutes;
use super::work::{WorkPhase, WorkPhaseKind};
use crate::cost_constants::{MESSAGE_CYCLES, RELAYOUT_MESSAGES, TRANSPOSING_MESSAGES};
use crate::targets::BytesPerCycle;
use tilescope_report::units::{Bytes, Quantity, TileId, TileRange, TileRuns};
use tilescope_report::{Rearrangement, RoutePattern, TileTraffic};

/// Bytes of a word, the smallest unit of an exchange.
pub(crate) const WORD_BYTES: Bytes = Bytes(4);

/// Words of one send instruction (exchange send count field, 6 bits).
const WORDS_PER_SEND: u64 = 64;

/// Number of send instructions for equal messages of `bytes` in total. Each message takes its own.
pub(crate) fn send_instructions(bytes: Bytes, messages: u64) -> u64 {
    let messages = messages.max(1);
    // The send count has six bits. A half word at the end still takes a word.
    let send = WORD_BYTES * WORDS_PER_SEND;
    messages * (bytes.div_ceil(messages).next_multiple_of(send) / send)
}

/// Computes the traffic of one exchange from the bytes that each tile receives and sends.
///
/// `received` and `sent` are bytes per tile. If more bytes are received than sent, the messages are
/// multicast: each sent byte is delivered `received / sent` times.
fn traffic(
    received: &TileRuns<Bytes>,
    sent: &TileRuns<Bytes>,
    messages_in: impl Fn(TileId) -> u64,
    messages_out: u64,
    tiles: u32,
) -> TileRuns<TileTraffic> {
    let total_in = received.total();
    let total_out = sent.total();
    let mut left = total_in;
    let mut left_out = total_out;
    let per_tile = TileRange::first_tiles(tiles).iter().map(|tile| {
        let bytes_in = received.get(tile).copied().unwrap_or_default();
        let bytes_out = sent.get(tile).copied().unwrap_or_default();
        if bytes_in.is_zero() && bytes_out.is_zero() {
            return None;
        }
        // Exact shares: the remaining deliveries are divided in proportion to the remaining sends.
        let bytes_delivered =
            if left_out.is_zero() { Bytes::ZERO } else { left.share(bytes_out.0, left_out.0) };
        left -= bytes_delivered;
        left_out -= bytes_out;
        // Padding of groups and data that no tile receives are not sent.
        let bytes_out = bytes_out.min(bytes_delivered);
        Some(TileTraffic {
            bytes_in,
            bytes_out,
            bytes_delivered,
            messages_in: if bytes_in.is_zero() { 0 } else { messages_in(tile) },
            messages_out: if bytes_out.is_zero() {
                0
            } else {
                send_instructions(bytes_out, messages_out)
            },
            code_bytes: Bytes::ZERO,
        })
    });
    let traffic = TileRuns::from_tiles(TileId(0), per_tile.collect::<Vec<_>>());
    debug_assert_eq!(
        traffic.map(|tile| tile.bytes_delivered).total(),
        if total_out.is_zero() { Bytes::ZERO } else { total_in },
        "what senders deliver is what receivers get"
    );
    traffic
}

/// Messages of every tile that takes part in an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileMessages {
    pub received: u64,
    pub sent: u64,
}

impl TileMessages {
    /// Creates equal numbers of received and sent messages.
    pub(crate) fn each_way(messages: u64) -> Self {
        Self { received: messages, sent: messages }
    }
}

/// Exchange phase from the bytes that each tile receives and sends, or `None` if no data moves.
pub(crate) fn phase(
    name: &str,
    received: &TileRuns<Bytes>,
    sent: &TileRuns<Bytes>,
    messages: TileMessages,
    tiles: u32,
    speed: BytesPerCycle,
) -> Option<WorkPhase> {
    if received.total().is_zero() || sent.total().is_zero() {
        return None;
    }
    let traffic = traffic(received, sent, |_| messages.received, messages.sent, tiles);
    // Tiles send and receive at the same time, in each direction at the full rate.
    let cycles = traffic.map(|tile| speed.cycles_for(tile.bytes_in.max(tile.bytes_out)));
    Some(WorkPhase {
        name: format!("{name}/ExchangePre"),
        kind: WorkPhaseKind::Exchange { traffic, cycles, routes: WorkRoutes::default() },
    })
}

/// Exchange phase in which tiles gather a known number of short messages each. Each message takes
/// some cycles besides its words.
pub(crate) fn gather(
    name: &str,
    received: &TileRuns<Bytes>,
    sent: &TileRuns<Bytes>,
    messages: &TileRuns<u64>,
    tiles: u32,
    speed: BytesPerCycle,
) -> Option<WorkPhase> {
    if received.total().is_zero() || sent.total().is_zero() {
        return None;
    }
    let traffic =
        traffic(received, sent, |tile| messages.get(tile).copied().unwrap_or(1), 1, tiles);
    let cycles = traffic.map(|tile| {
        // The receiver's exchange program switches to another sender for every message, whereas
        // senders traverse their data in order.
        let receiving =
            speed.cycles_for(tile.bytes_in) + MESSAGE_CYCLES.cycles() * tile.messages_in;
        receiving.max(speed.cycles_for(tile.bytes_out))
    });
    Some(WorkPhase {
        name: format!("{name}/ExchangePre"),
        kind: WorkPhaseKind::Exchange { traffic, cycles, routes: WorkRoutes::default() },
    })
}

/// Order of the elements of a tensor that moves from one layout to another.
#[derive(Clone, Debug)]
pub(crate) enum OrderChange {
    /// Elements keep their order.
    None,
    /// Elements change their order in a known way.
    Known(Rearrangement),
    /// Elements change their order.
    Unknown,
}

/// Exchange phase that moves a tensor from one layout to another. Tiles that keep the same number
/// of bytes still exchange them, because the elements differ.
pub(crate) fn relayout(
    name: &str,
    from: &TileRuns<Bytes>,
    to: &TileRuns<Bytes>,
    change: OrderChange,
    tiles: u32,
    speed: BytesPerCycle,
) -> Option<WorkPhase> {
    let messages = match change {
        OrderChange::None => RELAYOUT_MESSAGES.count(),
        OrderChange::Known(_) | OrderChange::Unknown => TRANSPOSING_MESSAGES.count(),
    };
    let mut phase = phase(name, to, from, TileMessages::each_way(messages), tiles, speed)?;
    if let WorkPhaseKind::Exchange { traffic, routes, .. } = &mut phase.kind {
        *routes = match change {
            OrderChange::None => WorkRoutes::in_order(traffic),
            OrderChange::Known(order) => {
                WorkRoutes::of_pattern(traffic, RoutePattern::Rearranged(order))
            }
            OrderChange::Unknown => WorkRoutes::default(),
        };
    }
    Some(phase)
}

/// Exchange phase in which the tiles of `holders` send all their data to each tile of `receivers`.
pub(crate) fn broadcast(
    name: &str,
    holders: &TileRuns<Bytes>,
    receivers: TileRange,
    tiles: u32,
    speed: BytesPerCycle,
) -> Option<WorkPhase> {
    let received = TileRuns::uniform(receivers, holders.total());
    let messages = TileMessages { received: u64::from(holders.tile_count()), sent: 1 };
    phase(name, &received, holders, messages, tiles, speed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn sent_bytes_arrive(
            holders in 1u32..40,
            bytes in 1u64..10_000,
            receivers in 1u32..100,
            wanted in 1u64..1_000,
        ) {
            let speed = BytesPerCycle(4);
            let held = TileRuns::uniform(TileRange::first_tiles(holders), Bytes(bytes));
            let tiles = TileRange::first_tiles(receivers);
            let needed = TileRuns::uniform(tiles, Bytes(wanted));
            let all = broadcast("bias", &held, tiles, 128, speed);
            let some = phase("part", &needed, &held, TileMessages::each_way(1), 128, speed);
            for moved in [all, some] {
                let moved = moved.expect("bytes move");
                let WorkPhaseKind::Exchange { traffic, .. } = moved.kind else {
                    panic!("an exchange")
                };
                let received = traffic.map(|tile| tile.bytes_in).total();
                let delivered = traffic.map(|tile| tile.bytes_delivered).total();
                let sent = traffic.map(|tile| tile.bytes_out).total();
                prop_assert_eq!(received, delivered);
                prop_assert!(sent <= delivered);
            }
        }
    }
}
