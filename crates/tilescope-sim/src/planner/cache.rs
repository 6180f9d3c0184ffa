//! Plans already made. A model repeats its layers, so most lookups hit.

use super::params::{ConvParams, PlanError};
use super::plan::{Machine, Plan, PlanOptions};
use super::{TrainingPlans, plan, plan_convolution, plan_fully_connected};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Everything a plan depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    params: ConvParams,
    options: PlanOptions,
    chip: String,
    tiles: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Single,
    Convolution,
    FullyConnected,
}

type Made<T> = Result<Arc<T>, PlanError>;

/// A cache that threads can share. Two threads that miss at the same time both plan, and get the
/// same result.
#[derive(Default)]
pub struct PlanCache {
    single: Mutex<HashMap<Key, Made<Plan>>>,
    training: Mutex<HashMap<Key, Made<TrainingPlans>>>,
}

impl PlanCache {
    /// A cache that holds no plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`plan`], each problem solved once.
    pub fn plan(
        &self,
        machine: &Machine,
        params: &ConvParams,
        options: &PlanOptions,
    ) -> Made<Plan> {
        let key = Key::new(Kind::Single, machine, params, options);
        remembered(&self.single, key, || plan(machine, params, options))
    }

    /// [`plan_convolution`], each problem solved once.
    pub fn convolution(
        &self,
        machine: &Machine,
        params: &ConvParams,
        options: &PlanOptions,
    ) -> Made<TrainingPlans> {
        let key = Key::new(Kind::Convolution, machine, params, options);
        remembered(&self.training, key, || plan_convolution(machine, params, options))
    }

    /// [`plan_fully_connected`], each problem solved once.
    pub fn fully_connected(
        &self,
        machine: &Machine,
        params: &ConvParams,
        options: &PlanOptions,
    ) -> Made<TrainingPlans> {
        let key = Key::new(Kind::FullyConnected, machine, params, options);
        remembered(&self.training, key, || plan_fully_connected(machine, params, options))
    }
}

impl Key {
    fn new(kind: Kind, machine: &Machine, params: &ConvParams, options: &PlanOptions) -> Self {
        Self {
            kind,
            params: params.clone(),
            options: *options,
            chip: format!("{:?}", machine.chip),
            tiles: machine.tiles,
        }
    }
}

/// The entry of `key`, made by `make` outside of the lock if there is none.
fn remembered<T>(
    entries: &Mutex<HashMap<Key, Made<T>>>,
    key: Key,
    make: impl FnOnce() -> Result<T, PlanError>,
) -> Made<T> {
    let locked = || entries.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = locked().get(&key) {
        return made.clone();
    }
    let made = make().map(Arc::new);
    locked().entry(key).or_insert(made).clone()
}
