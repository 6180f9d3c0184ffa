//! Confidence in the figures of a simulated run: the basis of its cycles, and the bounds that hold
//! each figure in nine of ten cases.
//!
//! A report states, for each kind of operation, the factors that bound its true cost. The run is
//! costed again under many draws of such factors, without compiling it again: the cycles of the IPU
//! that works longest are scaled step by step, and its waits by the mean of all IPUs that it waits
//! for. Half of the variance of a factor is common to its kind, and half to operations of one kind,
//! shape and plan. Draws are numbered, the same in every report: in a comparison, the errors that
//! two runs share cancel.
//!
//! These are all the errors of *differences* between two runs of one program. *Absolute* figures
//! are [`Banded`]: their draws also have a factor that is common to the whole program, as measured
//! on published programs, and one for each source of errors that some programs have more of than
//! others (copies between layouts, formulas without measurements, the host, ...). A [`Banded`] is
//! created nowhere else, so no front end can print the band of a difference for that of a figure.

mod banded;
mod draws;
mod error_sources;
mod memory_fit;
mod own_errors;

pub use banded::Banded;
pub(crate) use memory_fit::MemoryUse;
pub use memory_fit::{MemoryFit, expected_fullest_tile, memory_fit};
pub use own_errors::{ChangeBand, OwnErrors};

use self::draws::{BAND_DEVIATIONS, DRAWS, common_factors, factor, middle_of, normal, text_number};
use self::error_sources::{ErrorSource, ErrorSources, STEP_SOURCES};
use crate::compare::WorkNormalization;
use crate::data_table::TableCell;
use crate::label_conventions::is_recomputed;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::trace::{ProgramStepSums, Trace};
use tilescope_report::units::{Cycles, ProgramId, grouped};
use tilescope_report::{
    CostBasis, ErrorBand, FactorBand, HostCallPart, ModelOperation, ProgramErrorBand,
    ProgramErrorSource, ProgramKind, ProgramNodeTable, Report, ReportError, TrainingPass,
};

/// Shares of the time of the IPU that works longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BasisShares {
    /// Operations of measured kinds.
    pub measured: f64,
    /// Operations with costs from published formulas alone.
    pub published_formulas: f64,
    /// Copies over links, with the host and with streaming memory.
    pub host_and_links: f64,
    /// Operations with assumed costs.
    pub assumptions: f64,
    /// Waits for other IPUs or the host.
    pub waiting: f64,
}

impl BasisShares {
    /// Names and shares, in the order of the views.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("measured kinds", self.measured),
            ("published formulas", self.published_formulas),
            ("host and links", self.host_and_links),
            ("assumptions", self.assumptions),
            ("waits for other IPUs", self.waiting),
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

/// The confidence in the figures of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The basis of the cycles.
    pub shares: BasisShares,
    /// Cycles of the run. Like all fields below, `None` if the report does not state the errors of
    /// whole programs, as in older formats.
    pub cycles: Option<Banded>,
    /// Seconds of the run, if the clock is known.
    pub seconds: Option<Banded>,
    /// Samples per second, if the model works on batches.
    pub samples_per_second: Option<Banded>,
}

impl Confidence {
    /// `cycles -12 to +14 %, 4,566 to 5,916 samples per second in nine of ten cases`
    pub fn short(&self) -> Option<String> {
        let cycles = format!("cycles {}", self.cycles?.width_words());
        Some(match self.samples_per_second {
            Some(rate) => {
                let rate =
                    rate.words_with(|rate| grouped(rate.round() as u64), " samples per second");
                format!("{cycles}, {rate}")
            }
            None => format!("{cycles} (90 % interval)"),
        })
    }

    /// Names and bands as text, in the order of the views.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, String)> {
        let cycles = self.cycles.map(|band| ("Cycles", band.words()));
        let time = self.seconds.map(|band| ("Time", band.in_seconds()));
        let rate = self.samples_per_second.map(|band| ("Samples per second", band.words()));
        [cycles, time, rate].into_iter().flatten()
    }
}

/// Cycles of the compute tiles of an IPU by program.
pub type LaneCycles = Vec<(Option<ProgramId>, ProgramKind, Cycles)>;

