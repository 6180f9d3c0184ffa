//! Answers that others work out of a report, kept with it.

use super::{Report, ReportError, lock};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Answers by their types.
#[derive(Default)]
pub(super) struct DerivedAnswers(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl DerivedAnswers {
    /// Forgets all, as what they were made of is not the same any more.
    pub(super) fn invalidate(&self) {
        lock(&self.0).clear();
    }
}

impl Report {
    /// The one answer of this type, which is made when it is first asked for.
    ///
    /// # Errors
    /// Those of `make`; the answer is then made again when it is asked for again.
    pub fn derived<T: Any + Send + Sync>(
        &self,
        make: impl FnOnce(&Self) -> Result<T, ReportError>,
    ) -> Result<Arc<T>, ReportError> {
        let known = lock(&self.derived.0).get(&TypeId::of::<T>()).cloned();
        if let Some(Ok(known)) = known.map(|known| known.downcast()) {
            return Ok(known);
        }
        // Not under the lock: a thread of a pool that waits in `make` may be given work that asks
        // for the same.
        let made = Arc::new(make(self)?);
        lock(&self.derived.0).insert(TypeId::of::<T>(), made.clone());
        Ok(made)
    }
}
