//! Samples of measured tiles, grouped and filtered by their labels, for tools that measure tile by
//! tile.

use std::collections::HashMap;
use tilescope_report::units::{Cycles, StepId, TileId};
use tilescope_report::{Report, ReportError, SampleKind, SampleLabel, TileSample};

/// A property to group samples by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleGrouping {
    Kind,
    Kernel,
    Operation,
    Phase,
    Epoch,
    Tile,
    /// The value of a name in the metadata.
    Metadata(String),
}

impl SampleGrouping {
    /// The properties that every report of measured tiles has, by name.
    pub const NAMED: [(&'static str, SampleGrouping); 6] = [
        ("kind", Self::Kind),
        ("kernel", Self::Kernel),
        ("operation", Self::Operation),
        ("phase", Self::Phase),
        ("epoch", Self::Epoch),
        ("tile", Self::Tile),
    ];

    /// The grouping with a name from [`SampleGrouping::NAMED`], or else by that name in the
    /// metadata.
    pub fn from_name(name: &str) -> Self {
        let known = Self::NAMED.into_iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Metadata(name.to_owned()), |(_, grouping)| grouping)
    }

    /// The name of the grouping.
    pub fn name(&self) -> &str {
        let known = Self::NAMED.iter().find(|(_, known)| known == self).map(|(name, _)| *name);
        match self {
            Self::Metadata(name) => name,
            _ => known.unwrap_or_default(),
        }
    }

    /// The key of a sample.
    fn key(&self, label: &SampleLabel, sample: &TileSample) -> SampleKey {
        match self {
            Self::Kind => SampleKey::of_text(label.kind.name()),
            Self::Kernel => SampleKey::of_text(&label.kernel),
            Self::Operation => SampleKey::of_text(&label.operation),
            Self::Phase => SampleKey::Number(sample.phase),
            Self::Epoch => SampleKey::Number(sample.epoch),
            Self::Tile => SampleKey::Tile(sample.tile),
            Self::Metadata(name) => label
                .metadata(name)
                .map_or(SampleKey::None, |value| SampleKey::Text(value.to_owned())),
        }
    }
}

/// The common value of a group's samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKey {
    Text(String),
    Number(u32),
    Tile(TileId),
    /// The samples have no such text.
    None,
}

impl SampleKey {
    fn of_text(text: &str) -> Self {
        if text.is_empty() { Self::None } else { Self::Text(text.to_owned()) }
    }

    /// The value as a filter writes it; empty for `None`.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Tile(tile) => tile.to_string(),
            Self::None => String::new(),
        }
    }
}

/// A filter of samples: pairs of a property and its required value.
pub type SampleFilter = Vec<(SampleGrouping, String)>;

/// Samples with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup {
    pub key: SampleKey,
    pub samples: u64,
    /// Number of tiles with samples.
    pub tiles: u64,
    /// Number of phases with samples, counted per epoch.
    pub phases: u64,
    /// Cycles of all samples.
    pub work: Cycles,
    /// The same by kind, in the order of [`SampleKind::ALL`].
    pub work_by_kind: [Cycles; SampleKind::ALL.len()],
    pub mean: f64,
    /// Median of the samples' cycles, and their 95th percentile.
    pub median: Cycles,
    pub percentile_95: Cycles,
    pub most: Cycles,
}

/// A group while its samples are read.
#[derive(Default)]
struct OpenGroup {
    lengths: Vec<u64>,
    tiles: Vec<TileId>,
    phases: Vec<(u32, u32)>,
    work_by_kind: [Cycles; SampleKind::ALL.len()],
}

/// The groups of samples that pass a filter, those with the most work first.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn sample_groups(
    report: &Report,
    by: &SampleGrouping,
    filter: &SampleFilter,
) -> Result<Vec<SampleGroup>, ReportError> {
    let mut found: HashMap<SampleKey, OpenGroup> = HashMap::new();
    visit(report, |label, sample| {
        if filter.iter().all(|(of, value)| of.key(label, sample).text() == *value) {
            found.entry(by.key(label, sample)).or_default().add(label.kind, sample);
        }
    })?;
    let mut groups: Vec<SampleGroup> =
        found.into_iter().map(|(key, group)| group.close(key)).collect();
    groups.sort_by(|one, other| other.work.cmp(&one.work).then_with(|| one.key.cmp(&other.key)));
    Ok(groups)
}

/// Names in the metadata of samples, in alphabetical order.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn metadata_names(report: &Report) -> Result<Vec<String>, ReportError> {
    let labels = report.sample_labels()?;
    let names = labels.iter().flat_map(|label| &label.metadata).map(|(name, _)| name.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Calls `each` for every sample with its label.
fn visit(
    report: &Report,
    mut each: impl FnMut(&SampleLabel, &TileSample),
) -> Result<(), ReportError> {
    let labels = report.sample_labels()?;
    report.visit_tile_samples(StepId(0)..StepId(u64::MAX), |_, sample| {
        if let Some(label) = labels.get(sample.label as usize) {
            each(label, &sample);
        }
    })
}

impl OpenGroup {
    fn add(&mut self, kind: SampleKind, sample: &TileSample) {
        let length = sample.cycles.length();
        self.lengths.push(length.0);
        // Samples come by step, so most of them repeat the tile of the previous one.
        if self.tiles.last() != Some(&sample.tile) {
            self.tiles.push(sample.tile);
        }
        if self.phases.last() != Some(&(sample.epoch, sample.phase)) {
            self.phases.push((sample.epoch, sample.phase));
        }
        let place = SampleKind::ALL.into_iter().position(|known| known == kind);
        if let Some(work) = place.and_then(|place| self.work_by_kind.get_mut(place)) {
            *work = work.saturating_add(length);
        }
    }

    fn close(mut self, key: SampleKey) -> SampleGroup {
        self.lengths.sort_unstable();
        let samples = self.lengths.len() as u64;
        // The nearest rank: the smallest value with at least this share of samples at or below it.
        let percentile = |share: u64| {
            let place = (samples * share).div_ceil(100).saturating_sub(1);
            let found = usize::try_from(place).ok().and_then(|place| self.lengths.get(place));
            Cycles(found.copied().unwrap_or(0))
        };
        let work = self.work_by_kind.iter().fold(Cycles::ZERO, |sum, of| sum.saturating_add(*of));
        SampleGroup {
            key,
            samples,
            work,
            work_by_kind: self.work_by_kind,
            mean: work.as_f64() / samples.max(1) as f64,
            median: percentile(50),
            percentile_95: percentile(95),
            most: percentile(100),
            tiles: distinct(self.tiles),
            phases: distinct(self.phases),
        }
    }
}

fn distinct<T: Ord>(mut values: Vec<T>) -> u64 {
    values.sort_unstable();
    values.dedup();
    values.len() as u64
}
