//! Constants of the simulator that are neither on a data sheet nor part of a published formula:
//! meaning, source and use of each.
//!
//! `docs/model.md` lists them as a table, `tilescope model` prints the table, and
//! `tilescope model --sensitivity` reports how much a prediction depends on each. For that purpose
//! they can be changed, once and before any of them is read. They belong to the process, not to a
//! simulation. Passing them along would add a parameter to every free function that counts cycles
//! and bytes, and to the key of the plan cache, for the sake of one command, which starts a process
//! for each change instead.

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
use tilescope_report::units::{Bytes, Cycles, exact_real};

/// Evidence for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConstantKind {
    /// Stated by a public source of Graphcore.
    Published,
    /// Read from a profile, a printed log or a measurement of something other than its prediction.
    Measured,
    /// Chosen so that predictions match published figures.
    Fitted,
    /// Plausible, without a source.
    Assumed,
}

impl ConstantKind {
    /// All kinds, the best known first.
    pub const ALL: [Self; 4] = [Self::Published, Self::Measured, Self::Fitted, Self::Assumed];

    /// Name of the kind in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// Unit that a constant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantUnit {
    Cycles,
    Bytes,
    /// Whole items with the given name.
    Count(&'static str),
    /// Anything else: rates, shares, seconds.
    Ratio(&'static str),
}

impl ConstantUnit {
    /// Name of the unit in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Bytes => "bytes",
            Self::Count(name) | Self::Ratio(name) => name,
        }
    }
}

/// Constant of the cost model with its documentation.
#[derive(Debug)]
pub struct CostConstant {
    pub name: &'static str,
    /// Meaning, as one line without a full stop at its end.
    pub meaning: &'static str,
    /// Value unless it is changed.
    pub value: f64,
    pub unit: ConstantUnit,
    pub kind: ConstantKind,
    /// Source of the value: a publication, or the rows it was fitted on.
    pub source: &'static str,
    /// Programs whose figures depend on it.
    pub serves: &'static str,
    /// Value in this process, set by the first read or change.
    current: OnceLock<f64>,
}

impl CostConstant {
    fn get(&self) -> f64 {
        *self.current.get_or_init(|| self.value)
    }

    /// Value as a whole number of cycles.
    pub fn cycles(&self) -> Cycles {
        debug_assert_eq!(self.unit, ConstantUnit::Cycles, "{}", self.name);
        Cycles::from_f64(self.get())
    }

    /// Value as a whole number of bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        debug_assert_eq!(self.unit, ConstantUnit::Bytes, "{}", self.name);
        Bytes::from_f64(self.get())
    }

    /// Value as a number of items.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and not negative, as a test checks"
    )]
    pub(crate) fn count(&self) -> u64 {
        debug_assert!(matches!(self.unit, ConstantUnit::Count(_)), "{}", self.name);
        self.get() as u64
    }

    /// Value of a rate, share or time in its unit.
    pub(crate) fn ratio(&self) -> f64 {
        debug_assert!(matches!(self.unit, ConstantUnit::Ratio(_)), "{}", self.name);
        self.get()
    }

    /// Value rounded to the nearest whole number.
    pub(crate) fn value_rounded(&self) -> u64 {
        Cycles::from_f64(self.get().round()).0
    }

    /// Value as documents print it: very large and very small ones in scientific notation.
    pub fn value_text(&self) -> String {
        match self.value {
            value if !(1e-3..1e7).contains(&value) => format!("{value:.3e}"),
            value => exact_real(value),
        }
    }

    /// Value changed by a share of itself. A constant that counts whole items changes by at least
    /// one.
    pub fn moved_by(&self, share: f64) -> f64 {
        let moved = self.value * (1.0 + share);
        match self.unit {
            ConstantUnit::Ratio(_) => moved,
            _ if share > 0.0 => moved.round().max(self.value + 1.0),
            _ => moved.round().min(self.value - 1.0).max(0.0),
        }
    }
}

// Constants are statics, so the name identifies the constant.
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

/// Error of changing a constant.
#[derive(Debug, thiserror::Error)]
pub enum ConstantError {
    /// No constant has this name.
    #[error("unknown constant {0:?}; `tilescope model` lists all constants")]
    Unknown(String),
    /// The constant cannot take this value.
    #[error("{0} cannot be {1}")]
    Value(&'static str, f64),
    /// The constant was already read.
    #[error("{0} is in use")]
    InUse(&'static str),
    /// The process already simulated with other constants.
    #[error(
        "this process already simulates with other constants; simulate each calibrated spec in a \
         separate process"
    )]
    OtherCalibration,
}

/// All constants: those of tiles, of memory, of links and host, and of running costs, in this
/// order.
pub fn all() -> impl Iterator<Item = &'static CostConstant> {
    of_programs().chain(RUNNING_COST_CONSTANTS.iter().copied())
}

/// The constants that affect cycles and bytes of programs.
pub fn of_programs() -> impl Iterator<Item = &'static CostConstant> {
    [TILE_CONSTANTS, MEMORY_CONSTANTS, SYSTEM_CONSTANTS].into_iter().flatten().copied()
}

/// Returns the constant with the given name.
///
/// # Errors
///
/// [`ConstantError::Unknown`] if there is none.
pub fn named(name: &str) -> Result<&'static CostConstant, ConstantError> {
    let found = all().find(|constant| constant.name == name);
    found.ok_or_else(|| ConstantError::Unknown(name.to_owned()))
}

/// Changes a constant for the rest of the process.
///
/// # Errors
///
/// [`ConstantError`]. The constant then keeps its value.
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

/// Calibration of the first simulation of the process.
static CALIBRATION: OnceLock<ProcessCalibration> = OnceLock::new();

/// Calibrates the process for its first simulation. Later simulations must use the same
/// calibration.
///
/// # Errors
///
/// [`ConstantError::OtherCalibration`] if the process uses another calibration, and
/// [`ConstantError::InUse`] if one of the constants was read before.
pub(crate) fn calibrate(constants: &[(&'static CostConstant, f64)]) -> Result<(), ConstantError> {
    let requested: Vec<(&'static str, f64)> =
        constants.iter().map(|(constant, value)| (constant.name, *value)).collect();
    let (known, in_use) = CALIBRATION.get_or_init(|| {
        let in_use = constants.iter().find(|(constant, value)| {
            constant.current.set(*value).is_err() && constant.get() != *value
        });
        (requested.clone(), in_use.map(|(constant, _)| constant.name))
    });
    if requested != *known {
        return Err(ConstantError::OtherCalibration);
    }
    match in_use {
        Some(name) => Err(ConstantError::InUse(name)),
        None => Ok(()),
    }
}

/// Declares constants and a list of them.
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

        /// All constants declared here.
        pub(super) static $list: &[&$crate::cost_constants::CostConstant] = &[$(&$name),+];
    };
}
use cost_constants;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn constants_are_complete_and_have_unique_names() {
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
    fn invalid_changes_are_rejected() {
        assert!(matches!(change("EXCHANGE_START", 1.0), Err(ConstantError::Unknown(_))));
        assert!(matches!(change("MESSAGE_CYCLES", 4.5), Err(ConstantError::Value(..))));
        assert!(matches!(change("STREAM_END_SHARE", -0.5), Err(ConstantError::Value(..))));
        EXTRA_COUNTERS.count();
        assert!(matches!(change("EXTRA_COUNTERS", 3.0), Err(ConstantError::InUse(_))));
    }
}
