//! Answers that other crates derive from a report, cached with it.

use super::{Report, ReportError, lock};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Answers by their types.
#[derive(Default)]
pub(super) struct DerivedAnswers(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl DerivedAnswers {
    /// Forgets all answers, because the data behind them have changed.
    pub(super) fn invalidate(&self) {
        lock(&self.0).clear();
    }
}

impl Report {
    /// The answer of this type, computed on first use.
    ///
    /// # Errors
    /// Those of `make`. The next call tries again.
    pub fn derived<T: Any + Send + Sync>(
        &self,
        make: impl FnOnce(&Self) -> Result<T, ReportError>,
    ) -> Result<Arc<T>, ReportError> {
        let known = lock(&self.derived.0).get(&TypeId::of::<T>()).cloned();
        if let Some(Ok(known)) = known.map(|known| known.downcast()) {
            return Ok(known);
        }
        // Not under the lock: a thread of a pool that waits in `make` may pick up work that needs
        // the same answer.
        let made = Arc::new(make(self)?);
        lock(&self.derived.0).insert(TypeId::of::<T>(), made.clone());
        Ok(made)
    }
}
