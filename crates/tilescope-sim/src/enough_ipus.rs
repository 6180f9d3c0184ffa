//! How many IPUs hold a model that does not fit on its own.
//!
//! IPUs are doubled, as systems hand them out, until the model fits with its blocks dealt evenly over
//! them. Each number takes one program. Balanced stages, which are advised where stages are open, are
//! the fastest of several splits that fit, the even one among them: they fit where that does.

use crate::simulation::compile;
use crate::specification::{AutoStage, ExecutionStrategy, Spec, SpecSource};

/// Most IPUs of a replica that are tried.
const MOST_IPUS: u32 = 64;

/// IPUs that hold a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnoughIpus {
    /// IPUs of a replica.
    pub ipus: u32,
    /// Keys with their values, as `--set` takes them.
    pub changes: Vec<String>,
}

impl EnoughIpus {
    /// The advice, with arguments to copy.
    pub fn words(&self) -> String {
        let mut words = format!("It fits on {} IPUs:", self.ipus);
        for change in &self.changes {
            // Shells look for files of such a name.
            let quote = if change.contains('[') { "'" } else { "" };
            words += &format!(" --set {quote}{change}{quote}");
        }
        words
    }
}

/// The number of IPUs on which a model fits that does not fit as `spec` has it, with as many
/// micro-batches as they need; nothing where its blocks cannot be split so far, or the system has no
/// more.
pub fn enough_ipus(source: &SpecSource, spec: &Spec) -> Option<EnoughIpus> {
    if spec.options.execution == ExecutionStrategy::Phased {
        return None;
    }
    let mut ipus = spec.target.ipus.next_power_of_two();
    while ipus < MOST_IPUS {
        ipus *= 2;
        let found = EnoughIpus { ipus, changes: changes_for_ipus(spec, ipus) };
        let even = even_split(source, &found)?;
        if even.fits {
            return Some(found);
        }
        // More IPUs have nothing to do.
        if even.stages < ipus as usize {
            return None;
        }
    }
    None
}

/// Blocks that are dealt evenly over IPUs.
struct EvenSplit {
    stages: usize,
    fits: bool,
}

/// Compiles a spec on other IPUs; nothing where it is refused.
fn even_split(source: &SpecSource, on: &EnoughIpus) -> Option<EvenSplit> {
    let mut source = source.clone();
    source.overrides.extend(on.changes.iter().cloned());
    source.overrides.push("options.auto_stage=same_as_ipu".to_owned());
    let compiled = compile(&Spec::build(&source).ok()?).ok()?;
    let fits = compiled.tiles_out_of_memory() == 0;
    Some(EvenSplit { stages: compiled.placement.stages.len(), fits })
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
    // Without accumulation the pipeline runs on over all iterations, and a call fills it.
    let (accumulation, iterations) = (options.gradient_accumulation, options.device_iterations);
    let fewest = u64::from(if spec.model.training { 2 * ipus - 1 } else { ipus });
    if accumulation >= fewest || (accumulation == 1 && iterations >= fewest) {
        return changes;
    }
    let key = if spec.model.training { "gradient_accumulation" } else { "device_iterations" };
    changes.push(format!("options.{key}={fewest}"));
    changes
}
