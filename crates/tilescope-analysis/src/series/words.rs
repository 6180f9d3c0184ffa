//! The behaviour of figures over the runs as text.

use super::{ChangePoint, FigureDrift, FigureTrend, ReportSeries, SeriesFigure, SeriesOptions};

impl ReportSeries {
    /// The behaviour of a figure, with a sentence for each lasting change, then each drift, then
    /// each deviating run; sentences do not contain the figure's name.
    pub fn trend_words(
        &self,
        of: &SeriesFigure,
        trend: &FigureTrend,
        options: SeriesOptions,
    ) -> Vec<String> {
        let changes = trend.changes.iter().map(|change| self.change_words(of, change));
        let drifts = trend.drifts.iter().map(|drift| self.drift_words(drift));
        let outliers = trend.outliers.iter().map(|run| {
            let value = self.value_of_run(of, *run, options.unit).unwrap_or(0.0);
            format!(
                "is an outlier in {}: {}",
                self.runs[*run].name,
                of.figure.quantity().text(value)
            )
        });
        changes.chain(drifts).chain(outliers).collect()
    }

    /// `rises by 5.00 % at v10, from 100 cycles to 105 cycles`
    pub fn change_words(&self, of: &SeriesFigure, change: &ChangePoint) -> String {
        let name = &self.runs[change.run].name;
        let [before, after] =
            [change.before, change.after].map(|value| of.figure.quantity().text(value));
        let verb = if change.after > change.before { "rises" } else { "falls" };
        let by = change
            .share
            .map_or_else(String::new, |share| format!(" by {:.2} %", share.abs() * 100.0));
        let doubt =
            if change.confirmed { "" } else { "; not confirmed yet: only one run shows it" };
        format!("{verb}{by} at {name}, from {before} to {after}{doubt}")
    }

    fn drift_words(&self, drift: &FigureDrift) -> String {
        let [first, last] = [drift.first, drift.last].map(|run| &self.runs[run].name);
        format!("drifts by {:+.2} % each run, from {first} to {last}", drift.share_per_run * 100.0)
    }
}
