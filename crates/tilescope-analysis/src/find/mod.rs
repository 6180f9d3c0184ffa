//! Search in a whole report: by name, and by a small typed filter.
//!
//! Names are few and steps are many, so a query is matched against each name once. Figures of steps
//! are totals by program. A condition on single steps reads only the steps of programs whose totals
//! do not decide it.

mod catalogue;
mod parse;
mod query;
mod search;

pub use catalogue::{CatalogueItem, SearchCatalogue, SearchEntity};
pub use query::{
    NumberRange, QueryAmount, QueryCondition, QueryTerm, SearchList, SearchQuery, SearchQueryError,
    TextPattern,
};
pub use search::{SearchResults, SearchTotals, find, values};
