//! The page of a series of reports, with one file for each section.

mod change_points;
mod figures;
mod operations;
mod runs;
mod summary;

use crate::block::Block;
use crate::names::shown;
use crate::page::{HtmlPageError, PageHead, last, rendered};
use crate::sections::{SectionEntry, counted};
use tilescope_analysis::series::{FigureTrend, ReportSeries, SeriesFigure, SeriesOptions};

/// The maximum number of figures of a page. Together with the most points of all plots, it bounds
/// the size of the page.
const MAX_FIGURES: usize = 40;

/// A series and its display options.
#[derive(Clone, Copy)]
pub struct SeriesPage<'a> {
    /// Runs with the figures to show.
    pub series: &'a ReportSeries,
    pub options: SeriesOptions,
    /// The directory, or the range of revisions, of the series; empty if there are several.
    pub name: &'a str,
}

/// The data that all sections use.
pub(crate) struct SeriesFacts<'a> {
    series: &'a ReportSeries,
    options: SeriesOptions,
    name: &'a str,
    /// The trend of each figure.
    trends: Vec<FigureTrend>,
}

/// A section of such a page.
type SeriesSection = SectionEntry<fn(&SeriesFacts<'_>) -> Vec<Block>>;

/// All sections, in the order of a page.
pub(crate) static SERIES_SECTIONS: &[SeriesSection] = &[
    summary::SECTION,
    change_points::SECTION,
    figures::SECTION,
    runs::SECTION,
    operations::SECTION,
];

/// The page of a series. The same reports give the same bytes.
///
/// # Errors
/// There are more figures than a page can show.
pub fn series_page(
    SeriesPage { series, options, name }: SeriesPage<'_>,
) -> Result<String, HtmlPageError> {
    let count = series.figures.len();
    if count > MAX_FIGURES {
        return Err(HtmlPageError::TooManyFigures { count, most: MAX_FIGURES });
    }
    let trends = series.figures.iter().map(|figure| series.trend(figure, options)).collect();
    let of = SeriesFacts { series, options, name, trends };
    let sections = SERIES_SECTIONS.iter().filter_map(|entry| entry.of((entry.build)(&of)));
    rendered(of.head(), &sections.collect::<Vec<_>>(), None)
}

impl SeriesFacts<'_> {
    fn head(&self) -> PageHead {
        let runs = counted(self.series.runs.len() as u64, "run");
        let line = format!("{runs}, compared with {}", shown(self.baseline()));
        match self.name {
            "" => PageHead { title: format!("Series of {runs}"), subtitle: vec![line] },
            name => {
                let path = if last(name) != name { Some(shown(name)) } else { None };
                let subtitle = std::iter::once(line).chain(path).collect();
                PageHead { title: format!("Series: {}", last(name)), subtitle }
            }
        }
    }

    /// Figures, each with its trend.
    fn figures(&self) -> impl Iterator<Item = (&SeriesFigure, &FigureTrend)> {
        self.series.figures.iter().zip(&self.trends)
    }

    /// Name of the run that others are compared with.
    fn baseline(&self) -> &str {
        self.series.runs.get(self.options.baseline).map_or("", |run| &run.name)
    }
}
