//! Quantities, ids and ranges of the IPU world, and the only code that prints them.
//!
//! Cycles, bytes, tiles and steps are all integers here, and mixing them up is *the* bug of this
//! field, so each has a type. Ranges are half-open. Values carried per tile are stored as
//! [`TileRuns`]: neighbouring tiles with the same value share one entry, because a planned
//! operation gives the same work to nearly all tiles.

mod timestamp;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
pub use timestamp::format_timestamp;

/// A number of clock cycles of an IPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cycles(pub u64);

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A clock frequency.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hertz(pub u64);

impl Cycles {
    /// Wall time of this many cycles at `clock`, in seconds; 0 where the clock is unknown.
    pub fn seconds_at(self, clock: Hertz) -> f64 {
        if clock.0 == 0 { 0.0 } else { self.0 as f64 / clock.0 as f64 }
    }
}

macro_rules! additive {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                Self(values.map(|value| value.0).sum())
            }
        }
    };
}
additive!(Cycles);
additive!(Bytes);

impl fmt::Display for Cycles {
    /// Thousands separators, no unit: `1,211,970`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

impl fmt::Display for Bytes {
    /// To three figures in the units that are chosen: `624 KiB`, `8 B`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&short_bytes(self.0))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&format!("{} MHz", grouped(self.0 / 1_000_000)))
    }
}

/// An integer with thousands separators: `12,345,678`.
pub fn grouped(value: u64) -> String {
    grouped_wide(value.into())
}

/// The same for sums that may be larger than any single figure.
pub fn grouped_wide(value: u128) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Exact bytes with separators and unit, as tables show them: `638,976 B`.
pub fn exact_bytes(value: u64) -> String {
    format!("{} B", grouped(value))
}

/// How numbers of bytes are written where three figures are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByteUnits {
    /// Powers of 1024: `57.1 MiB`.
    #[default]
    Binary,
    /// Powers of 1000: `59.9 MB`.
    Si,
    /// All digits: `59,873,280 B`.
    Bytes,
}

impl ByteUnits {
    /// All choices, in the order they are offered.
    pub const ALL: [Self; 3] = [Self::Binary, Self::Si, Self::Bytes];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Si => "si",
            Self::Bytes => "bytes",
        }
    }

    /// The name as users read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Binary => "KiB, MiB, GiB",
            Self::Si => "kB, MB, GB",
            Self::Bytes => "All digits",
        }
    }
}

/// What is chosen, as a place in [`ByteUnits::ALL`]: a matter of the whole program, because
/// numbers are written in all its corners.
static CHOSEN_UNITS: AtomicUsize = AtomicUsize::new(0);

/// Chooses how [`short_bytes`] writes from now on.
pub fn set_byte_units(units: ByteUnits) {
    let at = ByteUnits::ALL.iter().position(|known| *known == units).unwrap_or(0);
    CHOSEN_UNITS.store(at, Ordering::Relaxed);
}

/// Bytes to three figures, in the units that are chosen.
pub fn short_bytes(value: u64) -> String {
    let chosen = ByteUnits::ALL.get(CHOSEN_UNITS.load(Ordering::Relaxed));
    bytes_in(chosen.copied().unwrap_or_default(), value)
}

/// Bytes to three figures in binary multiples, whatever is chosen: `57.1 MiB`.
pub fn binary_bytes(value: u64) -> String {
    bytes_in(ByteUnits::Binary, value)
}

fn bytes_in(units: ByteUnits, value: u64) -> String {
    let (base, names) = match units {
        ByteUnits::Binary => (1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]),
        ByteUnits::Si => (1000, ["kB", "MB", "GB", "TB", "PB"]),
        ByteUnits::Bytes => return exact_bytes(value),
    };
    if value < base {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / base as f64;
    let mut name = 0;
    while scaled >= 999.5 && name + 1 < names.len() {
        scaled /= base as f64;
        name += 1;
    }
    format!("{} {}", three_figures(scaled), names[name])
}