/// The parts of a run that determine the errors of its time.
pub struct ErrorProneRun<'a> {
    pub bands: &'a [ErrorBand],
    pub errors: &'a [ProgramErrorBand],
    pub programs: &'a ProgramNodeTable,
    pub operations: &'a [ModelOperation],
    pub length: Cycles,
    pub lanes: &'a [LaneCycles],
}

impl ErrorProneRun<'_> {
    /// The factors that bound its true time in nine of ten cases, from the errors of its parts
    /// alone and with the errors of whole programs. `None` if errors are not known.
    #[must_use]
    pub fn time_factors(&self) -> Option<RunFactors> {
        let costs = RunCosts::new(self)?;
        let mut of_parts = costs.errors.clone();
        of_parts.retain(|error| error.source != ProgramErrorSource::Program);
        if of_parts.len() == costs.errors.len() {
            return None;
        }
        Some(RunFactors {
            parts: middle_of(costs.draws(&of_parts)),
            program: middle_of(costs.draws(&costs.errors)),
        })
    }
}

/// The factors that bound the true time of a run in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFactors {
    /// The factors from the errors of its parts alone.
    pub parts: FactorBand,
    /// The same with the errors of whole programs.
    pub program: FactorBand,
}

impl RunFactors {
    /// The factors of a run whose parts are not known.
    #[must_use]
    pub fn of_program(program: FactorBand) -> Self {
        Self { parts: program, program }
    }

    /// Standard deviation of the logarithm, from the errors of the parts alone.
    #[must_use]
    pub fn deviation_of_parts(&self) -> f64 {
        (self.parts.high / self.parts.low).ln() / 2.0 / BAND_DEVIATIONS
    }

    /// The band of a predicted time.
    #[must_use]
    pub fn of_time(&self, time: f64) -> Banded {
        Banded::new(time, self.program)
    }

    /// The band of a predicted rate.
    #[must_use]
    pub fn of_rate(&self, rate: f64) -> Banded {
        Banded::falling(rate, self.program)
    }
}

/// The parts of the time of a run.
struct RunCosts {
    bands: Vec<ErrorBand>,
    errors: Vec<ProgramErrorBand>,
    /// A number of the program, equal for all runs of it.
    identity: u64,
    /// Shares of the run's time on the IPU that works longest.
    longest: BTreeMap<ErrorSource, f64>,
    /// The remaining shares, in which that IPU waits for the host.
    host_waits: HostWaits,
    /// Shares of the working time of all IPUs.
    all: BTreeMap<ErrorSource, f64>,
}

/// Shares of a run's time in which an IPU waits for the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct HostWaits {
    /// Waits for the work that a framework does once per call.
    calls: f64,
    /// Waits for the loader and the handshake.
    others: f64,
}

impl HostWaits {
    fn of_part(&mut self, part: HostCallPart) -> &mut f64 {
        match part {
            HostCallPart::Framework | HostCallPart::Launch | HostCallPart::Results => {
                &mut self.calls
            }
            HostCallPart::Loader | HostCallPart::Handshake | HostCallPart::Program => {
                &mut self.others
            }
        }
    }

    fn times(self, factor: f64) -> Self {
        Self { calls: self.calls * factor, others: self.others * factor }
    }

    fn sum(self) -> f64 {
        self.calls + self.others
    }
}

impl RunCosts {
    /// `None` if the report states no errors, or was not executed.
    fn read(report: &Report) -> Result<Option<Self>, ReportError> {
        let bands = report.error_bands()?;
        let Some(trace) = report.trace()?.filter(|_| !bands.is_empty()) else { return Ok(None) };
        let lanes = lanes(&trace)?;
        let lanes: Vec<LaneCycles> = lanes.iter().map(|lane| lane_cycles(lane)).collect();
        let programs = report.programs()?;
        let operations = report.operations()?;
        Ok(Self::new(&ErrorProneRun {
            bands: &bands,
            errors: &report.program_errors()?,
            programs: &programs,
            operations: &operations,
            length: trace.range().length(),
            lanes: &lanes,
        }))
    }

