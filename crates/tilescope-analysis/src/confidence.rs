//! How sure the figures of a simulated run are: what its cycles rest on, and between which bounds
//! they lie in nine of ten cases.
//!
//! A report says for each kind of operation between which factors the true cost lies. The run is
//! costed again under many draws of such factors, without compiling it again: the cycles of the IPU
//! that works longest are scaled step by step, and its waits by the mean of all IPUs, for whom it
//! waits. Half of the variance of a factor is common to its kind, and half to operations of one
//! kind, shape and plan. Draws are numbered, the same in every report: in a comparison, what two
//! runs have in common cancels.

use crate::compare::WorkNormalization;
use crate::data_table::TableCell;
use serde::Serialize;
use std::collections::BTreeMap;
use tilescope_report::trace::{ProgramStepSums, Trace};
use tilescope_report::units::{Cycles, ProgramId};
use tilescope_report::{
    CostBasis, ErrorBand, FactorBand, ModelOperation, ProgramKind, ProgramNodeTable, Report,
    ReportError,
};

/// Runs that are costed: enough for ends of a band to stand still within a twentieth of its width.
const DRAWS: usize = 1000;
/// Draws below a band, and as many above it.
const OUTSIDE: usize = DRAWS / 20;
/// Standard deviations from the middle of a normal distribution to the ends of a band.
const BAND_DEVIATIONS: f64 = 1.6449;

/// Bounds between which a figure lies in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictionBand {
    pub low: f64,
    pub high: f64,
}

impl PredictionBand {
    /// Of [`DRAWS`] values.
    fn of(mut draws: Vec<f64>) -> Self {
        draws.sort_by(f64::total_cmp);
        let at = |index: usize| draws.get(index).copied().unwrap_or(1.0);
        Self { low: at(OUTSIDE), high: at(DRAWS - 1 - OUTSIDE) }
    }

    fn scaled(self, by: f64) -> Self {
        Self { low: self.low * by, high: self.high * by }
    }
}

/// Shares of the time of the IPU that works longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BasisShares {
    /// Operations of kinds that were measured.
    pub measured: f64,
    /// Operations that rest on published formulas alone.
    pub published_formulas: f64,
    /// Copies over links, to and from the host and streaming memory.
    pub host_and_links: f64,
    /// Operations that rest on assumptions.
    pub assumptions: f64,
    /// Waits for others.
    pub waiting: f64,
}

impl BasisShares {
    /// Names and shares, in the order in which views show them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("measured kinds", self.measured),
            ("published formulas", self.published_formulas),
            ("host and links", self.host_and_links),
            ("assumptions", self.assumptions),
            ("waiting for others", self.waiting),
        ]
        .into_iter()
    }

    fn of_basis(&mut self, basis: CostBasis) -> &mut f64 {
        match basis {
            CostBasis::Measured => &mut self.measured,
            CostBasis::Formula => &mut self.published_formulas,
            CostBasis::Links => &mut self.host_and_links,
            CostBasis::Assumed => &mut self.assumptions,
        }
    }
}

/// How sure the figures of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// What the cycles rest on.
    pub shares: BasisShares,
    /// Cycles of the run.
    pub cycles: PredictionBand,
    /// Samples per second, where the model works on batches.
    pub samples_per_second: Option<PredictionBand>,
}

/// Operations whose errors are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ErrorSource {
    /// Place among the report's bands.
    band: usize,
    /// Shape and plan of operations, as a number.
    work: u64,
}

/// What the time of a run is made of.
struct RunCosts {
    bands: Vec<ErrorBand>,
    /// Shares of the run's time on the IPU that works longest.
    longest: BTreeMap<ErrorSource, f64>,
    /// Shares of all working time of all IPUs.
    all: BTreeMap<ErrorSource, f64>,
}

