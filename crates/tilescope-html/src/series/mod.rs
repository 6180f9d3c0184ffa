//! The page of a series: what many reports say together, in sections of a file each.

mod change_points;
mod figures;
mod operations;
mod runs;
mod summary;

use crate::block::Block;
use crate::names::shown;
use crate::page::{HtmlPageError, PageHead, last, rendered};
use crate::sections::{SectionEntry, counted};
use tilescope_analysis::series::{FigureTrend, ReportSeries, SeriesFigure, SeriesTelling};

/// Most figures of a page: with the most points of all plots, a bound on its size.
const MAX_FIGURES: usize = 40;

/// A series, and how it is told.
#[derive(Clone, Copy)]
pub struct SeriesPage<'a> {
    /// Runs with the figures that the page is to show.
    pub series: &'a ReportSeries,
    pub telling: SeriesTelling,
    /// The directory, or the range of revisions, that it is of; empty where there are several.
    pub name: &'a str,
}

/// What all sections draw from.
pub(crate) struct SeriesFacts<'a> {
    series: &'a ReportSeries,
    telling: SeriesTelling,
    name: &'a str,
    /// What each figure does.
    trends: Vec<FigureTrend>,
}

/// A section of such a page.
type SeriesSection = SectionEntry<fn(&SeriesFacts<'_>) -> Vec<Block>>;

/// Every section, in the order of a page.
pub(crate) static SERIES_SECTIONS: &[SeriesSection] = &[
    summary::SECTION,
    change_points::SECTION,
    figures::SECTION,
    runs::SECTION,
    operations::SECTION,
];

/// The page of a series. The same reports make the same bytes.
///
/// # Errors
/// More figures than a page has room for.
pub fn series_page(
    SeriesPage { series, telling, name }: SeriesPage<'_>,
) -> Result<String, HtmlPageError> {
    let count = series.figures.len();
    if count > MAX_FIGURES {
        return Err(HtmlPageError::TooManyFigures { count, most: MAX_FIGURES });
    }
    let trends = series.figures.iter().map(|figure| series.trend(figure, telling)).collect();
    let of = SeriesFacts { series, telling, name, trends };
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
                let path = (last(name) != name).then(|| shown(name));
                let subtitle = std::iter::once(line).chain(path).collect();
                PageHead { title: format!("Series: {}", last(name)), subtitle }
            }
        }
    }

    /// Figures, each with what it does.
    fn figures(&self) -> impl Iterator<Item = (&SeriesFigure, &FigureTrend)> {
        self.series.figures.iter().zip(&self.trends)
    }

    /// Name of the run that others are told beside.
    fn baseline(&self) -> &str {
        self.series.runs.get(self.telling.baseline).map_or("", |run| &run.name)
    }
}
