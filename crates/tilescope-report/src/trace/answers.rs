//! Answers of a trace.

use super::step_record::StepRecord;
use crate::model::{ProgramKind, StepActivity};
use crate::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId, Quantity, ReplicaClassId, StepId};
use std::fmt;
use std::ops::{Index, IndexMut};

/// Number of activities that a trace distinguishes.
pub(super) const ACTIVITIES: usize = StepActivity::ALL.len();

/// One amount per [`StepActivity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerActivity<T>(pub(super) [T; ACTIVITIES]);

impl<T: Quantity> PerActivity<T> {
    /// Activities with their amounts, in the order of [`StepActivity::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (StepActivity, T)> {
        StepActivity::ALL.into_iter().zip(self.0)
    }

    /// Sum over all activities.
    pub fn total(&self) -> T {
        self.0.into_iter().fold(T::ZERO, T::saturating_add)
    }

    /// Adds the amounts of other steps; sums stop at the largest amount.
    pub fn add(&mut self, other: &Self) {
        for (sum, value) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(value);
        }
    }

    /// The amounts as plain numbers, as in the index.
    fn numbers(&self) -> [u64; ACTIVITIES] {
        self.0.map(Quantity::number)
    }
}

impl<T> Index<StepActivity> for PerActivity<T> {
    type Output = T;

    fn index(&self, activity: StepActivity) -> &T {
        &self.0[activity as usize]
    }
}

impl<T> IndexMut<StepActivity> for PerActivity<T> {
    fn index_mut(&mut self, activity: StepActivity) -> &mut T {
        &mut self.0[activity as usize]
    }
}

/// A tile balance as in the index: 16-bit fixed point, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedPointBalance(pub(super) u16);

impl FixedPointBalance {
    const ONE: f64 = 65_535.0;

    /// The nearest balance to a share of one; shares are clamped to 0 to 1.
    #[expect(clippy::cast_possible_truncation, reason = "clamped to 16 bits before")]
    pub fn from_share(share: f64) -> Self {
        // Rounds without `round`, which would be a function call for every executed step.
        Self((share.clamp(0.0, 1.0) * Self::ONE + 0.5) as u16)
    }

    /// The balance as a share of one.
    pub fn share(self) -> f64 {
        f64::from(self.0) / Self::ONE
    }

    /// The balance times `cycles`, in units of 1 / 65,535 cycle.
    pub(super) fn weighted(self, cycles: Cycles) -> u64 {
        u64::from(self.0).saturating_mul(cycles.0)
    }
}

/// The longest of several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestStep {
    /// Its program, if it has one.
    pub program: Option<ProgramId>,
    pub kind: ProgramKind,
    /// Its activity.
    pub activity: StepActivity,
    /// Its length in cycles; in a window, only the part inside it.
    pub cycles: Cycles,
}

/// Sums over steps of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTotals {
    pub steps: u64,
    /// Cycles by activity.
    pub cycles: PerActivity<Cycles>,
    /// Sum of tile balance x cycles, in units of 1 / 65,535 cycle; see [`StepTotals::tile_balance`].
    pub balance: PerActivity<u64>,
    /// Bytes received by tiles.
    pub bytes_in: PerActivity<Bytes>,
    /// Bytes sent by tiles.
    pub bytes_out: PerActivity<Bytes>,
    /// The longest step; the first one among equals.
    pub longest: Option<LongestStep>,
}

impl StepTotals {
    /// Mean tile balance (0 to 1) over the cycles spent on `activities`; `None` if there are none.
    pub fn tile_balance(&self, activities: &[StepActivity]) -> Option<f64> {
        let cycles: Cycles = activities.iter().map(|&activity| self.cycles[activity]).sum();
        let balance: f64 = activities.iter().map(|&activity| self.balance[activity] as f64).sum();
        if cycles.is_zero() {
            None
        } else {
            Some(balance / (cycles.as_f64() * FixedPointBalance::ONE))
        }
    }

    /// The activity with the most cycles; the first in [`StepActivity::ALL`] among equals.
    pub fn dominant(&self) -> Option<StepActivity> {
        let (activity, cycles) =
            self.cycles.iter().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        if cycles.is_zero() { None } else { Some(activity) }
    }

    /// The sums of a single step.
    pub(super) fn from_record(record: &StepRecord) -> Self {
        let mut totals = Self::default();
        totals.add_step(record);
        totals
    }

