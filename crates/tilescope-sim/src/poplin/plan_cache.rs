//! Cache of plans. A model repeats its layers, so most lookups hit.

use super::params::{ConvParams, PlanError};
use super::plan_selection::{plan, plan_convolution, plan_fully_connected};
use super::planner::{ConvOptions, ConvPlan, ConvTrainingPlans};
use crate::targets::{Chip, IpuTarget};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use tilescope_report::units::Hertz;

/// Maximum number of cached plans of a kind, a few kilobytes each. A process that tries
/// configurations for weeks clears the cache when it is full.
const MAX_ENTRIES: usize = 1 << 13;

/// Everything that a plan depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PlanCacheKey {
    kind: PlanCacheEntryKind,
    params: ConvParams,
    options: ConvOptions,
    machine: IpuTarget,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PlanCacheEntryKind {
    Single,
    Convolution,
    FullyConnected,
}

type SharedPlanResult<T> = Result<Arc<T>, PlanError>;

/// Cache that threads can share. If two threads miss at the same time, both plan and get the same
/// result.
#[derive(Default)]
pub struct PlanCache {
    single: Mutex<HashMap<PlanCacheKey, SharedPlanResult<ConvPlan>>>,
    training: Mutex<HashMap<PlanCacheKey, SharedPlanResult<ConvTrainingPlans>>>,
}

impl PlanCache {
    /// Returns the cache of this process. A plan depends only on its key, so programs that are
    /// compiled one after another, as when configurations are compared, share plans.
    pub fn of_process() -> &'static Self {
        static PLANS: LazyLock<PlanCache> = LazyLock::new(PlanCache::default);
        &PLANS
    }

    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the result of [`plan`], computed once per key.
    pub fn plan(
        &self,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> SharedPlanResult<ConvPlan> {
        let key = PlanCacheKey::new(PlanCacheEntryKind::Single, machine, params, options);
        cached_or_insert(&self.single, key, || plan(machine, params, options))
    }

    /// Returns the result of [`plan_convolution`], computed once per key.
    pub fn convolution(
        &self,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> SharedPlanResult<ConvTrainingPlans> {
        let key = PlanCacheKey::new(PlanCacheEntryKind::Convolution, machine, params, options);
        cached_or_insert(&self.training, key, || plan_convolution(machine, params, options))
    }

    /// Returns the result of [`plan_fully_connected`], computed once per key.
    pub fn fully_connected(
        &self,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> SharedPlanResult<ConvTrainingPlans> {
        let key = PlanCacheKey::new(PlanCacheEntryKind::FullyConnected, machine, params, options);
        cached_or_insert(&self.training, key, || plan_fully_connected(machine, params, options))
    }
}

impl PlanCacheKey {
    fn new(
        kind: PlanCacheEntryKind,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> Self {
        // Cycles do not depend on the clock: programs on the same chip at another clock have the
        // same plans.
        let chip = Chip { clock: Hertz(0), ..machine.chip };
        let machine = IpuTarget { chip, ..*machine };
        Self { kind, params: params.clone(), options: *options, machine }
    }
}

/// Locks the entries. They are inserted whole, so a thread that panicked cannot have left a partial
/// plan.
fn lock<T>(entries: &Mutex<T>) -> MutexGuard<'_, T> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the entry of `key`. If there is none, `make` creates it outside of the lock.
fn cached_or_insert<T>(
    entries: &Mutex<HashMap<PlanCacheKey, SharedPlanResult<T>>>,
    key: PlanCacheKey,
    make: impl FnOnce() -> Result<T, PlanError>,
) -> SharedPlanResult<T> {
    if let Some(made) = lock(entries).get(&key) {
        return made.clone();
    }
    // Plan without the lock: a search takes up to seconds, and other shapes must not wait.
    let made = make().map(Arc::new);
    let mut entries = lock(entries);
    if entries.len() >= MAX_ENTRIES {
        entries.clear();
    }
    entries.entry(key).or_insert(made).clone()
}
