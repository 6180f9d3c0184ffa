//! Ways in which a host calls programs, and what each takes of a call.
//!
//! The only place that says so: the rows are the words of `options.host.framework`, the defaults of
//! the keys that depend on it, and the band of a run's time. Figures differ by an order of magnitude
//! between frameworks and between releases of one, so a row has all that were printed, and its band
//! holds them. A path without figures takes the middle of what is printed of others, as an assumption,
//! and a band that holds all of that.

use super::{
    ConstantKind, CostConstant, HOST_BYTES_PER_SECOND, STREAM_HANDSHAKE_SECONDS,
    UNMEASURED_ERROR_SHARE,
};
use tilescope_report::FactorBand;

/// A way in which the host calls programs.
#[derive(Debug, PartialEq)]
pub struct HostPath {
    /// Its word in a spec.
    pub name: &'static str,
    /// Seconds a framework takes for a call before it launches the program.
    pub call_seconds: f64,
    /// How they are known.
    pub kind: ConstantKind,
    /// Why it is these.
    pub source: &'static str,
    /// Printed figures of calls.
    pub figures: &'static [HostCallFigure],
    /// Rate between the host and one IPU whose buffers its callbacks fill.
    pub bytes_per_second: &'static CostConstant,
    /// An exchange with the host besides its transfers.
    pub handshake_seconds: &'static CostConstant,
}

/// A publication of how long calls take.
#[derive(Debug, PartialEq)]
pub struct HostCallFigure {
    pub source: &'static str,
    /// Seconds of a call that its program leaves unexplained.
    pub seconds: f64,
    /// Rates of the data-loading tutorial that it prints, if it is an edition of it.
    pub rates: &'static [TutorialRate],
}

/// A rate of the PopTorch data-loading tutorial: calls of 50 iterations of 16 samples a replica.
#[derive(Debug, PartialEq)]
pub struct TutorialRate {
    pub replicas: u32,
    /// True if the IPUs make the samples, so that nothing is copied.
    pub synthetic: bool,
    pub samples_per_second: f64,
}

const fn rate(replicas: u32, synthetic: bool, samples_per_second: f64) -> TutorialRate {
    TutorialRate { replicas, synthetic, samples_per_second }
}

/// Fewer figures than this say nothing of releases: such a band is never narrower than what is
/// printed of other frameworks.
const ENOUGH_FIGURES: usize = 3;

/// Seconds of the shortest and the longest call that tutorials of other frameworks print.
static PRINTED_CALL_SECONDS: [f64; 2] = [0.5e-3, 3e-3];

/// The path of a spec that names none.
pub static PLAIN_HOST: HostPath = HostPath {
    name: "plain",
    call_seconds: 0.0,
    kind: ConstantKind::Assumed,
    source: "no framework stands before the launch; the rates are those of PopTorch unless \
             `options.host.streams` is raw",
    figures: &[],
    bytes_per_second: &HOST_BYTES_PER_SECOND,
    handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
};

static POPTORCH: HostPath = HostPath {
    name: "poptorch",
    call_seconds: 23.73e-3,
    kind: ConstantKind::Fitted,
    source: "the edition of the data-loading tutorial that prints most rates: calls of 800 samples \
             and of 3,200 leave the same, so it is no work on data",
    figures: &[
        HostCallFigure {
            source: "data-loading tutorial, another README with 32 workers",
            seconds: 34.5e-3,
            rates: &[
                rate(1, true, 17_091.0),
                rate(1, false, 12_367.0),
                rate(4, true, 33_481.0),
                rate(4, false, 23_143.0),
            ],
        },
        HostCallFigure {
            source: "data-loading tutorial, the edition of assets/published_figures.toml",
            seconds: 23.73e-3,
            rates: &[
                rate(1, true, 22_170.0),
                rate(1, false, 17_150.0),
                rate(4, true, 40_773.0),
                rate(4, false, 36_542.0),
            ],
        },
        // Its rate of four replicas with synthetic data, 136,907, is of a model made for one.
        HostCallFigure {
            source: "data-loading tutorial, README with 8 workers (Adamage/tutorials, \
                     tutorials/pytorch/tut2_efficient_data_loading)",
            seconds: 11.2e-3,
            rates: &[rate(1, true, 33_964.0), rate(1, false, 21_280.0)],
        },
        POPTORCH_3_1_FIGURE,
    ],
    bytes_per_second: &HOST_BYTES_PER_SECOND,
    handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
};

