//! The number of IPUs that hold a model that does not fit on the given number.
//!
//! The search doubles the IPUs, as systems provide them, until the model fits with its blocks
//! spread evenly over them. Each number takes one compilation. Balanced stages, which are the
//! advice if stages are open, are the fastest of several splits that fit. The even split is among
//! them, so they fit wherever it does.

use crate::simulation::compile;
use crate::specification::{AutoStage, ExecutionStrategy, Spec, SpecSource};

/// The largest number of IPUs of a replica that is tried.
const MOST_IPUS: u32 = 64;

/// The last number of IPUs that was tried for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreIpus {
    /// IPUs of a replica.
    pub ipus: u32,
    /// True if they hold the model.
    pub fits: bool,
    /// Number of stages with work.
    pub stages: usize,
    /// Keys with their values, in the form of `--set`.
    pub changes: Vec<String>,
}

impl MoreIpus {
    /// The advice, with arguments to copy.
    pub fn words(&self) -> String {
        if !self.fits {
            let problem = match self.stages {
                1 => "It is one block, which cannot be split over IPUs".to_owned(),
                _ => format!("{} IPUs do not hold it, with its blocks spread evenly", self.ipus),
            };
            return format!("{problem}: `tilescope tune` looks for other changes");
        }
        let mut words = format!("It fits on {} IPUs:", self.ipus);
        for change in &self.changes {
            // Shells expand names with brackets as patterns.
            let quote = if change.contains('[') { "'" } else { "" };
            words += &format!(" --set {quote}{change}{quote}");
        }
        words
    }
}

/// Returns the number of IPUs that hold a model that does not fit with `spec`, and the number of
/// micro-batches that they need; or the largest number with work for each IPU, if it does not hold
/// the model. Returns `None` if no larger number can be tried.
pub fn enough_ipus(source: &SpecSource, spec: &Spec) -> Option<MoreIpus> {
    if spec.options.execution == ExecutionStrategy::Phased {
        return None;
    }
    let mut ipus = spec.target.ipus.next_power_of_two();
    let mut last = None;
    while ipus < MOST_IPUS {
        ipus *= 2;
        let Some(tried) = even_split(source, ipus, changes_for_ipus(spec, ipus)) else { break };
        // Additional IPUs would have nothing to do.
        let is_last = tried.fits || tried.stages < ipus as usize;
        last = Some(tried);
        if is_last {
            break;
        }
    }
    last
}

/// Compiles a spec for another number of IPUs. Returns `None` if the spec is rejected.
fn even_split(source: &SpecSource, ipus: u32, changes: Vec<String>) -> Option<MoreIpus> {
    let mut source = source.clone();
    source.overrides.extend(changes.iter().cloned());
    source.overrides.push("options.auto_stage=same_as_ipu".to_owned());
    let compiled = compile(&Spec::build(&source).ok()?).ok()?;
    let fits = compiled.tiles_out_of_memory() == 0;
    Some(MoreIpus { ipus, fits, stages: compiled.placement.stages.len(), changes })
}

/// The changes of a spec with which a replica runs on a given number of IPUs, as `--set` takes them.
pub fn changes_for_ipus(spec: &Spec, ipus: u32) -> Vec<String> {
    let options = &spec.options;
    let mut changes = vec![format!("target.ipus={ipus}")];
    if !options.stages.is_empty() {
        changes.push("options.stages=[]".to_owned());
    }
    if options.auto_stage == AutoStage::AutoIncrement {
        changes.push("options.auto_stage=balanced".to_owned());
    }
    if options.execution != ExecutionStrategy::Pipelined {
        return changes;
    }
    // Without accumulation the pipeline continues over all iterations, and a call fills it.
    let accumulation = options.gradient_accumulation;
    let iterations = options.device_iterations;
    let fewest = u64::from(if spec.model.training { 2 * ipus - 1 } else { ipus });
    if accumulation >= fewest || (accumulation == 1 && iterations >= fewest) {
        return changes;
    }
    let key = if spec.model.training { "gradient_accumulation" } else { "device_iterations" };
    changes.push(format!("options.{key}={fewest}"));
    changes
}
