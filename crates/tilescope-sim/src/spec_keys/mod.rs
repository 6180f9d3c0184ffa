//! The declaration of spec keys. Modules that `specification` depends on declare their keys where
//! they are used: [`ModelSpec`](crate::model::ModelSpec) and
//! [`PoplibsOptions`](crate::poplin::planner::PoplibsOptions).

mod declare;
mod key;
mod proportion;
mod value;

pub(crate) use declare::{
    ChosenValues, SpecField, SpecTable, TablePlace, inner_prefix, spec_table, spec_words,
};
pub(crate) use key::{COUNT, LARGEST_SIZE, Renamed, last_part};
pub use key::{
    Framework, KeyControl, KeyNotes, KnownName, SpecKey, SpecKeyType, WrongSpecValueError,
    keys_called,
};
pub use proportion::Proportion;
pub(crate) use value::SpecValue;
