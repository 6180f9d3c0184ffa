//! The error of absolute figures of whole programs, from published ones.
//!
//! A published figure divided by the simulated one is a factor. Its logarithm has two parts: the
//! errors of the program's own parts (`deviation`, which `tilescope reproduce` finds by costing the
//! run again), and an error that is common to the whole program. The variance of the common error
//! is the one with the maximum likelihood for a mean of 0, because nothing corrects predictions by
//! it. So few rows leave that variance uncertain, which Student's distribution takes into account:
//! its degrees of freedom are the rows, weighted down for rows that have a large deviation of their
//! own.

use crate::cost_constants::{
    HOST_TIME_RATIO, IMPORTED_ERROR_SHARE, ODD_ROW_COPY_RATIO, UNMEASURED_ERROR_SHARE,
};
use tilescope_report::{FactorBand, ProgramErrorBand, ProgramErrorSource};

/// Standard deviations from the middle of a normal distribution to the ends of a band of nine in
/// ten.
const BAND_DEVIATIONS: f64 = 1.6449;
/// Degrees of freedom from which a variance is meaningful. Below it, the largest residual is used.
const ENOUGH_FREEDOM: f64 = 2.5;

/// The residual of a published figure against its simulation.
#[derive(Clone, Debug, PartialEq)]
struct PublishedResidual {
    source: ProgramErrorSource,
    /// Logarithm of true over predicted cycles or bytes.
    error: f64,
    /// The standard deviation of the error that the errors of the program's parts explain.
    deviation: f64,
}

/// The residuals of all published figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedResiduals(Vec<PublishedResidual>);

impl PublishedResiduals {
    /// The columns of `published.csv`: the source of the error, the name of the figure in
    /// `assets/published_figures.toml`, true over predicted cycles or bytes, and the deviation that
    /// errors of the program's parts explain.
    pub const HEAD: &'static str = "source,figure,factor,deviation";

    /// The text of the file when the simulator was built.
    pub const TEXT: &'static str = include_str!("published.csv");

    /// Returns the residuals that the simulator was built with.
    pub fn kept() -> Self {
        let lines = Self::TEXT.lines().skip(1);
        Self(lines.filter_map(PublishedResidual::parse).collect())
    }

    fn of(&self, source: ProgramErrorSource) -> Vec<PublishedResidual> {
        self.0.iter().filter(|row| row.source == source).cloned().collect()
    }

    /// For each figure of whole programs, true if it lies in the band that the other figures give.
    pub fn held_when_left_out(&self) -> Vec<bool> {
        let rows = self.of(ProgramErrorSource::Program);
        let held = (0..rows.len()).map(|out| {
            let mut others = rows.clone();
            let row = others.remove(out);
            row.error.abs() <= half_width(&others).hypot(BAND_DEVIATIONS * row.deviation)
        });
        held.collect()
    }
}

impl PublishedResidual {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.split(',');
        let name = cells.next()?;
        let source = ProgramErrorSource::ALL.into_iter().find(|source| source.name() == name)?;
        let mut number = || cells.next()?.parse::<f64>().ok();
        // The second cell is the name of the figure, which is not a number.
        number();
        Some(Self { source, error: number()?.ln(), deviation: number()? })
    }

    fn weight(&self, variance: f64) -> f64 {
        (variance + self.deviation * self.deviation).max(f64::MIN_POSITIVE).powi(-2)
    }
}

/// The logarithm of the upper end of the band of nine in ten for the error that rows have in
/// common.
fn half_width(rows: &[PublishedResidual]) -> f64 {
    let variance = common_variance(rows);
    let mut sum = 0.0;
    let mut squares = 0.0;
    for row in rows {
        let weight = row.weight(variance);
        (sum, squares) = (sum + weight, squares + weight * weight);
    }
    if rows.is_empty() || sum * sum < ENOUGH_FREEDOM * squares {
        let least = UNMEASURED_ERROR_SHARE.ratio().ln_1p();
        return rows.iter().map(|row| row.error.abs()).fold(least, f64::max);
    }
    variance.sqrt() * student_end(sum * sum / squares)
}

