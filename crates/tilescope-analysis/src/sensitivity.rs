//! What more of a resource or a faster operation makes of a run, in the words that the command line
//! and the window share.

use tilescope_report::units::{grouped, seconds as in_seconds};

/// `9.06 ms, 441,266 samples per second`; without samples only how long the run takes.
pub fn run_words(seconds: f64, samples_per_second: Option<f64>) -> String {
    let rate = |rate: f64| format!(", {} samples per second", grouped(rate.round() as u64));
    format!("{}{}", in_seconds(seconds), samples_per_second.map(rate).unwrap_or_default())
}

/// Whether an operation holds the run up: `off_path_beyond` is how many times as fast it must be not
/// to, 1 where it never does, and `None` where it always does.
pub fn path_words(off_path_beyond: Option<f64>) -> String {
    match off_path_beyond {
        None => "on the path".to_owned(),
        Some(factor) if factor <= 1.0 => "off the path".to_owned(),
        Some(factor) => format!("off the path beyond {factor:.1} x"),
    }
}
