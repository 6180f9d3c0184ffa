//! Host frameworks that call programs, and the cost of a call in each.
//!
//! This table is the only source of the words of `options.host.framework`, of the defaults of keys
//! that depend on it, and of the band of a run's time. Figures differ by an order of magnitude
//! between frameworks and between releases of one framework, so a row lists all published figures,
//! and its band contains them. A path without figures assumes the middle of those published for
//! other frameworks, with a band that contains all of them.

use super::{
    ConstantKind, CostConstant, HOST_BYTES_PER_SECOND, STREAM_HANDSHAKE_SECONDS,
    UNMEASURED_ERROR_SHARE,
};
use tilescope_report::FactorBand;

/// Framework through which the host calls programs.
#[derive(Debug, PartialEq)]
pub struct HostPath {
    /// Word that names the path in a spec.
    pub name: &'static str,
    /// Seconds that the framework spends on a call before it launches the program.
    pub call_seconds: f64,
    /// Evidence for the seconds.
    pub kind: ConstantKind,
    /// Source of the seconds.
    pub source: &'static str,
    /// Published figures of calls.
    pub figures: &'static [HostCallFigure],
    /// Rate between the host and one IPU if callbacks of the framework fill its buffers.
    pub bytes_per_second: &'static CostConstant,
    /// Seconds of an exchange with the host, excluding its transfers.
    pub handshake_seconds: &'static CostConstant,
}

/// Publication that states the duration of calls.
#[derive(Debug, PartialEq)]
pub struct HostCallFigure {
    pub source: &'static str,
    /// Seconds of a call that the program itself does not explain.
    pub seconds: f64,
    /// Rates that the publication prints if it is an edition of the data-loading tutorial.
    pub rates: &'static [TutorialRate],
}

/// Rate from the PopTorch data-loading tutorial: calls of 50 iterations of 16 samples per replica.
#[derive(Debug, PartialEq)]
pub struct TutorialRate {
    pub replicas: u32,
    /// True if the IPUs generate the samples, so that no data is copied.
    pub synthetic: bool,
    pub samples_per_second: f64,
}

const fn rate(replicas: u32, synthetic: bool, samples_per_second: f64) -> TutorialRate {
    TutorialRate { replicas, synthetic, samples_per_second }
}

/// Number of figures needed to cover the spread between releases. With fewer, a band also contains
/// the figures of other frameworks.
const ENOUGH_FIGURES: usize = 3;

/// Seconds of the shortest and the longest call in the tutorials of other frameworks.
static PRINTED_CALL_SECONDS: [f64; 2] = [0.5e-3, 3e-3];

/// The path of a spec that does not name one.
pub static PLAIN_HOST: HostPath = HostPath {
    name: "plain",
    call_seconds: 0.0,
    kind: ConstantKind::Assumed,
    source: "a launch without a framework; the rates are those of PopTorch unless \
    `options.host.streams` is raw",
    figures: &[],
    bytes_per_second: &HOST_BYTES_PER_SECOND,
    handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
};

static POPTORCH: HostPath = HostPath {
    name: "poptorch",
    call_seconds: 23.73e-3,
    kind: ConstantKind::Fitted,
    source: "the edition of the data-loading tutorial with most printed rates: calls of 800 and of \
    3,200 samples leave the same time, so it does not depend on data",
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
        // Omits the rate of four replicas with synthetic data, 136,907: its model was built for
        // one.
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
    source: "the only available figure",
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
        source: "no figure for this framework: the middle of the range in tutorials of other \
        frameworks",
        figures: &[],
        bytes_per_second: &HOST_BYTES_PER_SECOND,
        handshake_seconds: &STREAM_HANDSHAKE_SECONDS,
    }
}

/// All paths, the default first.
pub static HOST_PATHS: [&HostPath; 6] =
    [&PLAIN_HOST, &POPTORCH, &POPTORCH_3_1, &POPART, &KERAS, &POPXL];

/// The words of `options.host.framework`, in the order of [`HOST_PATHS`].
pub(crate) const HOST_PATH_NAMES: [&str; 6] =
    ["plain", "poptorch", "poptorch_3_1", "popart", "keras", "popxl"];

/// Error band of a call whose duration users measured on their own host.
pub(crate) fn own_call_factors() -> FactorBand {
    let most = 1.0 + UNMEASURED_ERROR_SHARE.ratio();
    FactorBand { low: 1.0 / most, high: most }
}

impl HostPath {
    /// True if programs of the framework are compiled by TensorFlow's plugin.
    pub(crate) fn is_tensorflow(&self) -> bool {
        self.name == KERAS.name
    }

    /// Band around `call_seconds` that contains the true duration of a call in nine of ten cases.
    /// It reaches from the shortest to the longest published call, widened on both sides by the
    /// error share of unmeasured figures.
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

    /// Every number has a source, and no band is narrower than the published figures.
    #[test]
    fn every_path_has_sources_and_a_band_that_contains_its_figures() {
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
