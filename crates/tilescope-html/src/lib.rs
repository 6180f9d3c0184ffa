//! A report, two compared, or a series of many, as one HTML page that loads nothing.
//!
//! Pictures are SVG made of what `tilescope-analysis` answers, so that a build without the desktop
//! app draws them too. Names come from files that anybody may have written: they are shortened and
//! escaped, and the page's content security policy allows its own script alone.

mod block;
pub mod colours;
mod names;
mod page;
mod sections;
mod series;
mod svg;
mod table;

pub use page::{ComparedPage, HtmlPageError, PageReport, page};
pub use series::{SeriesPage, series_page};
pub use svg::standalone::figure_svg;