    /// `None` if errors are not known.
    fn new(run: &ErrorProneRun<'_>) -> Option<Self> {
        if run.bands.is_empty() {
            return None;
        }
        let sources = ErrorSources::new(run);
        let mut longest = BTreeMap::new();
        let mut all = BTreeMap::new();
        let mut most = 0.0;
        let mut host_waits = HostWaits::default();
        for lane in run.lanes {
            let mut own: BTreeMap<ErrorSource, f64> = BTreeMap::new();
            let mut waits = HostWaits::default();
            for (program, kind, cycles) in lane {
                if let Some(source) = sources.of(*program, *kind) {
                    *own.entry(source).or_default() += cycles.as_f64();
                } else if let Some(part) = sources.awaited_part(*program) {
                    *waits.of_part(part) += cycles.as_f64();
                }
            }
            for (source, cycles) in &own {
                *all.entry(source.clone()).or_default() += cycles;
            }
            let busy = own.values().sum();
            if busy > most {
                (most, longest, host_waits) = (busy, own, waits);
            }
        }
        let length = run.length.max(Cycles(1)).as_f64();
        let total: f64 = all.values().sum();
        longest.values_mut().for_each(|share| *share /= length);
        all.values_mut().for_each(|share| *share /= total.max(1.0));
        Some(Self {
            bands: run.bands.to_vec(),
            errors: run.errors.to_vec(),
            identity: identity(run.operations),
            longest,
            host_waits: host_waits.times(1.0 / length),
            all,
        })
    }

    fn shares(&self) -> BasisShares {
        let mut shares = BasisShares::default();
        for (source, share) in &self.longest {
            if let Some(band) = self.bands.get(source.band) {
                *shares.of_basis(band.basis) += share;
            }
        }
        let host_waits = self.host_waits.sum().min(self.waiting());
        shares.host_and_links += host_waits;
        shares.waiting = self.waiting() - host_waits;
        shares
    }

    fn waiting(&self) -> f64 {
        (1.0 - self.longest.values().sum::<f64>()).max(0.0)
    }

    /// Factors of all draws on the length of the run. Without `errors` of whole programs these are
    /// the errors that two runs of one program do not share.
    fn draws(&self, errors: &[ProgramErrorBand]) -> Vec<f64> {
        let of_step = STEP_SOURCES.map(|source| self.factors_of(errors, source));
        let mut lengths = vec![0.0; DRAWS];
        let mut others = vec![0.0; DRAWS];
        for (source, share) in &self.all {
            let Some(band) = self.bands.get(source.band) else { continue };
            let own = self.longest.get(source).copied().unwrap_or(0.0);
            let kind = text_number(band.kind.as_deref().unwrap_or(band.basis.name()));
            // Rotated, so that the draws differ from those of the kind even without any work to
            // tell apart.
            let work = kind.rotate_left(32) ^ source.work;
            for (draw, (length, other)) in (0u64..).zip(lengths.iter_mut().zip(&mut others)) {
                let deviations = normal(kind, draw) + normal(work, draw);
                let mut factor = factor(band.cycles, deviations / 2.0f64.sqrt());
                for (has, common) in source.has.iter().zip(&of_step) {
                    factor *= if *has { common[draw as usize] } else { 1.0 };
                }
                *length += own * factor;
                *other += share * factor;
            }
        }
        let host = self.factors_of(errors, ProgramErrorSource::Host);
        // Files from before calls had their own errors count them to those of the host.
        let has_calls = errors.iter().any(|error| error.source == ProgramErrorSource::HostCalls);
        let calls = if has_calls {
            self.factors_of(errors, ProgramErrorSource::HostCalls)
        } else {
            host.clone()
        };
        let program = self.factors_of(errors, ProgramErrorSource::Program);
        let waiting = self.waiting();
        // The errors of host waits are not part of differences.
        let for_host = if errors.is_empty() {
            HostWaits::default()
        } else {
            self.host_waits.times((waiting / self.host_waits.sum()).min(1.0))
        };
        let mut draws = Vec::with_capacity(DRAWS);
        for (draw, (length, other)) in lengths.iter().zip(&others).enumerate() {
            let waits = (waiting - for_host.sum()) * other
                + for_host.others * host[draw]
                + for_host.calls * calls[draw];
            draws.push((length + waits) * program[draw]);
        }
        draws
    }

    /// The factors of all draws of a source of errors.
    fn factors_of(&self, errors: &[ProgramErrorBand], source: ProgramErrorSource) -> Vec<f64> {
        let error = errors.iter().find(|error| error.source == source);
        // Copies of two programs have the same errors; the error of a program is its own.
        let own = if source == ProgramErrorSource::Program { self.identity } else { 0 };
        common_factors(error, own)
    }
}

