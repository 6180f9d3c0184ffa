//! Memory of some variables of a program that fills its tiles, and the gain if a change removes a
//! part of it: the common part of findings about memory.

use super::tile_contents::{FullTileContents, TileVariable};
use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, Proposal, ViewLocation,
};
use tilescope_report::units::{Bytes, TileId, percent};

/// Smaller gains do not justify a change.
const MIN_SHARE: f64 = 0.05;

/// Smaller shares of gaps are left out of the text.
const SHOWN_GAPS: f64 = 0.001;

/// Memory of some variables on the fullest tile that a change can partly free.
#[derive(Clone, Debug)]
pub(super) struct SavedMemory {
    /// The fullest tile.
    tile: TileId,
    /// Their bytes on that tile at its peak.
    bytes: Bytes,
    /// The same as a share of the tile's needed memory.
    share: f64,
    /// The largest possible gain, as a share of the fullest tile's needed memory.
    gain: f64,
    /// The same if gaps between variables stay.
    without_gaps: f64,
    place: ViewLocation,
}

/// The texts of a finding.
pub(super) struct MemoryWords {
    /// The subject: `Optimiser state`.
    pub(super) what: &'static str,
    pub(super) advice: String,
    pub(super) formula: &'static str,
}

impl SavedMemory {
    /// The gain of a change that removes the share given by `removed` from each variable; `None` if
    /// tiles have free memory, or the gain is negligible.
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

    /// The same with another upper bound of the gain.
    pub(super) fn at_most(mut self, gain: f64) -> Self {
        self.gain = self.gain.min(gain);
        self.without_gaps = self.without_gaps.min(gain);
        self
    }

    /// The same if the gain is at least `share`: expensive changes must save much memory.
    pub(super) fn at_least(self, share: f64) -> Option<Self> {
        (self.without_gaps >= share).then_some(self)
    }

    /// Creates the finding of a rule.
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
        let gaps = match self.gain - self.without_gaps {
            gaps if gaps < SHOWN_GAPS => String::new(),
            gaps => {
                format!(" The upper bound includes gaps between variables ({}).", percent(gaps))
            }
        };
        InsightFinding {
            sentence: format!(
                "{} use {} of tile {}, the fullest ({}).",
                words.what,
                percent(self.share),
                self.tile,
                facts.numbers.bytes(self.bytes.0),
            ),
            advice: format!("{}{gaps}{enough}", words.advice),
            formula: words.formula,
            gain: InsightGain::Memory(self.gain),
            proposal: Some(proposal),
            place: self.place,
            ..InsightFinding::about(InsightSubject::Memory, rule)
        }
    }
}
