//! Laws of reading profiles of other tools.