    /// Adds a later step.
    pub(super) fn add_step(&mut self, record: &StepRecord) {
        let activity = record.class.activity();
        let cycles = record.range.length();
        let at = activity as usize;
        fn add<T: Quantity>(sum: &mut T, value: T) {
            *sum = sum.saturating_add(value);
        }
        self.steps += 1;
        add(&mut self.cycles.0[at], cycles);
        add(&mut self.balance.0[at], record.balance.weighted(cycles));
        add(&mut self.bytes_in.0[at], record.bytes_in);
        add(&mut self.bytes_out.0[at], record.bytes_out);
        if self.longest.is_none_or(|longest| cycles > longest.cycles) {
            let kind = record.class.kind();
            self.longest = Some(LongestStep { program: record.program, kind, activity, cycles });
        }
    }

    /// Adds the sums of later steps.
    pub(super) fn add(&mut self, later: &Self) {
        self.steps += later.steps;
        self.cycles.add(&later.cycles);
        self.balance.add(&later.balance);
        self.bytes_in.add(&later.bytes_in);
        self.bytes_out.add(&later.bytes_out);
        let get_cycles = |longest: Option<LongestStep>| longest.map(|l| l.cycles);
        if get_cycles(later.longest) > get_cycles(self.longest) {
            self.longest = later.longest;
        }
    }

    pub(super) fn columns(&self) -> [[u64; ACTIVITIES]; 4] {
        let Self { cycles, balance, bytes_in, bytes_out, .. } = self;
        [cycles.numbers(), balance.numbers(), bytes_in.numbers(), bytes_out.numbers()]
    }

    /// True if no balance is above 1.
    pub(super) fn is_balanced(&self) -> bool {
        let mut pairs = self.balance.0.iter().zip(self.cycles.0);
        pairs.all(|(&balance, cycles)| balance <= FixedPointBalance(u16::MAX).weighted(cycles))
    }
}

/// A row of the trace: the consecutive steps of one IPU, or of one group of tiles on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneInfo {
    /// The replicas that it belongs to.
    pub class: ReplicaClassId,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// 0 for compute tiles; higher for other tiles of the IPU that work beside them.
    pub sub_lane: u8,
    pub steps: u64,
    /// The cycles from the start of the first step to the end of the last.
    pub range: CycleRange,
}

/// `IPU 2 lane 0`, or `replica class 1, IPU 2 lane 0` for replicas other than the first ones.
impl fmt::Display for LaneInfo {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.class != ReplicaClassId(0) {
            write!(f, "replica class {}, ", self.class)?;
        }
        write!(f, "IPU {} lane {}", self.ipu, self.sub_lane)
    }
}

/// An executed step on one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStep {
    /// Position on the lane, counted from 0.
    pub position: u64,
    /// The step; [`Report::step`](crate::Report::step) gives its details.
    pub step: StepId,
    pub range: CycleRange,
    pub kind: ProgramKind,
    /// Its activity.
    pub activity: StepActivity,
    /// Its program, if it has one.
    pub program: Option<ProgramId>,
    /// Active tile balance x active tiles / tiles of the IPU.
    pub tile_balance: FixedPointBalance,
    /// Bytes received by tiles of this IPU.
    pub bytes_in: Bytes,
    /// Bytes sent by tiles of this IPU.
    pub bytes_out: Bytes,
}

impl LaneStep {
    pub(super) fn new(position: u64, record: &StepRecord) -> Self {
        Self {
            position,
            step: record.step,
            range: record.range,
            kind: record.class.kind(),
            activity: record.class.activity(),
            program: record.program,
            tile_balance: record.balance,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
        }
    }
}

/// Consecutive steps, each narrower than a pixel, drawn as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBucket {
    /// The cycles from the start of the first step to the end of the last, with the gaps between
    /// them.
    pub range: CycleRange,
    /// Position of the first step on the lane.
    pub first_position: u64,
    pub first_step: StepId,
    /// Sums over the steps, including their parts outside of the window.
    pub totals: StepTotals,
}

/// Something to draw on a lane.
#[expect(clippy::large_enum_variant, reason = "buckets are the many, and made once per view")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneSpan {
    /// A step at least one pixel wide, exactly as it ran.
    Step(LaneStep),
    /// Steps narrower than a pixel.
    Bucket(StepBucket),
}

impl LaneSpan {
    /// The cycles from its start to its end.
    pub fn range(&self) -> CycleRange {
        match self {
            Self::Step(step) => step.range,
            Self::Bucket(bucket) => bucket.range,
        }
    }

    /// Number of steps in it.
    pub fn steps(&self) -> u64 {
        match self {
            Self::Step(_) => 1,
            Self::Bucket(bucket) => bucket.totals.steps,
        }
    }
}
