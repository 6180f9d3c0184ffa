//! Every number of the simulator that is neither on a data sheet nor part of a published formula:
//! what it means, where it comes from, and what rests on it.
//!
//! `docs/model.md` has them as a table, `tilescope model` prints it, and `tilescope model
//! --sensitivity` says how much a prediction hangs on each. For that they can be changed, once and
//! before any is read: they belong to the process, not to a simulation. Carrying them along would
//! add a parameter to each of the free functions that count cycles and bytes, and to the key of the
//! plan cache, for the sake of one command, which starts a process for each change instead.

mod host_paths;
mod memory;
mod running_costs;
mod system;
mod tiles;

pub use host_paths::*;
pub use memory::*;
pub use running_costs::*;
pub use system::*;
pub use tiles::*;

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use tilescope_report::units::{Bytes, Cycles, grouped};

/// How a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConstantKind {
    /// A public source of Graphcore's states it.
    Published,
    /// Read off a profile, a printed log or a measurement, of something else than what it predicts.
    Measured,
    /// Chosen so that predictions meet published figures.
    Fitted,
    /// Nobody says; it is plausible.
    Assumed,
}

impl ConstantKind {
    /// Every kind, the best known first.
    pub const ALL: [Self; 4] = [Self::Published, Self::Measured, Self::Fitted, Self::Assumed];

    /// As tables and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// What a constant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantUnit {
    Cycles,
    Bytes,
    /// Whole things of that name.
    Count(&'static str),
    /// Anything else: rates, shares, seconds.
    Ratio(&'static str),
}

impl ConstantUnit {
    /// As tables and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Bytes => "bytes",
            Self::Count(name) | Self::Ratio(name) => name,
        }
    }
}

/// A number of the cost model, with all there is to say about it.
#[derive(Debug)]
pub struct CostConstant {
    pub name: &'static str,
    /// What it means, as one line without a full stop at its end.
    pub meaning: &'static str,
    /// What it is unless it was changed.
    pub value: f64,
    pub unit: ConstantUnit,
    pub kind: ConstantKind,
    /// Where it comes from: a publication, or the rows it was fitted on.
    pub source: &'static str,
    /// Programs whose figures depend on it.
    pub serves: &'static str,
    /// What it is in this process, from the first time it is read or changed.
    current: OnceLock<f64>,
}

impl CostConstant {
    fn get(&self) -> f64 {
        *self.current.get_or_init(|| self.value)
    }

    /// A number of whole cycles.
    pub fn cycles(&self) -> Cycles {
        debug_assert_eq!(self.unit, ConstantUnit::Cycles, "{}", self.name);
        Cycles::from_f64(self.get())
    }

    /// A number of whole bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        debug_assert_eq!(self.unit, ConstantUnit::Bytes, "{}", self.name);
        Bytes::from_f64(self.get())
    }

    /// A number of things.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and not negative, as a test says"
    )]
    pub(crate) fn count(&self) -> u64 {
        debug_assert!(matches!(self.unit, ConstantUnit::Count(_)), "{}", self.name);
        self.get() as u64
    }

    /// A rate, share or time in its unit.
    pub(crate) fn ratio(&self) -> f64 {
        debug_assert!(matches!(self.unit, ConstantUnit::Ratio(_)), "{}", self.name);
        self.get()
    }

    /// The whole number next to the value.
    pub(crate) fn value_rounded(&self) -> u64 {
        Cycles::from_f64(self.get().round()).0
    }

    /// The value as documents print it: large and small ones with a power of ten.
    pub fn value_text(&self) -> String {
        match self.value {
            value if !(1e-3..1e7).contains(&value) => format!("{value:.3e}"),
            value => grouped_real(value),
        }
    }

    /// The value moved by a share of itself: by one at least where it counts whole things.
    pub fn moved_by(&self, share: f64) -> f64 {
        let moved = self.value * (1.0 + share);
        match self.unit {
            ConstantUnit::Ratio(_) => moved,
            _ if share > 0.0 => moved.round().max(self.value + 1.0),
            _ => moved.round().min(self.value - 1.0).max(0.0),
        }
    }
}

/// A number with its thousands apart.
fn grouped_real(value: f64) -> String {
    let text = value.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

// Constants are statics: one name, one constant.
impl PartialEq for CostConstant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CostConstant {}

impl Hash for CostConstant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Why a constant cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum ConstantError {
    /// There is none of that name.
    #[error("there is no constant named {0:?}; `tilescope model` lists them")]
    Unknown(String),
    /// It cannot be that.
    #[error("{0} cannot be {1}")]
    Value(&'static str, f64),
    /// Something was already computed with it.
    #[error("{0} is in use")]
    InUse(&'static str),
    /// Something was already simulated with others.
    #[error(
        "this process simulates with other constants already: simulate a calibrated spec in a \
         process of its own"
    )]
    OtherCalibration,
}

/// Every constant, those of tiles first, then those of memory, of what surrounds the tiles, and what
/// machines take to run.
pub fn all() -> impl Iterator<Item = &'static CostConstant> {
    of_programs().chain(RUNNING_COST_CONSTANTS.iter().copied())
}

