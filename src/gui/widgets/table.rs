//! Tables: sortable columns, a filter, a row of totals.
