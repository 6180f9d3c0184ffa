//! Writes a report, a comparison of two, or a series of many, as one self-contained HTML page.
//!
//! Pictures are SVG drawn from answers of `tilescope-analysis`, so a build without the desktop app
//! has them too. Names come from untrusted files: they are shortened and escaped, and the page's
//! content security policy allows only its own script.

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
