//! Remembers where a list has the entry of a program.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::units::ProgramId;

/// The number of remembered places: more than a lane of most reports has programs.
const PLACES: usize = 1 << 10;

/// The places in a list that were found last, by program.
///
/// A run repeats few programs, so that most searches need no hash. A search does not depend on the
/// result of the one before it, which lets the processor overlap them.
pub(super) struct RecentPlaces(Box<[u32]>);

impl Default for RecentPlaces {
    fn default() -> Self {
        Self(vec![u32::MAX; PLACES].into())
    }
}

impl RecentPlaces {
    /// The place of an entry of `program`: the remembered one if `is_there` accepts it, otherwise
    /// the result of `search`.
    pub(super) fn find(
        &mut self,
        program: Option<ProgramId>,
        is_there: impl FnOnce(usize) -> bool,
        search: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        let slot = program.map_or(0, ProgramId::index) % PLACES;
        let recent = self.0.get_mut(slot)?;
        if is_there(*recent as usize) {
            return Some(*recent as usize);
        }
        let place = search()?;
        // A list that is longer is searched every time.
        *recent = u32::try_from(place).unwrap_or(u32::MAX);
        Some(place)
    }
}