/// Names of forward operations, which identify a program independent of its training and layout.
fn forward_names(operations: &[ModelOperation]) -> BTreeSet<&str> {
    let own = operations.iter().filter(|operation| {
        operation.pass == TrainingPass::Forward && !is_recomputed(&operation.name)
    });
    own.map(|operation| operation.name.as_str()).collect()
}

fn identity(operations: &[ModelOperation]) -> u64 {
    let names = forward_names(operations).into_iter();
    names.fold(0, |number: u64, name| number.rotate_left(1) ^ text_number(name))
}

/// Share of operations that two runs of one program have in common at least: options add and remove
/// copies, casts and stashes.
const SAME_PROGRAM: f64 = 0.75;

/// True if two reports describe one program, so that both have the same errors.
fn is_one_program(source: &[ModelOperation], target: &[ModelOperation]) -> bool {
    let source = forward_names(source);
    let target = forward_names(target);
    let both = source.intersection(&target).count();
    both as f64 >= SAME_PROGRAM * source.union(&target).count() as f64
}

fn lane_cycles(sums: &[ProgramStepSums]) -> LaneCycles {
    sums.iter().map(|of| (of.program, of.kind(), of.cycles)).collect()
}

/// Sums by program of each lane of compute tiles.
fn lanes(trace: &Trace) -> Result<Vec<std::sync::Arc<Vec<ProgramStepSums>>>, ReportError> {
    let indices = (0..trace.lanes().len()).filter_map(|index| trace.lane(index));
    indices.filter(|lane| lane.info().sub_lane == 0).map(|lane| lane.program_sums()).collect()
}

/// The confidence in the figures of a run with the given cycles, seconds and samples per second;
/// `None` if the report does not state its errors.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn confidence(
    report: &Report,
    (cycles, seconds): (Cycles, f64),
    samples_per_second: Option<f64>,
) -> Result<Option<Confidence>, ReportError> {
    let Some(costs) = RunCosts::read(report)? else { return Ok(None) };
    let shares = costs.shares();
    let known = costs.errors.iter().any(|error| error.source == ProgramErrorSource::Program);
    if !known {
        let unknown = Confidence { shares, cycles: None, seconds: None, samples_per_second: None };
        return Ok(Some(unknown));
    }
    let factors = middle_of(costs.draws(&costs.errors));
    Ok(Some(Confidence {
        shares,
        cycles: Some(Banded::new(cycles.as_f64(), factors)),
        seconds: if seconds > 0.0 { Some(Banded::new(seconds, factors)) } else { None },
        samples_per_second: samples_per_second.map(|rate| Banded::falling(rate, factors)),
    }))
}

/// The distinction of two runs: their difference beside the error of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distinction {
    /// Additional cycles of the target per unit of work, as a share, in nine of ten cases.
    pub change: ChangeBand,
    /// True if the band leaves no doubt about the faster run.
    pub distinguishable: bool,
    /// True if both describe one program, so that its errors cancel.
    pub one_program: bool,
}

/// Compares the difference of two runs with the error of the model, after common errors cancel.
/// `None` if one of them does not state its errors, or both take the same time. Two different
/// programs have separate errors.
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
    let row = normalization.compared("cycles", run_cycles(source)?, run_cycles(target)?);
    let Some(ratio) = row.share().map(|share| 1.0 + share).filter(|ratio| *ratio != 1.0) else {
        return Ok(None);
    };
    let one_program = is_one_program(&source.operations()?, &target.operations()?);
    // Common errors cancel.
    let [of_source, of_target] = [of_source, of_target]
        .map(|costs| costs.draws(if one_program { &[] } else { &costs.errors }));
    let ratios = of_source.into_iter().zip(of_target);
    let FactorBand { low, high } =
        middle_of(ratios.map(|(source, target)| target / source).collect());
    let change = ChangeBand { low: low * ratio - 1.0, high: high * ratio - 1.0 };
    let distinguishable = change.low > 0.0 || change.high < 0.0;
    Ok(Some(Distinction { change, distinguishable, one_program }))
}

