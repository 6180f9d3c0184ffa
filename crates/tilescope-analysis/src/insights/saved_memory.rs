//! Memory that some variables take of a program that fills its tiles, and what is saved if a change
//! takes part of it away: what findings about room have in common.

use super::tile_contents::{FullTileContents, TileVariable};
use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, Proposal, ViewLocation,
};
use tilescope_report::units::{Bytes, TileId, percent};

/// Less is not worth a change.
const MIN_SHARE: f64 = 0.05;

/// Memory that some variables take of the fullest tile, of which a change can take a part away.
#[derive(Clone, Debug)]
pub(super) struct SavedMemory {
    /// The fullest tile.
    tile: TileId,
    /// What they take of it when most is live there.
    bytes: Bytes,
    /// The same as a share of what the tile needs.
    share: f64,
    /// The share of what the fullest tile needs that is saved at most.
    gain: f64,
    /// The same if gaps between variables stay as they are.
    without_gaps: f64,
    place: ViewLocation,
}

/// What a finding says.
pub(super) struct MemoryWords {
    /// What takes the memory: `Optimiser state`.
    pub(super) what: &'static str,
    pub(super) advice: String,
    pub(super) formula: &'static str,
}

impl SavedMemory {
    /// What is saved by a change that takes as large a share of each variable as `removed` says; none
    /// where there is room, or what it takes away is next to nothing.
    pub(super) fn of(facts: &InsightFacts, removed: impl Fn(&TileVariable) -> f64) -> Option<Self> {
        let full: &FullTileContents = facts.full_tiles.as_ref()?;
        let gain = full.gain(&removed);
        let part = full.part_of_peak(|of| removed(of) > 0.0)?;
        let saved = Self {
            tile: part.tile,
            bytes: part.bytes,
            share: part.bytes.as_f64() / full.needed.as_f64().max(1.0),
            gain,
            without_gaps: gain - full.gain(|_| 0.0),
            place: ViewLocation {
                tiles: vec![part.tile],
                variable: Some(part.largest.id),
                ..ViewLocation::view("liveness")
            },
        };
        saved.at_least(MIN_SHARE)
    }

    /// The same where something else limits the gain.
    pub(super) fn at_most(mut self, gain: f64) -> Self {
        self.gain = self.gain.min(gain);
        self.without_gaps = self.without_gaps.min(gain);
        self
    }

    /// The same if it is as much: what costs much time must save much memory.
    pub(super) fn at_least(self, share: f64) -> Option<Self> {
        (self.without_gaps >= share).then_some(self)
    }

    /// The finding of a rule about it.
    pub(super) fn finding(
        self,
        facts: &InsightFacts,
        rule: &InsightRule,
        words: MemoryWords,
        proposal: Proposal,
    ) -> InsightFinding {
        let overflowing = facts.full_tiles.as_ref().filter(|full| full.overflows());
        let left = |full: &FullTileContents| full.needed.as_f64() * (1.0 - self.gain);
        let enough = match overflowing.map(|full| left(full) <= full.capacity.as_f64()) {
            Some(true) => " This alone may make the program fit.",
            Some(false) => " This alone does not make the program fit.",
            None => "",
        };
        InsightFinding {
            sentence: format!(
                "{} use {} of tile {}, the fullest ({}).",
                words.what,
                percent(self.share),
                self.tile,
                facts.numbers.bytes(self.bytes.0),
            ),
            advice: format!("{}{enough}", words.advice),
            formula: words.formula,
            gain: InsightGain::Memory(self.gain),
            proposal: Some(proposal),
            place: self.place,
            ..InsightFinding::about(InsightSubject::Memory, rule)
        }
    }
}
