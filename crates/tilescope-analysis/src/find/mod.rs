//! Finding things in a whole report: by name, and by a small typed filter.
//!
//! Names are few, steps are many: a query is matched against each name once. Figures of steps are
//! totals by program; a condition on single steps looks at those whose totals do not decide it.

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