/// Three significant figures for values below 1,000: `9.81`, `98.1`, `981`.
fn three_figures(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A share of one as a percentage with one decimal: `0.893` is `89.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Seconds in the unit that leaves one to three digits before the point: `26.1 us`.
pub fn seconds(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1.0 || v == 0.0 => (1.0, "s"),
        v if v >= 1e-3 => (1e3, "ms"),
        v if v >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", three_figures(value * scale))
}

/// A half-open range of cycles, `start..end`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CycleRange {
    /// First cycle of the range.
    pub start: u64,
    /// First cycle after the range; never below `start`.
    pub end: u64,
}

impl CycleRange {
    /// The range `start..end`; an `end` below `start` gives an empty range at `start`.
    pub fn new(start: u64, end: u64) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Number of cycles in the range.
    pub fn length(self) -> u64 {
        debug_assert!(self.start <= self.end, "a range runs forwards: {self:?}");
        self.end - self.start
    }

    /// Whether no cycle is in the range.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The part that both ranges cover; empty where they do not meet.
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self::new(start, self.end.min(other.end))
    }

    /// Whether both ranges share at least one cycle.
    pub fn overlaps(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The smallest range that covers both.
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A half-open range of tiles, `first..end`, numbered over all IPUs of a replica:
/// tile `t` of IPU `i` is `i * tiles_per_ipu + t` in software order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TileRange {
    /// First tile of the range.
    pub first: u32,
    /// First tile after the range.
    pub end: u32,
}

impl TileRange {
    /// The half-open range `first..end`.
    pub fn new(first: u32, end: u32) -> Self {
        debug_assert!(first <= end, "a tile range runs forwards: {first}..{end}");
        Self { first, end }
    }

    /// Number of tiles in the range.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// Whether `tile` lies in the range.
    pub fn contains(self, tile: u32) -> bool {
        (self.first..self.end).contains(&tile)
    }
}

/// One value per tile, run-length encoded: sorted, disjoint ranges; tiles in no run have no value.
///
/// Clones and shifted copies share their runs until one of them changes: equal operations on many
/// IPUs then cost the memory of one.
#[derive(Clone, Debug)]
pub struct TileRuns<T> {
    runs: Arc<Vec<(TileRange, T)>>,
    /// Added to the tiles of all runs.
    offset: u32,
}

impl<T> Default for TileRuns<T> {
    fn default() -> Self {
        Self { runs: Arc::new(Vec::new()), offset: 0 }
    }
}

impl<T: PartialEq> PartialEq for TileRuns<T> {
    fn eq(&self, other: &Self) -> bool {
        let shared = Arc::ptr_eq(&self.runs, &other.runs) && self.offset == other.offset;
        shared || self.runs.len() == other.runs.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for TileRuns<T> {}

impl<T: Hash> Hash for TileRuns<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|run| run.hash(state));
    }
}

impl<T> TileRuns<T> {
    /// The runs in tile order.
    pub fn iter(&self) -> impl Iterator<Item = (TileRange, &T)> {
        let moved =
            |tiles: &TileRange| TileRange::new(tiles.first + self.offset, tiles.end + self.offset);
        self.runs.iter().map(move |(tiles, value)| (moved(tiles), value))
    }

    /// Number of runs of equal values.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether no tile has a value.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of tiles that have a value.
    pub fn tile_count(&self) -> u64 {
        self.runs.iter().map(|(tiles, _)| u64::from(tiles.count())).sum()
    }

    /// The value of one tile.
    pub fn get(&self, tile: u32) -> Option<&T> {
        let tile = tile.checked_sub(self.offset)?;
        let at = self.runs.partition_point(|(tiles, _)| tiles.end <= tile);
        self.runs.get(at).filter(|(tiles, _)| tiles.contains(tile)).map(|(_, value)| value)
    }

    /// The same values `offset` tiles higher.
    pub fn shifted(&self, offset: u32) -> Self {
        Self { runs: Arc::clone(&self.runs), offset: self.offset + offset }
    }

    /// Where the runs are kept: equal for copies that share them on the same tiles, so that work
    /// on them can be done once. Copies that do not share may still be equal.
    pub fn shared_key(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.runs) as usize, self.offset)
    }
}

impl<T: Clone + PartialEq> TileRuns<T> {
    /// No tile has a value.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same value on every tile of `tiles`.
    pub fn uniform(tiles: TileRange, value: T) -> Self {
        let mut runs = Self::empty();
        runs.push(tiles, value);
        runs
    }

    /// One value per tile, the first belonging to tile `first`; `None` leaves the tile out.
    pub fn from_tiles(first: u32, values: impl IntoIterator<Item = Option<T>>) -> Self {
        let mut runs = Self::empty();
        for (tile, value) in (first..).zip(values) {
            if let Some(value) = value {
                runs.push(TileRange::new(tile, tile + 1), value);
            }
        }
        runs
    }

    /// Appends a run behind all others; it joins the last one where they touch and agree.
    pub fn push(&mut self, tiles: TileRange, value: T) {
        if tiles.count() == 0 {
            return;
        }
        if self.offset != 0 {
            let runs = self.iter().map(|(tiles, value)| (tiles, value.clone())).collect();
            (self.runs, self.offset) = (Arc::new(runs), 0);
        }
        let runs = Arc::make_mut(&mut self.runs);
        if let Some((last, last_value)) = runs.last_mut() {
            assert!(last.end <= tiles.first, "runs are pushed in tile order");
            if last.end == tiles.first && *last_value == value {
                last.end = tiles.end;
                return;
            }
        }
        runs.push((tiles, value));
    }

    /// The values of tiles `0..tiles` moved up by `by`; those that pass the end go on at 0.
    pub fn rotated(&self, by: u32, tiles: u32) -> Self {
        if by == 0 {
            return self.clone();
        }
        let moved = |tile: u32| tile + by;
        let wrapped = self.iter().filter(|(range, _)| moved(range.end) > tiles);
        let wrapped = wrapped.map(|(range, value)| {
            let first = moved(range.first).saturating_sub(tiles);
            (TileRange::new(first, moved(range.end) - tiles), value)
        });
        let rest = self.iter().filter(|(range, _)| moved(range.first) < tiles);
        let rest = rest.map(|(range, value)| {
            (TileRange::new(moved(range.first), moved(range.end).min(tiles)), value)
        });
        let mut rotated = Self::empty();
        for (range, value) in wrapped.chain(rest) {
            rotated.push(range, value.clone());
        }
        debug_assert_eq!(rotated.tile_count(), self.tile_count(), "a rotation keeps every tile");
        rotated
    }

    /// The values of tiles `0..tiles` in the opposite order.
    pub fn mirrored(&self, tiles: u32) -> Self {
        let mut mirrored = Self::empty();
        let runs: Vec<_> = self.iter().collect();
        for (range, value) in runs.into_iter().rev() {
            mirrored.push(TileRange::new(tiles - range.end, tiles - range.first), value.clone());
        }
        debug_assert_eq!(mirrored.tile_count(), self.tile_count(), "a mirror keeps every tile");
        mirrored
    }

    /// The same ranges with other values.
    pub fn map<U: Clone + PartialEq>(&self, mut change: impl FnMut(&T) -> U) -> TileRuns<U> {
        let mut mapped = TileRuns::empty();
        for (tiles, value) in self.iter() {
            mapped.push(tiles, change(value));
        }
        mapped
    }
}

impl TileRuns<u64> {
    /// Pairs of values, one pair for each tile that has a value; `others` counts as 0 where it has
    /// none.
    pub fn zip<T: Clone + PartialEq>(
        &self,
        others: &Self,
        mut join: impl FnMut(u64, u64) -> T,
    ) -> TileRuns<T> {
        let mut joined = TileRuns::empty();
        let mut others = others.iter().peekable();
        for (tiles, value) in self.iter() {
            let mut first = tiles.first;
            while first < tiles.end {
                while others.next_if(|(range, _)| range.end <= first).is_some() {}
                let (end, other) = match others.peek() {
                    Some((range, other)) if range.first <= first => (range.end, **other),
                    Some((range, _)) => (range.first, 0),
                    None => (tiles.end, 0),
                };
                let end = end.min(tiles.end);
                joined.push(TileRange::new(first, end), join(*value, other));
                first = end;
            }
        }
        debug_assert_eq!(joined.tile_count(), self.tile_count(), "one pair for each tile");
        joined
    }

    /// Sum over all tiles.
    pub fn total(&self) -> u64 {
        self.runs.iter().map(|(tiles, value)| u64::from(tiles.count()) * value).sum()
    }

    /// Largest value of any tile; 0 where no tile has one.
    pub fn max(&self) -> u64 {
        self.runs.iter().map(|(_, value)| *value).max().unwrap_or(0)
    }
}

/// Defines an id: a typed index into one table of the report.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
id!(/// A compiled program node, in `programs`.
    ProgramId);
id!(/// A compute set, in `compute_sets`.
    ComputeSetId);
id!(/// A vertex type, in `vertex_types`.
    VertexTypeId);
id!(/// A lowered variable, in `vars`.
    VariableId);
id!(/// An operation of the model, in `operations`.
    OperationId);

/// An executed step, counted over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_three_figures() {
        let cases = [(8, "8 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (638_976, "624 KiB")];
        for (value, text) in cases {
            assert_eq!(binary_bytes(value), text);
        }
        assert_eq!(binary_bytes(940_572_672), "897 MiB");
        assert_eq!(binary_bytes(1023 * 1024 + 1023), "1.00 MiB");
    }

    #[test]
    fn units_are_powers_of_1024_or_of_1000_or_none() {
        let cases = [
            (ByteUnits::Binary, 638_976, "624 KiB"),
            (ByteUnits::Si, 638_976, "639 kB"),
            (ByteUnits::Si, 999_999, "1.00 MB"),
            (ByteUnits::Si, 999, "999 B"),
            (ByteUnits::Bytes, 638_976, "638,976 B"),
        ];
        for (units, value, text) in cases {
            assert_eq!(bytes_in(units, value), text);
        }
    }

    #[test]
    fn integers_print_in_groups_of_three() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_211_970, "1,211,970")];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn seconds_pick_their_unit() {
        let cases = [(0.0, "0.00 s"), (2.6e-5, "26.0 us"), (0.0091, "9.10 ms"), (90.0, "90.0 s")];
        for (value, text) in cases {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn rotation_moves_every_tile_and_goes_round() {
        let mut runs = TileRuns::empty();
        runs.push(TileRange::new(0, 3), 'a');
        runs.push(TileRange::new(5, 8), 'b');
        for by in 0..8 {
            let rotated = runs.rotated(by, 8);
            for tile in 0..8 {
                assert_eq!(rotated.get((tile + by) % 8), runs.get(tile), "{tile} by {by}");
            }
        }
    }

    #[test]
    fn touching_runs_with_one_value_join() {
        let mut runs = TileRuns::uniform(TileRange::new(0, 4), 7u64);
        runs.push(TileRange::new(4, 6), 7);
        runs.push(TileRange::new(8, 9), 7);
        assert_eq!(runs.len(), 2);
        assert_eq!((runs.total(), runs.max(), runs.tile_count()), (49, 7, 7));
        assert_eq!((runs.get(5), runs.get(6), runs.get(8)), (Some(&7), None, Some(&7)));
    }

    #[test]
    fn ranges_are_half_open() {
        let (a, b) = (CycleRange::new(0, 10), CycleRange::new(10, 20));
        assert!(!a.overlaps(b));
        assert_eq!(a.union(b), CycleRange::new(0, 20));
        assert_eq!(a.intersection(CycleRange::new(4, 30)).length(), 6);
    }
}
