//! Experiments: changes of a spec are enumerated, simulated and compared.
//!
//! A [`trial::TrialRunner`] simulates changed specs in child processes. The outcome of a change is
//! a [`point::Point`], a [`condition::Condition`] selects points, an [`objective::TuneObjective`]
//! ranks them, and a [`results_file::ResultsFile`] stores them. [`strategies`] choose the changes:
//! a grid of values, a guided search, the proposals of insights, the keys in which two specs
//! differ. Commands print the [`answers`], and the window reads them; both use these types.

pub mod answers;
pub mod budget;
pub mod condition;
pub mod effective_keys;
mod error;
pub mod objective;
pub mod point;
pub mod program_error;
pub mod results_file;
pub mod shard;
pub mod spec_copy;
pub mod spec_difference;
pub mod strategies;
pub mod trial;
pub mod trial_store;
pub mod varied_key;

pub use error::ExperimentError;

/// A function that receives the progress of an experiment, 0 to 1, from several threads.
pub type ExperimentProgress<'a> = dyn Fn(f64) + Sync + 'a;