impl RunCosts {
    /// `None` where the report says nothing of errors, or was not run.
    fn read(report: &Report) -> Result<Option<Self>, ReportError> {
        let bands = report.error_bands()?;
        let Some(trace) = report.trace()?.filter(|_| !bands.is_empty()) else { return Ok(None) };
        let (programs, operations) = (report.programs()?, report.operations()?);
        let sources = ErrorSources::new(&bands, &programs, &operations);
        let (mut longest, mut all) = (BTreeMap::new(), BTreeMap::new());
        let mut most = 0.0;
        for lane in lanes(&trace)? {
            let mut own: BTreeMap<ErrorSource, f64> = BTreeMap::new();
            for sums in lane.iter() {
                if let Some(source) = sources.of(sums.program, sums.kind()) {
                    *own.entry(source).or_default() += sums.cycles.as_f64();
                }
            }
            for (source, cycles) in &own {
                *all.entry(source.clone()).or_default() += cycles;
            }
            let busy = own.values().sum();
            if busy > most {
                (most, longest) = (busy, own);
            }
        }
        let length = trace.range().length().max(Cycles(1)).as_f64();
        let total: f64 = all.values().sum();
        longest.values_mut().for_each(|share| *share /= length);
        all.values_mut().for_each(|share| *share /= total.max(1.0));
        Ok(Some(Self { bands, longest, all }))
    }

    fn shares(&self) -> BasisShares {
        let mut shares = BasisShares::default();
        for (source, share) in &self.longest {
            if let Some(band) = self.bands.get(source.band) {
                *shares.of_basis(band.basis) += share;
            }
        }
        shares.waiting = self.waiting();
        shares
    }

    fn waiting(&self) -> f64 {
        (1.0 - self.longest.values().sum::<f64>()).max(0.0)
    }

    /// What each draw multiplies the length of the run by.
    fn draws(&self) -> Vec<f64> {
        let (mut lengths, mut others) = (vec![0.0; DRAWS], vec![0.0; DRAWS]);
        for (source, share) in &self.all {
            let Some(band) = self.bands.get(source.band) else { continue };
            let own = self.longest.get(source).copied().unwrap_or(0.0);
            let kind = text_number(band.kind.as_deref().unwrap_or(band.basis.name()));
            // Turned, so that it is another source of draws where there is no work to tell apart.
            let work = kind.rotate_left(32) ^ source.work;
            for (draw, (length, other)) in (0u64..).zip(lengths.iter_mut().zip(&mut others)) {
                let (common, special) = (normal(kind, draw), normal(work, draw));
                let factor = factor(band.cycles, (common + special) / 2.0f64.sqrt());
                *length += own * factor;
                *other += share * factor;
            }
        }
        let waiting = self.waiting();
        lengths.iter().zip(&others).map(|(length, other)| length + waiting * other).collect()
    }
}

/// Sums by program of each lane of compute tiles.
fn lanes(trace: &Trace) -> Result<Vec<std::sync::Arc<Vec<ProgramStepSums>>>, ReportError> {
    let indices = (0..trace.lanes().len()).filter_map(|index| trace.lane(index));
    indices.filter(|lane| lane.info().sub_lane == 0).map(|lane| lane.program_sums()).collect()
}

/// Finds what the errors of steps are common with.
struct ErrorSources<'a> {
    /// Places of bands by kind of operation.
    by_kind: BTreeMap<&'a str, usize>,
    /// Of programs of no operation: what moves over links, and all else.
    links: Option<usize>,
    others: Option<usize>,
    programs: &'a ProgramNodeTable,
    operations: &'a [ModelOperation],
}

impl<'a> ErrorSources<'a> {
    fn new(
        bands: &'a [ErrorBand],
        programs: &'a ProgramNodeTable,
        operations: &'a [ModelOperation],
    ) -> Self {
        let kinds = bands.iter().enumerate();
        let by_kind = kinds.filter_map(|(at, band)| Some((band.kind.as_deref()?, at))).collect();
        let of_none = |links: bool| {
            bands
                .iter()
                .position(|band| band.kind.is_none() && (band.basis == CostBasis::Links) == links)
        };
        Self { by_kind, links: of_none(true), others: of_none(false), programs, operations }
    }

    /// `None` for waits, and where no band is known.
    fn of(&self, program: Option<ProgramId>, kind: ProgramKind) -> Option<ErrorSource> {
        let of_none = |band: Option<usize>| Some(ErrorSource { band: band?, work: 0 });
        match kind {
            ProgramKind::Sync => return None,
            ProgramKind::GlobalExchange
            | ProgramKind::StreamCopyBegin
            | ProgramKind::StreamCopyMid
            | ProgramKind::StreamCopyEnd => return of_none(self.links),
            _ => {}
        }
        let node = program.and_then(|program| self.programs.get(program));
        let operation = node.and_then(|node| self.operations.get(node.operation?.index()));
        let Some(operation) = operation else { return of_none(self.others) };
        let band = self.by_kind.get(operation.kind.as_str()).copied()?;
        let plan = operation.plan.as_deref().unwrap_or("");
        let work = text_number(&operation.shapes) ^ text_number(plan).rotate_left(1);
        Some(ErrorSource { band, work })
    }
}