fn run_cycles(report: &Report) -> Result<Option<TableCell>, ReportError> {
    Ok(report.trace()?.map(|trace| TableCell::Count(trace.range().length().0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_draws_lie_in_the_band() {
        let band = FactorBand { low: 0.9, high: 1.2 };
        let draws = (0..DRAWS as u64).map(|draw| factor(band, normal(7, draw)));
        let found = middle_of(draws.collect());
        assert!((found.low - 0.9).abs() < 0.015 && (found.high - 1.2).abs() < 0.02, "{found:?}");
        let kind = Some("conv2d".to_owned());
        let one =
            ErrorBand { kind, basis: CostBasis::Measured, rows: 9, cycles: band, bytes: band };
        let source = ErrorSource { band: 0, work: 0, has: [false; STEP_SOURCES.len()] };
        let only = BTreeMap::from([(source, 1.0)]);
        let run = RunCosts {
            bands: vec![one],
            errors: Vec::new(),
            identity: 0,
            longest: only.clone(),
            host_waits: HostWaits::default(),
            all: only,
        };
        let of_run = middle_of(run.draws(&[]));
        assert!((of_run.low - 0.9).abs() < 0.015 && (of_run.high - 1.2).abs() < 0.02, "{of_run:?}");
        let mean = (0..DRAWS as u64).map(|draw| normal(11, draw)).sum::<f64>() / DRAWS as f64;
        assert!(mean.abs() < 0.1, "{mean}");
    }

    /// The draws of differences do not include the errors of absolute figures.
    #[test]
    fn differences_exclude_the_errors_of_whole_programs() {
        let band = FactorBand { low: 0.98, high: 1.02 };
        let basis = CostBasis::Measured;
        let one = ErrorBand { kind: None, basis, rows: 9, cycles: band, bytes: band };
        let has = STEP_SOURCES.map(|source| source == ProgramErrorSource::Copies);
        let only = BTreeMap::from([(ErrorSource { band: 0, work: 0, has }, 1.0)]);
        let error = |source, half: f64| {
            let factors = FactorBand { low: 1.0 / half, high: half };
            ProgramErrorBand { source, rows: 9, factors }
        };
        let errors =
            [error(ProgramErrorSource::Program, 1.13), error(ProgramErrorSource::Copies, 1.3)];
        let run = RunCosts {
            bands: vec![one],
            errors: errors.to_vec(),
            identity: 1,
            longest: only.clone(),
            host_waits: HostWaits::default(),
            all: only,
        };
        let width = |errors: &[ProgramErrorBand]| {
            let band = middle_of(run.draws(errors));
            (band.high / band.low).ln() / 2.0
        };
        let none = width(&[]);
        let whole = width(&errors[..1]);
        let both = width(&errors);
        assert!((none - 0.02).abs() < 0.003, "{none}");
        // Half widths of independent errors add as squares.
        assert!((whole - 0.13f64.ln_1p().hypot(0.02)).abs() < 0.015, "{whole}");
        assert!((both - 0.13f64.ln_1p().hypot(0.02).hypot(0.3f64.ln_1p())).abs() < 0.03, "{both}");
    }

    /// A run that waits for calls of the host has their errors, or those of the host in files from
    /// before calls had their own.
    #[test]
    fn waits_for_calls_have_the_errors_of_calls() {
        let error = |source, low: f64, high: f64| {
            let factors = FactorBand { low, high };
            ProgramErrorBand { source, rows: 4, factors }
        };
        let host = error(ProgramErrorSource::Host, 0.5, 2.0);
        let calls = error(ProgramErrorSource::HostCalls, 0.2, 1.5);
        let of_run = |waits: HostWaits, errors: &[ProgramErrorBand]| {
            let run = RunCosts {
                bands: Vec::new(),
                errors: errors.to_vec(),
                identity: 0,
                longest: BTreeMap::new(),
                host_waits: waits,
                all: BTreeMap::new(),
            };
            middle_of(run.draws(errors))
        };
        let is_about = |found: FactorBand, expected: FactorBand| {
            let off = |a: f64, b: f64| (a / b).ln().abs();
            off(found.low, expected.low).max(off(found.high, expected.high)) < 0.1
        };
        let of_calls = HostWaits { calls: 1.0, others: 0.0 };
        let of_others = HostWaits { calls: 0.0, others: 1.0 };
        let both = [host, calls];
        assert!(is_about(of_run(of_calls, &both), calls.factors));
        assert!(is_about(of_run(of_others, &both), host.factors));
        assert!(is_about(of_run(of_calls, &both[..1]), host.factors));
    }
}
