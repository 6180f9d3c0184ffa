//! Effects of more resources or faster operations on a run, in texts that the command line and the
//! window share.

use crate::confidence::Banded;
use tilescope_report::units::{grouped, seconds as in_seconds};

/// `9.06 ms (-12 to +14 %), 441,266 samples per second (-12 to +14 %)`; without samples only the
/// time of the run, and without known errors of the model no widths.
pub fn run_words(
    (seconds, expected_seconds): (f64, Option<Banded>),
    (rate, expected_rate): (Option<f64>, Option<Banded>),
) -> String {
    let time = format!("{}{}", in_seconds(seconds), Banded::in_brackets(expected_seconds));
    let Some(rate) = rate else { return time };
    let rate = grouped(rate.round() as u64);
    format!("{time}, {rate} samples per second{}", Banded::in_brackets(expected_rate))
}

/// The relation of an operation to the critical path. `off_path_beyond` is the speedup from which
/// it is off the path: 1 if it is never on the path, and `None` if it always is.
pub fn path_words(off_path_beyond: Option<f64>) -> String {
    match off_path_beyond {
        None => "on the path".to_owned(),
        Some(factor) if factor <= 1.0 => "off the path".to_owned(),
        Some(factor) => format!("off the path beyond {factor:.1} x"),
    }
}