/// A factor within a band, so many deviations from its middle.
fn factor(FactorBand { low, high }: FactorBand, deviations: f64) -> f64 {
    let (low, high) = (low.ln(), high.ln());
    ((low + high) / 2.0 + deviations * (high - low) / 2.0 / BAND_DEVIATIONS).exp()
}

/// A number for a text (FNV-1a).
fn text_number(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A normally distributed number for a source of errors and a draw, the same every time
/// (splitmix64, Box-Muller).
fn normal(source: u64, draw: u64) -> f64 {
    let mix = |index: u64| {
        let mut z = source ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let (radius, angle) = (1.0 - mix(2 * draw), mix(2 * draw + 1));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// How sure the figures of a run of `cycles` and so many samples per second are; `None` where the
/// report does not say how far its predictions may be off.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn confidence(
    report: &Report,
    cycles: Cycles,
    samples_per_second: Option<f64>,
) -> Result<Option<Confidence>, ReportError> {
    let Some(costs) = RunCosts::read(report)? else { return Ok(None) };
    let factors = PredictionBand::of(costs.draws());
    let rate = |rate: f64| PredictionBand { low: rate / factors.high, high: rate / factors.low };
    Ok(Some(Confidence {
        shares: costs.shares(),
        cycles: factors.scaled(cycles.as_f64()),
        samples_per_second: samples_per_second.map(rate),
    }))
}

/// Whether two runs differ by more than the model may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distinction {
    /// By which share the target takes more cycles per unit of work, in nine of ten cases.
    pub change: PredictionBand,
    /// Whether that leaves no doubt which of them is faster.
    pub distinguishable: bool,
}

/// Whether two runs of so many cycles differ by more than the model may be wrong, common errors
/// cancelled; `None` where one of them does not say how far it may be off, or both take the same.
///
/// # Errors
/// Parts of the files that cannot be read.
pub(crate) fn distinction(
    (source, target): (&Report, &Report),
    normalization: &WorkNormalization,
) -> Result<Option<Distinction>, ReportError> {
    let (Some(of_source), Some(of_target)) = (RunCosts::read(source)?, RunCosts::read(target)?)
    else {
        return Ok(None);
    };
    let cycles = |report: &Report| -> Result<Option<TableCell>, ReportError> {
        Ok(report.trace()?.map(|trace| TableCell::Count(trace.range().length().0)))
    };
    let row = normalization.compared("cycles", cycles(source)?, cycles(target)?);
    let Some(ratio) = row.share().map(|share| 1.0 + share).filter(|ratio| *ratio != 1.0) else {
        return Ok(None);
    };
    let draws = of_source.draws().into_iter().zip(of_target.draws());
    let factors = PredictionBand::of(draws.map(|(source, target)| target / source).collect());
    let PredictionBand { low, high } = factors.scaled(ratio);
    let change = PredictionBand { low: low - 1.0, high: high - 1.0 };
    Ok(Some(Distinction { change, distinguishable: change.low > 0.0 || change.high < 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_draws_lie_in_the_band() {
        let band = FactorBand { low: 0.9, high: 1.2 };
        let draws = (0..DRAWS as u64).map(|draw| factor(band, normal(7, draw)));
        let found = PredictionBand::of(draws.collect());
        assert!((found.low - 0.9).abs() < 0.015 && (found.high - 1.2).abs() < 0.02, "{found:?}");
        let kind = Some("conv2d".to_owned());
        let one =
            ErrorBand { kind, basis: CostBasis::Measured, rows: 9, cycles: band, bytes: band };
        let only = BTreeMap::from([(ErrorSource { band: 0, work: 0 }, 1.0)]);
        let run = RunCosts { bands: vec![one], longest: only.clone(), all: only };
        let of_run = PredictionBand::of(run.draws());
        assert!((of_run.low - 0.9).abs() < 0.015 && (of_run.high - 1.2).abs() < 0.02, "{of_run:?}");
        let mean = (0..DRAWS as u64).map(|draw| normal(11, draw)).sum::<f64>() / DRAWS as f64;
        assert!(mean.abs() < 0.1, "{mean}");
    }
}