/// The constants that cycles and bytes of programs hang on.
pub fn of_programs() -> impl Iterator<Item = &'static CostConstant> {
    [TILE_CONSTANTS, MEMORY_CONSTANTS, SYSTEM_CONSTANTS].into_iter().flatten().copied()
}

/// The constant of that name.
///
/// # Errors
/// [`ConstantError::Unknown`].
pub fn named(name: &str) -> Result<&'static CostConstant, ConstantError> {
    let found = all().find(|constant| constant.name == name);
    found.ok_or_else(|| ConstantError::Unknown(name.to_owned()))
}

/// Changes a constant for the rest of the process.
///
/// # Errors
/// [`ConstantError`]; nothing is changed then.
pub fn change(name: &str, value: f64) -> Result<(), ConstantError> {
    let constant = named(name)?;
    let whole = !matches!(constant.unit, ConstantUnit::Ratio(_));
    if !value.is_finite() || value < 0.0 || (whole && value.fract() != 0.0) {
        return Err(ConstantError::Value(constant.name, value));
    }
    constant.current.set(value).map_err(|_| ConstantError::InUse(constant.name))
}

/// Names and values of constants, and a constant that was in use before they were set.
type ProcessCalibration = (Vec<(&'static str, f64)>, Option<&'static str>);

/// What the first simulation of the process was calibrated with.
static CALIBRATION: OnceLock<ProcessCalibration> = OnceLock::new();

/// Calibrates the process for its first simulation; further ones must be calibrated alike.
///
/// # Errors
/// [`ConstantError::OtherCalibration`], and [`ConstantError::InUse`] of a constant that was read
/// before.
pub(crate) fn calibrate(constants: &[(&'static CostConstant, f64)]) -> Result<(), ConstantError> {
    let asked = || constants.iter().map(|(constant, value)| (constant.name, *value));
    let (known, in_use) = CALIBRATION.get_or_init(|| {
        let refused = |(constant, value): &(&'static CostConstant, f64)| {
            let refused = constant.current.set(*value).is_err() && constant.get() != *value;
            refused.then_some(constant.name)
        };
        (asked().collect(), constants.iter().find_map(refused))
    });
    match in_use {
        _ if !asked().eq(known.iter().copied()) => Err(ConstantError::OtherCalibration),
        Some(name) => Err(ConstantError::InUse(name)),
        None => Ok(()),
    }
}

/// Declares constants and the list of them.
macro_rules! cost_constants {
    ($list:ident: $(
        #[doc = $meaning:literal]
        $name:ident = $value:expr, $unit:expr, $kind:ident {
            source: $source:literal,
            serves: $serves:literal,
        }
    )+) => {
        $(
            #[doc = $meaning]
            pub static $name: $crate::cost_constants::CostConstant =
                $crate::cost_constants::CostConstant {
                    name: stringify!($name),
                    meaning: $meaning.trim_ascii(),
                    value: $value,
                    unit: $unit,
                    kind: $crate::cost_constants::ConstantKind::$kind,
                    source: $source,
                    serves: $serves,
                    current: std::sync::OnceLock::new(),
                };
        )+

        /// What is declared here.
        pub(super) static $list: &[&$crate::cost_constants::CostConstant] = &[$(&$name),+];
    };
}
use cost_constants;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_constant_has_a_name_of_its_own_and_all_that_is_asked_for() {
        let names: BTreeSet<&str> = all().map(|constant| constant.name).collect();
        assert_eq!(names.len(), all().count());
        for CostConstant { name, meaning, value, unit, source, serves, .. } in all() {
            assert!(!meaning.is_empty() && !meaning.ends_with('.'), "{name}: {meaning}");
            assert!(![source, serves].iter().any(|text| text.is_empty()), "{name}");
            let whole = matches!(unit, ConstantUnit::Ratio(_)) || value.fract() == 0.0;
            assert!(*value > 0.0 && *value < 1e12 && whole, "{name} = {value}");
        }
    }

    #[test]
    fn few_constants_are_fitted() {
        let fitted = all().filter(|constant| constant.kind == ConstantKind::Fitted).count();
        assert!(fitted < 25, "{fitted}");
    }

    #[test]
    fn a_constant_moves_by_its_share_and_whole_ones_by_one_at_least() {
        assert_eq!(EXCHANGE_START_CYCLES.moved_by(-0.1), 288.0);
        assert_eq!([-0.1, 0.1].map(|share| MESSAGE_CYCLES.moved_by(share)), [4.0, 6.0]);
        assert!((STREAM_END_SHARE.moved_by(0.1) - 0.11).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_changed_is_refused() {
        assert!(matches!(change("EXCHANGE_START", 1.0), Err(ConstantError::Unknown(_))));
        assert!(matches!(change("MESSAGE_CYCLES", 4.5), Err(ConstantError::Value(..))));
        assert!(matches!(change("STREAM_END_SHARE", -0.5), Err(ConstantError::Value(..))));
        EXTRA_COUNTERS.count();
        assert!(matches!(change("EXTRA_COUNTERS", 3.0), Err(ConstantError::InUse(_))));
    }
}