/// The only edition of the tutorial that names its release.
const POPTORCH_3_1_FIGURE: HostCallFigure = HostCallFigure {
    source: "data-loading tutorial, SDK 3.1 (graphcore/examples, \
             tutorials/tutorials/pytorch/efficient_data_loading)",
    seconds: 4.8e-3,
    rates: &[rate(1, true, 46_739.0), rate(2, true, 46_384.0)],
};

static POPTORCH_3_1: HostPath = HostPath {
    name: "poptorch_3_1",
    call_seconds: 4.8e-3,
    kind: ConstantKind::Fitted,
    source: "the edition of the data-loading tutorial of that release",
    figures: &[POPTORCH_3_1_FIGURE],
    bytes_per_second: &HOST_BYTES_PER_SECOND,
    handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
};

static POPART: HostPath = without_figures("popart");

static KERAS: HostPath = HostPath {
    name: "keras",
    call_seconds: 2.8e-3,
    kind: ConstantKind::Measured,
    source: "the one figure there is",
    figures: &[HostCallFigure {
        source: "graphcore/examples, tutorials/tensorflow2/keras: 3 ms a step with one step per \
                 execution, 166 to 175 us with hundreds",
        seconds: 2.8e-3,
        rates: &[],
    }],
    bytes_per_second: &HOST_BYTES_PER_SECOND,
    handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
};

static POPXL: HostPath = without_figures("popxl");

const fn without_figures(name: &'static str) -> HostPath {
    HostPath {
        name,
        call_seconds: 1.2e-3,
        kind: ConstantKind::Assumed,
        source: "no figure of its own: the middle of what tutorials of other frameworks print",
        figures: &[],
        bytes_per_second: &HOST_BYTES_PER_SECOND,
        handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
    }
}

/// Every path, the default first.
pub static HOST_PATHS: [&HostPath; 6] =
    [&PLAIN_HOST, &POPTORCH, &POPTORCH_3_1, &POPART, &KERAS, &POPXL];

/// The words of `options.host.framework`, in the order of [`HOST_PATHS`].
pub(crate) const HOST_PATH_NAMES: [&str; 6] =
    ["plain", "poptorch", "poptorch_3_1", "popart", "keras", "popxl"];

/// Between which factors true times of host calls lie that somebody measured on a host of their own.
pub(crate) fn own_call_factors() -> FactorBand {
    let most = 1.0 + UNMEASURED_ERROR_SHARE.ratio();
    FactorBand { low: 1.0 / most, high: most }
}

impl HostPath {
    /// Between which factors the true time of a call lies in nine of ten cases: from the shortest
    /// to the longest that was printed, and as much beyond as what nobody measured is off by.
    #[must_use]
    pub fn call_factors(&self) -> FactorBand {
        let own = own_call_factors();
        if self.call_seconds == 0.0 {
            return own;
        }
        let others: &[f64] =
            if self.figures.len() < ENOUGH_FIGURES { &PRINTED_CALL_SECONDS } else { &[] };
        let printed =
            || self.figures.iter().map(|figure| figure.seconds).chain(others.iter().copied());
        let shortest = printed().fold(self.call_seconds, f64::min);
        let longest = printed().fold(self.call_seconds, f64::max);
        FactorBand {
            low: own.low * shortest / self.call_seconds,
            high: own.high * longest / self.call_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_paths() {
        assert_eq!(HOST_PATHS.map(|path| path.name), HOST_PATH_NAMES);
    }

    /// No path is a number without a source, and none is surer than what was printed.
    #[test]
    fn every_path_has_sources_and_a_band_that_holds_its_figures() {
        for path in HOST_PATHS {
            assert!(!path.source.is_empty() && !path.source.ends_with('.'), "{}", path.name);
            let FactorBand { low, high } = path.call_factors();
            assert!(low < 1.0 && high > 1.0, "{}: {low} {high}", path.name);
            for figure in path.figures {
                let factor = figure.seconds / path.call_seconds;
                assert!(!figure.source.is_empty() && low < factor && factor < high, "{figure:?}");
            }
            match path.kind {
                ConstantKind::Assumed => assert_eq!(path.figures, &[], "{}", path.name),
                _ => assert!(!path.figures.is_empty(), "{}", path.name),
            }
            if path.call_seconds > 0.0 && path.figures.len() < ENOUGH_FIGURES {
                let held = |seconds: &f64| (low..high).contains(&(seconds / path.call_seconds));
                assert!(PRINTED_CALL_SECONDS.iter().all(held), "{}: {low} {high}", path.name);
            }
        }
    }
}
