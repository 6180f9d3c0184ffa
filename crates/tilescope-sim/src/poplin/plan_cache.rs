//! Plans already made. A model repeats its layers, so most lookups hit.

use super::params::{ConvParams, PlanError};
use super::plan_selection::{plan, plan_convolution, plan_fully_connected};
use super::planner::{ConvOptions, ConvPlan, ConvTrainingPlans};
use crate::targets::{Chip, IpuTarget};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilescope_report::units::Hertz;

/// Most plans of a kind that are kept, a few kilobytes each: a window that tries one configuration
/// after another for weeks starts again.
const MAX_ENTRIES: usize = 1 << 13;

/// Everything a plan depends on.
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

/// A cache that threads can share. Two threads that miss at the same time both plan, and get the
/// same result.
#[derive(Default)]
pub struct PlanCache {
    single: Mutex<HashMap<PlanCacheKey, SharedPlanResult<ConvPlan>>>,
    training: Mutex<HashMap<PlanCacheKey, SharedPlanResult<ConvTrainingPlans>>>,
}

impl PlanCache {
    /// The cache of this process. A plan depends on nothing but its key, so that programs that are
    /// compiled one after another, as when configurations are compared, share theirs.
    pub fn of_process() -> &'static Self {
        static PLANS: LazyLock<PlanCache> = LazyLock::new(PlanCache::default);
        &PLANS
    }

    /// A cache that holds no plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`plan`], each problem solved once.
    pub fn plan(
        &self,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> SharedPlanResult<ConvPlan> {
        let key = PlanCacheKey::new(PlanCacheEntryKind::Single, machine, params, options);
        cached_or_insert(&self.single, key, || plan(machine, params, options))
    }

    /// [`plan_convolution`], each problem solved once.
    pub fn convolution(
        &self,
        machine: &IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> SharedPlanResult<ConvTrainingPlans> {
        let key = PlanCacheKey::new(PlanCacheEntryKind::Convolution, machine, params, options);
        cached_or_insert(&self.training, key, || plan_convolution(machine, params, options))
    }

    /// [`plan_fully_connected`], each problem solved once.
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
        // Cycles hang on no clock: programs on the same chip at another one have the same plans.
        let chip = Chip { clock: Hertz(0), ..machine.chip };
        let machine = IpuTarget { chip, ..*machine };
        Self { kind, params: params.clone(), options: *options, machine }
    }
}

/// The entry of `key`, made by `make` outside of the lock if there is none.
fn cached_or_insert<T>(
    entries: &Mutex<HashMap<PlanCacheKey, SharedPlanResult<T>>>,
    key: PlanCacheKey,
    make: impl FnOnce() -> Result<T, PlanError>,
) -> SharedPlanResult<T> {
    // Entries go in whole, so a thread that panicked cannot have left half a plan behind.
    let locked = || entries.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = locked().get(&key) {
        return made.clone();
    }
    // Planned without the lock: a search takes up to seconds, and other shapes must not wait.
    let made = make().map(Arc::new);
    let mut entries = locked();
    if entries.len() >= MAX_ENTRIES {
        entries.clear();
    }
    entries.entry(key).or_insert(made).clone()
}