/// The variance of the common error with the maximum likelihood.
fn common_variance(rows: &[PublishedResidual]) -> f64 {
    let most = rows.iter().map(|row| row.error * row.error).fold(0.0, f64::max);
    let mut low = 0.0;
    let mut high = most;
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if likelihood_slope(rows, middle) > 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The slope of the likelihood of a variance. It falls from above 0 to below 0 at the maximum.
fn likelihood_slope(rows: &[PublishedResidual], variance: f64) -> f64 {
    let mut slope = 0.0;
    for row in rows {
        let own = variance + row.deviation * row.deviation;
        slope += row.weight(variance) * (row.error * row.error - own);
    }
    slope
}

/// The value below which 19 of 20 of Student's distribution with `freedom` degrees of freedom lie,
/// accurate to 0.3 % from three on: the expansion about the normal distribution (Abramowitz and
/// Stegun, 26.7.5).
fn student_end(freedom: f64) -> f64 {
    let z = BAND_DEVIATIONS;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let mut end = z;
    for (power, term) in (1..).zip(terms) {
        end += term / freedom.powi(power);
    }
    end
}

fn around(half_width: f64) -> FactorBand {
    FactorBand { low: (-half_width).exp(), high: half_width.exp() }
}

/// The errors of whole programs. `formulas` is the band of unmeasured costs, `tiles` the band of
/// the fullest tiles of `measured_tiles` measured operations.
pub(super) fn errors(
    published: PublishedResiduals,
    formulas: FactorBand,
    (measured_tiles, tiles): (u64, FactorBand),
    host_calls: ProgramErrorBand,
) -> Vec<ProgramErrorBand> {
    use ProgramErrorSource::{
        Code, Copies, Formulas, FullestTile, Host, Imported, OddRows, Program, ReplicaCode,
    };
    let from_rows = |source: ProgramErrorSource| {
        let rows = published.of(source);
        ProgramErrorBand { source, rows: rows.len() as u64, factors: around(half_width(&rows)) }
    };
    let from_constant =
        |source, rows, ratio: f64| ProgramErrorBand { source, rows, factors: around(ratio.ln()) };
    vec![
        from_rows(Program),
        from_rows(Copies),
        ProgramErrorBand { source: Formulas, rows: 0, factors: formulas },
        from_constant(OddRows, 1, ODD_ROW_COPY_RATIO.ratio()),
        from_constant(Host, 3, HOST_TIME_RATIO.ratio()),
        host_calls,
        from_constant(Imported, 0, 1.0 + IMPORTED_ERROR_SHARE.ratio()),
        ProgramErrorBand { source: FullestTile, rows: measured_tiles, factors: tiles },
        from_rows(Code),
        from_rows(ReplicaCode),
    ]
}

/// Formats a line of `published.csv`: the residual of a figure.
pub fn published_line(
    source: ProgramErrorSource,
    figure: &str,
    factor: f64,
    deviation: f64,
) -> String {
    format!("{},{figure},{factor:.4},{deviation:.4}", source.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(errors: &[f64], deviation: f64) -> Vec<PublishedResidual> {
        let row = |error: &f64| PublishedResidual {
            source: ProgramErrorSource::Program,
            error: *error,
            deviation,
        };
        errors.iter().map(row).collect()
    }

    #[test]
    fn explained_deviation_is_not_counted_twice() {
        let errors = [0.05, -0.1, 0.08, -0.02, 0.12];
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        let bare = common_variance(&rows(&errors, 0.0));
        assert!((bare - squares / 5.0).abs() < 1e-9, "{bare}");
        assert!((common_variance(&rows(&errors, 0.05)) - (bare - 0.0025)).abs() < 1e-9);
        assert!(common_variance(&rows(&errors, 0.5)) < 1e-9);
    }

    #[test]
    fn few_rows_widen_the_band() {
        for (freedom, end) in [(3.0, 2.353), (5.0, 2.015), (9.0, 1.833), (1e6, 1.645)] {
            assert!((student_end(freedom) / end - 1.0).abs() < 3e-3, "{freedom}");
        }
        let few = rows(&[0.1, -0.1, 0.1], 0.0);
        let many = rows(&[0.1; 30], 0.0);
        assert!(half_width(&few) > 1.3 * half_width(&many));
        assert!(half_width(&[]) > 0.2);
        // Rows that their own parts explain carry no information about the common error.
        let vague = rows(&[0.05; 20], 0.5);
        let one = [rows(&[0.01], 0.0), vague].concat();
        assert!(half_width(&one) > 0.2, "{}", half_width(&one));
    }

    /// Sources whose bands come from few rows contain each of them, including known misses of the
    /// model.
    #[test]
    fn published_copies_and_code_lie_in_their_bands() {
        use ProgramErrorSource::{Code, Copies, ReplicaCode};
        for (source, least) in [(Copies, 1), (Code, 3), (ReplicaCode, 3)] {
            let rows = PublishedResiduals::kept().of(source);
            assert!(rows.len() >= least, "{source:?}: {} figures", rows.len());
            let end = half_width(&rows);
            assert!(rows.iter().all(|row| row.error.abs() <= end), "{source:?}: {rows:?} {end}");
        }
    }

    /// The guarantee of the bands of whole programs: it holds for each published time and rate that
    /// was predicted, left out of the estimate.
    #[test]
    fn nine_of_ten_published_programs_lie_in_bands_estimated_without_them() {
        let held = PublishedResiduals::kept().held_when_left_out();
        assert!(held.len() >= 8, "{} figures", held.len());
        let share = held.iter().filter(|held| **held).count() as f64 / held.len() as f64;
        assert!((0.80..=0.97).contains(&share), "{held:?}");
    }
}
