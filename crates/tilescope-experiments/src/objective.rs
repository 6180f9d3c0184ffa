//! Objectives of a search.

use crate::condition::Condition;
use crate::point::{Point, PointFigure};
use crate::trial::TrialFigures;
use tilescope_analysis::insights::TriedProposal;

/// A quantity that a search minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneObjective {
    /// Time per sample.
    Throughput,
    /// Time of a host call.
    Latency,
    /// Memory of the fullest tile.
    Memory,
    Ipus,
    /// Energy per million samples.
    Energy,
    /// Cost per million samples.
    Cost,
}

impl TuneObjective {
    /// All objectives.
    pub const ALL: [Self; 6] =
        [Self::Throughput, Self::Latency, Self::Memory, Self::Ipus, Self::Energy, Self::Cost];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Memory => "memory",
            Self::Ipus => "ipus",
            Self::Energy => "energy",
            Self::Cost => "cost",
        }
    }

    /// The objective with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|objective| objective.name() == name)
    }

    /// The value of a point, in seconds, bytes, IPUs, joules or money; `None` if it is not known.
    #[must_use]
    pub fn value_of(self, point: &Point) -> Option<f64> {
        self.value(point.figures()?)
    }

    /// The minimised quantity as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Throughput => "time per sample",
            Self::Latency => "time of a host call",
            Self::Memory => "memory of the fullest tile",
            Self::Ipus => "IPUs",
            Self::Energy => "joules per million samples",
            Self::Cost => "cost per million samples",
        }
    }

    /// True if it is a time, so that bounds of gains in time apply to it.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Throughput | Self::Latency)
    }

    /// True if fewer IPUs alone may improve it.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::Ipus | Self::Energy | Self::Cost)
    }

    fn value(self, figures: &TrialFigures) -> Option<f64> {
        (PointFigure::named(self.figure())?.of)(figures)
    }

    /// Name of the figure.
    fn figure(self) -> &'static str {
        match self {
            Self::Throughput => "seconds_per_sample",
            Self::Latency => "seconds",
            Self::Memory => "memory",
            Self::Ipus => "ipus",
            Self::Energy => "joules_per_million_samples",
            Self::Cost => "cost_per_million_samples",
        }
    }

    /// The figure of a point as text, with the error band of the model if known.
    pub fn text(self, figures: &TrialFigures) -> String {
        let text = PointFigure::named(self.figure()).and_then(|figure| figure.text(figures));
        text.unwrap_or_else(|| "does not fit".to_owned())
    }

    /// The score of a point; `None` for points without figures.
    pub fn score(self, point: &Point, conditions: &[Condition]) -> Option<Score> {
        let figures = point.figures()?;
        if !point.fits() {
            let value = figures.fullest_tile_bytes.as_f64();
            return Some(Score { class: ScoreClass::DoesNotFit, value });
        }
        let distance: f64 = conditions.iter().map(|condition| condition.distance(figures)).sum();
        if distance > 0.0 {
            return Some(Score { class: ScoreClass::MissesConditions, value: distance });
        }
        Some(Score { class: ScoreClass::Good, value: self.value(figures)? })
    }
}

/// The kind of a score's value, the best kind first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScoreClass {
    /// The value of the objective.
    Good,
    /// The distance of figures from the conditions.
    MissesConditions,
    /// Bytes of the fullest tile.
    DoesNotFit,
}

/// The score of a point: less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    pub class: ScoreClass,
    pub value: f64,
}

impl Score {
    /// True if it is better than another by more than a run varies with its length.
    pub fn beats(self, other: Self) -> bool {
        let limit = other.value * (1.0 - TriedProposal::LEAST_GAIN);
        self.class < other.class || (self.class == other.class && self.value <= limit)
    }

    /// The gain over another score, as a share; `None` if they are of different classes.
    pub fn gain_over(self, other: Self) -> Option<f64> {
        let least = f64::MIN_POSITIVE;
        (self.class == other.class).then(|| 1.0 - self.value / other.value.max(least))
    }

    /// True if a gain of at most `bound` could beat another score.
    pub fn may_beat(self, bound: f64, other: Self) -> bool {
        Self { class: self.class, value: self.value * (1.0 - bound) }.beats(other)
    }
}
