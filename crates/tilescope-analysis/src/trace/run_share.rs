//! Shares together with their wholes.
//!
//! Cycles that were summed up over a part of a run are not figures of the run. A [`Share`] stores
//! them with the window of the sum, is divided only by that window, and has to be extrapolated to
//! the run before it can be printed or ranked beside shares of the run.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::{Add, Mul, Sub};
use tilescope_report::trace::CriticalPath;
use tilescope_report::units::{Cycles, percent};

/// A window that is the whole of shares.
pub trait ShareWindow: Copy {
    /// The length of the window.
    fn cycles(self) -> Cycles;
}

/// The whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WholeRun {
    cycles: Cycles,
}

impl WholeRun {
    /// Creates a run with a given number of cycles.
    pub(super) fn of(cycles: Cycles) -> Self {
        Self { cycles }
    }

    /// The run that a critical path covers.
    pub(crate) fn of_path(path: &CriticalPath) -> Self {
        Self::of(path.range().length())
    }

    /// Cycles that were summed up over the whole run, as a share of it.
    pub(super) fn share(self, cycles: Cycles) -> RunShare {
        Share { of: cycles.as_f64(), window: self }
    }

    /// The gain if only `left` cycles of the run remain.
    pub(crate) fn without_all_but(self, left: f64) -> RunShare {
        let of = (self.cycles.as_f64() - left).clamp(0.0, self.cycles.as_f64());
        Share { of, window: self }
    }

    /// A share of zero.
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
    /// Creates a path with a given number of cycles.
    pub(crate) fn of(cycles: Cycles) -> Self {
        Self { cycles }
    }

    /// Cycles of the path as a share of it.
    pub(crate) fn share(self, cycles: Cycles) -> Share<Self> {
        Share { of: cycles.as_f64(), window: self }
    }
}

impl ShareWindow for PathWindow {
    fn cycles(self) -> Cycles {
        self.cycles
    }
}

/// A number of cycles as a share of a window.
#[derive(Clone, Copy, PartialEq)]
pub struct Share<W> {
    of: f64,
    window: W,
}

/// A number of cycles as a share of a whole run.
pub type RunShare = Share<WholeRun>;

impl<W: ShareWindow> Share<W> {
    pub(super) fn new(of: f64, window: W) -> Self {
        Self { of, window }
    }

    /// The whole of the share.
    pub(super) fn window(self) -> W {
        self.window
    }

    /// The extrapolated share of another window.
    pub(super) fn scaled<V: ShareWindow>(self, times: f64, window: V) -> Share<V> {
        Share { of: self.of * times, window }
    }

    /// The cycles of the same share of another share's window.
    fn as_part_of(self, other: Self) -> f64 {
        let whole = other.window.cycles();
        if self.window.cycles() == whole { self.of } else { self.value() * whole.as_f64() }
    }

    /// The whole number of cycles, robust against rounding errors of sums.
    pub fn cycles(self) -> Cycles {
        Cycles::from_f64(self.of.max(0.0) + 1e-3)
    }

    /// The ratio of the cycles to those of the window: 1 for all of it. Sums over several lanes may
    /// exceed 1.
    pub fn value(self) -> f64 {
        self.of / self.window.cycles().max(Cycles(1)).as_f64()
    }

    /// The ratio to another share.
    pub(crate) fn times(self, other: Self) -> f64 {
        self.of / other.of.max(1.0)
    }

    /// The remainder of the window.
    pub(crate) fn rest(self) -> Self {
        Self { of: self.window.cycles().as_f64() - self.of, ..self }
    }

    /// The share limited to the possible range of gains, from zero to the whole window.
    pub(crate) fn clamped(self) -> Self {
        Self { of: self.of.clamp(0.0, self.window.cycles().as_f64()), ..self }
    }

    /// The smaller of two shares.
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
