//! Shares together with what they are shares of.
//!
//! Cycles that were summed up over a part of a run say nothing of the run: a [`Share`] keeps them with
//! the window that they were taken from, is divided by that one only, and has to be extrapolated to
//! the run before it can be said or ranked beside shares of it.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::{Add, Mul, Sub};
use tilescope_report::trace::CriticalPath;
use tilescope_report::units::{Cycles, percent};

/// A window that cycles are summed up over.
pub trait ShareWindow: Copy {
    /// Its length.
    fn cycles(self) -> Cycles;
}

/// All of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WholeRun {
    cycles: Cycles,
}

impl WholeRun {
    /// A run of so many cycles.
    pub(super) fn of(cycles: Cycles) -> Self {
        Self { cycles }
    }

    /// The run that a path goes through.
    pub(crate) fn of_path(path: &CriticalPath) -> Self {
        Self::of(path.range().length())
    }

    /// Cycles that were summed up over all of the run.
    pub(super) fn share(self, cycles: Cycles) -> RunShare {
        Share { of: cycles.as_f64(), window: self }
    }

    /// The gain if so many cycles are left of the run.
    pub(crate) fn without_all_but(self, left: f64) -> RunShare {
        let of = (self.cycles.as_f64() - left).clamp(0.0, self.cycles.as_f64());
        Share { of, window: self }
    }

    /// Nothing of the run.
    pub(crate) fn nothing(self) -> RunShare {
        Share { of: 0.0, window: self }
    }
}

impl ShareWindow for WholeRun {
    fn cycles(self) -> Cycles {
        self.cycles
    }
}

/// A critical path, or a window of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathWindow {
    cycles: Cycles,
}

impl PathWindow {
    /// That of so many cycles.
    pub(crate) fn of(cycles: Cycles) -> Self {
        Self { cycles }
    }

    /// Cycles of the path.
    pub(crate) fn share(self, cycles: Cycles) -> Share<Self> {
        Share { of: cycles.as_f64(), window: self }
    }
}

impl ShareWindow for PathWindow {
    fn cycles(self) -> Cycles {
        self.cycles
    }
}

/// Cycles that a window has of something.
#[derive(Clone, Copy, PartialEq)]
pub struct Share<W> {
    of: f64,
    window: W,
}

/// Cycles that all of a run has of something.
pub type RunShare = Share<WholeRun>;

impl<W: ShareWindow> Share<W> {
    pub(super) fn new(of: f64, window: W) -> Self {
        Self { of, window }
    }

    /// The window that it is a share of.
    pub(super) fn window(self) -> W {
        self.window
    }

    /// The same share, in the mean, of another window.
    pub(super) fn scaled<V: ShareWindow>(self, times: f64, window: V) -> Share<V> {
        Share { of: self.of * times, window }
    }

    /// The cycles that the same share of the window of another one would be.
    fn as_part_of(self, other: Self) -> f64 {
        let whole = other.window.cycles();
        if self.window.cycles() == whole { self.of } else { self.value() * whole.as_f64() }
    }

    /// The whole cycles; what sums of fractions are off by takes none away.
    pub fn cycles(self) -> Cycles {
        Cycles::from_f64(self.of.max(0.0) + 1e-3)
    }

    /// They, of those of the window: 1 is all of it. Several lanes may have more than that.
    pub fn value(self) -> f64 {
        self.of / self.window.cycles().max(Cycles(1)).as_f64()
    }

    /// How many times as long as another one it takes.
    pub(crate) fn times(self, other: Self) -> f64 {
        self.of / other.of.max(1.0)
    }

    /// The rest of the window.
    pub(crate) fn rest(self) -> Self {
        Self { of: self.window.cycles().as_f64() - self.of, ..self }
    }

    /// The part of it that can be gained: no less than nothing, and no more than the window.
    pub(crate) fn clamped(self) -> Self {
        Self { of: self.of.clamp(0.0, self.window.cycles().as_f64()), ..self }
    }

    /// The smaller one.
    pub(crate) fn min(self, other: Self) -> Self {
        if other.value() < self.value() { other } else { self }
    }
}

impl<W: ShareWindow> Add for Share<W> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { of: self.of + other.as_part_of(self), ..self }
    }
}

impl<W: ShareWindow> Sub for Share<W> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { of: self.of - other.as_part_of(self), ..self }
    }
}

impl<W: ShareWindow> Mul<f64> for Share<W> {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self { of: self.of * times, ..self }
    }
}

/// `12.3 %`
impl<W: ShareWindow> fmt::Display for Share<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&percent(self.value()))
    }
}

impl<W: ShareWindow> fmt::Debug for Share<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.of, self.window.cycles())
    }
}

impl<W: ShareWindow> Serialize for Share<W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}
