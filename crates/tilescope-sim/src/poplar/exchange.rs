//! Exchange phases between the tiles of one IPU, other than those of planned operations.
//!
//! Every phase obeys the law of exchange: the bytes all tiles receive are the bytes all tiles
//! send, each message counted once per receiver.

use super::constants::MESSAGE_CYCLES;
use super::work::{WorkPhase, WorkPhaseKind};
use tilescope_report::TileTraffic;
use tilescope_report::units::{Bytes, TileRange, TileRuns};

/// Bytes of a word: the least that an exchange moves.
pub(crate) const WORD_BYTES: u64 = 4;

/// Words of one send instruction (exchange send count field, 6 bits).
const WORDS_PER_SEND: u64 = 64;

/// Messages a tile receives when a tensor changes its layout but not its order, and as many that
/// it sends. Assumed; shapes internal exchange code only.
const RELAYOUT_MESSAGES: u64 = 4;

/// Messages when the order changes too. Assumed; shapes internal exchange code only.
const TRANSPOSING_MESSAGES: u64 = 16;

/// Send instructions for equal messages of `bytes` in all: each takes its own.
pub(crate) fn send_instructions(bytes: u64, messages: u64) -> u64 {
    let messages = messages.max(1);
    // The send count has six bits; a half word at the end still takes a word.
    messages * bytes.div_ceil(messages).div_ceil(WORD_BYTES * WORDS_PER_SEND)
}

/// Builds the traffic of one exchange from what each tile receives and sends.
///
/// `received` and `sent` are bytes per tile. Where their totals differ, the senders' messages are
/// multicast: each sent byte is delivered `received / sent` times.
fn traffic(
    received: &TileRuns<u64>,
    sent: &TileRuns<u64>,
    messages_in: impl Fn(u32) -> u64,
    messages_out: u64,
    tiles: u32,
) -> TileRuns<TileTraffic> {
    let (total_in, total_out) = (received.total(), sent.total());
    let mut left = total_in;
    let mut left_out = total_out;
    let per_tile = (0..tiles).map(|tile| {
        let bytes_in = received.get(tile).copied().unwrap_or(0);
        let bytes_out = sent.get(tile).copied().unwrap_or(0);
        if bytes_in == 0 && bytes_out == 0 {
            return None;
        }
        // Exact shares: what is left is dealt out in proportion to what is left to send.
        let bytes_delivered = if left_out == 0 {
            0
        } else {
            (u128::from(left) * u128::from(bytes_out) / u128::from(left_out)) as u64
        };
        left -= bytes_delivered;
        left_out -= bytes_out;
        Some(TileTraffic {
            bytes_in: Bytes(bytes_in),
            bytes_out: Bytes(bytes_out),
            bytes_delivered: Bytes(bytes_delivered),
            messages_in: if bytes_in > 0 { messages_in(tile) } else { 0 },
            messages_out: if bytes_out > 0 {
                send_instructions(bytes_out, messages_out)
            } else {
                0
            },
            code_bytes: Bytes::ZERO,
        })
    });
    let traffic = TileRuns::from_tiles(0, per_tile.collect::<Vec<_>>());
    debug_assert_eq!(
        traffic.map(|tile| tile.bytes_delivered).total(),
        Bytes(if total_out == 0 { 0 } else { total_in }),
        "what senders deliver is what receivers get"
    );
    traffic
}

/// An exchange phase from what each tile receives and sends; nothing where nothing moves.
pub(crate) fn phase(
    name: &str,
    received: &TileRuns<u64>,
    sent: &TileRuns<u64>,
    messages: (u64, u64),
    tiles: u32,
    bytes_per_cycle: u64,
) -> Option<WorkPhase> {
    if received.total() == 0 || sent.total() == 0 {
        return None;
    }
    let traffic = traffic(received, sent, |_| messages.0, messages.1, tiles);
    // Tiles send and receive at the same time, each way at the full rate.
    let cycles = traffic.map(|tile| tile.bytes_in.max(tile.bytes_out).0.div_ceil(bytes_per_cycle));
    Some(WorkPhase {
        name: format!("{name}/ExchangePre"),
        kind: WorkPhaseKind::Exchange { traffic, cycles, in_order: false },
    })
}

/// An exchange in which tiles gather many short messages, a known number each: each takes some
/// cycles besides its words.
pub(crate) fn gather(
    name: &str,
    received: &TileRuns<u64>,
    sent: &TileRuns<u64>,
    messages: &TileRuns<u64>,
    tiles: u32,
    bytes_per_cycle: u64,
) -> Option<WorkPhase> {
    if received.total() == 0 || sent.total() == 0 {
        return None;
    }
    let count = |tile| messages.get(tile).copied().unwrap_or(1);
    let traffic = traffic(received, sent, count, 1, tiles);
    let cycles = traffic.map(|tile| {
        // The receiver's exchange program turns to another sender for every message; senders run
        // through what they hold.
        let receiving =
            tile.bytes_in.0.div_ceil(bytes_per_cycle) + MESSAGE_CYCLES * tile.messages_in;
        receiving.max(tile.bytes_out.0.div_ceil(bytes_per_cycle))
    });
    Some(WorkPhase {
        name: format!("{name}/ExchangePre"),
        kind: WorkPhaseKind::Exchange { traffic, cycles, in_order: false },
    })
}

/// A tensor moves from one layout to another. Tiles that keep as many bytes as they had still
/// trade them: the places differ.
pub(crate) fn relayout(
    name: &str,
    from: &TileRuns<u64>,
    to: &TileRuns<u64>,
    reorder: bool,
    tiles: u32,
    bytes_per_cycle: u64,
) -> Option<WorkPhase> {
    let messages = if reorder { TRANSPOSING_MESSAGES } else { RELAYOUT_MESSAGES };
    let mut phase = phase(name, to, from, (messages, messages), tiles, bytes_per_cycle)?;
    if let WorkPhaseKind::Exchange { in_order, .. } = &mut phase.kind {
        *in_order = !reorder;
    }
    Some(phase)
}

/// Tiles of `holders` send all they hold to each tile of `receivers` (D2.3: 2 + 2 messages).
pub(crate) fn broadcast(
    name: &str,
    holders: &TileRuns<u64>,
    receivers: TileRange,
    tiles: u32,
    bytes_per_cycle: u64,
) -> Option<WorkPhase> {
    let received = TileRuns::uniform(receivers, holders.total());
    phase(name, &received, holders, (2, 2), tiles, bytes_per_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_sent_arrives(holders in 1u32..40, bytes in 1u64..10_000, receivers in 1u32..100) {
            let held = TileRuns::uniform(TileRange::new(0, holders), bytes);
            let phase = broadcast("bias", &held, TileRange::new(0, receivers), 128, 4).expect("bytes move");
            let WorkPhaseKind::Exchange { traffic, .. } = phase.kind else { panic!("an exchange") };
            let received: u64 = traffic.map(|tile| tile.bytes_in).total().0;
            let delivered: u64 = traffic.map(|tile| tile.bytes_delivered).total().0;
            prop_assert_eq!(received, delivered);
        }
    }
}
