//! Rules of one form: some programs take a share of the run, and keys of the spec remove all or a
//! part of it. Each rule is a row; [`TimeShareRule::find`] evaluates them all.

use super::insight_facts::{activity, copies};
use super::run_chains::ChainPart;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::{collective, is_of_convolution, is_of_recomputation, is_to_host};
use crate::trace::RunShare;
use serde_json::Value;
use tilescope_report::units::{Bytes, percent};
use tilescope_report::{
    ArithmeticType, ModelOperation, ProgramKind, ProgramNode, StepActivity, TrainingPass,
};

/// A rule about programs that take a share of the run.
struct TimeShareRule {
    /// The share of the time of these programs that the change removes; `None` if the spec or the
    /// machine leaves nothing to change.
    less: fn(&InsightFacts) -> Option<f64>,
    /// The programs that take the share.
    programs: fn(&InsightFacts, &ProgramNode) -> bool,
    gain: SharedGain,
    /// The minimum gain that justifies the change.
    least: f64,
    /// True if these programs are outside a typical iteration, as those of weight updates.
    anywhere: bool,
    /// `{ipu}` is the IPU with the longest time of these programs, `{share}` their share of the run
    /// there.
    sentence: &'static str,
    /// `{less}` is the removed share.
    advice: &'static str,
    formula: &'static str,
    /// Keys of the spec with their new values, in the form of `--set`.
    changes: &'static [(&'static str, &'static str)],
    cost: &'static str,
}

/// The upper bound of the gain, as a share of the run.
enum SharedGain {
    /// All steps of the programs become shorter.
    Steps,
    /// The steps have less work, but their starts remain.
    Work,
    /// A separate formula.
    By(fn(&InsightFacts) -> Option<RunShare>),
}

impl TimeShareRule {
    /// The finding of `rule`, if there is one.
    fn find(self, rule: &InsightRule, facts: &InsightFacts) -> Vec<InsightFinding> {
        self.finding(rule, facts).into_iter().collect()
    }

    fn finding(self, rule: &InsightRule, facts: &InsightFacts) -> Option<InsightFinding> {
        let less = (self.less)(facts)?;
        let programs = |program: &ProgramNode| (self.programs)(facts, program);
        let gain = match self.gain {
            SharedGain::Steps => facts.gain_of(less, programs),
            SharedGain::Work => facts.gain_of_work(less, programs),
            SharedGain::By(gain) => gain(facts),
        };
        let mut saved = SavedTime::of(facts, gain, self.least, programs)?;
        if self.anywhere {
            saved = saved.anywhere();
        }
        let sentence = self.sentence.replace("{ipu}", &saved.ipu.to_string());
        let words = FindingWords {
            sentence: sentence.replace("{share}", &saved.share.to_string()),
            advice: self.advice.replace("{less}", &percent(less)),
            formula: self.formula,
        };
        let value =
            |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|_| text.into()) };
        let changes = self.changes.iter().map(|(key, to)| (*key, value(to)));
        Some(saved.finding(rule, words, facts.proposal(changes, self.cost)))
    }
}

/// Host copies that could overlap with compute.
pub(super) const OVERLAP_IO: InsightRule = InsightRule {
    name: "overlap_io",
    description: "copies from and to the host that compute waits for",
    keys: &["options.num_io_tiles", "options.overlap_io"],
    find: |facts| {
        TimeShareRule {
            less: share_beside_compute,
            programs: |_, program| copies(program),
            gain: SharedGain::By(gain_of_overlap),
            least: LEAST_OVERLAP,
            anywhere: false,
            sentence: "IPU {ipu} copies data from and to the host for {share} of the run while its \
            compute tiles are idle.",
            advice: "I/O tiles with overlap copy the next micro-batch while this one is computed.",
            formula: "cycles of the run without host copies and the syncs before them: the longer \
                      of the remaining critical path and the IPU that works longest",
            changes: &[("options.num_io_tiles", "32"), ("options.overlap_io", "loops")],
            cost: "32 tiles per IPU are reserved for I/O and buffer one micro-batch",
        }
        .find(&OVERLAP_IO, facts)
    },
};

/// Samples that are copied from the host in a wider type than they need.
pub(super) const INPUT_TYPE: InsightRule = InsightRule {
    name: "input_type",
    description: "samples that arrive from the host in a wide type",
    keys: &["options.input_type"],
    find: |facts| {
        let is_cast = is_cast_to_half(facts);
        TimeShareRule {
            less: if is_cast { bytes_saved_by_half } else { bytes_saved_by_uint8 },
            programs: |_, program| {
                program.kind == ProgramKind::StreamCopyMid
                    && copies(program)
                    && !is_to_host(&program.name)
            },
            gain: SharedGain::Steps,
            least: 0.02,
            anywhere: false,
            sentence: "IPU {ipu} receives samples over the host link for {share} of the run.",
            advice: if is_cast {
                "The IPU casts them to float16. If the host sends them so, that is {less} fewer \
                 bytes, and no precision is lost."
            } else {
                "The host can send 8-bit images as bytes, and the IPU casts them: {less} fewer \
                 bytes."
            },
            formula: "transfers of samples x the share of their bytes that is saved: the longer \
                      of the remaining critical path and the IPU that works longest",
            changes: if is_cast {
                &[("options.input_type", "float16")]
            } else {
                &[("options.input_type", "uint8")]
            },
            cost: if is_cast {
                "The host casts the samples"
            } else {
                "Sample elements must fit in a byte; the IPU casts them"
            },
        }
        .find(&INPUT_TYPE, facts)
    },
};

/// Results that are copied to the host although they are not all needed.
pub(super) const OUTPUT_MODE: InsightRule = InsightRule {
    name: "output_mode",
    description: "results of every micro-batch of a training run that go to the host",
    keys: &["options.output_mode"],
    find: |facts| {
        TimeShareRule {
            less: |facts| {
                let all = facts.spec("options.output_mode") == Some("all");
                (all && facts.spec("model.training") == Some("true")).then_some(1.0)
            },
            programs: |_, program| returns(program),
            gain: SharedGain::By(gain_of_outputs),
            least: 0.01,
            anywhere: false,
            sentence: "IPU {ipu} spends {share} of the run returning the results of every \
                       micro-batch.",
            advice: "Training rarely needs more than the last results of a call.",
            formula: "cycles of the run without copies to the host and their share of external \
                      syncs: the longer of the remaining critical path and the IPU that works longest",
            changes: &[("options.output_mode", "final")],
            cost: "Each call returns the results of its last micro-batch only",
        }
        .find(&OUTPUT_MODE, facts)
    },
};

/// Syncs that stop IPUs without a part in them.
pub(super) const SYNC_PATTERN: InsightRule = InsightRule {
    name: "sync_pattern",
    description: "syncs for the host or streaming memory that stop all IPUs",
    keys: &["options.sync_pattern"],
    find: |facts| {
        TimeShareRule {
            less: |facts| {
                // In a sequential pipeline the other IPUs have no work at that time.
                let pipelined = facts.spec("options.execution") == Some("pipelined")
                    && facts.spec("options.pipeline_schedule") != Some("sequential");
                let full = pipelined && facts.spec("options.sync_pattern") == Some("full");
                (full && facts.target.ipus_per_replica >= 2).then_some(1.0)
            },
            programs: |_, program| program.is_external_sync(),
            gain: SharedGain::By(|facts| facts.chains.as_ref()?.gain_without_waits()),
            least: 0.02,
            anywhere: false,
            sentence: "IPU {ipu} spends {share} of the run in external syncs. Each copy \
                       between one IPU and the host or streaming memory stops all IPUs.",
            advice: "With sync_pattern = \"single_pipeline\" a copy stops its own IPU only.",
            formula: "cycles of the run without any waiting: those of the IPU that works longest",
            changes: &[("options.sync_pattern", "single_pipeline")],
            cost: "None if each IPU copies its own data",
        }
        .find(&SYNC_PATTERN, facts)
    },
};

/// Collectives of many small tensors.
pub(super) const COLLECTIVES: InsightRule = InsightRule {
    name: "collectives",
    description: "collectives between replicas, one for each tensor",
    keys: &["options.merge_collectives"],
    find: |facts| {
        TimeShareRule {
            less: |facts| (facts.spec("options.merge_collectives") == Some("false")).then_some(1.0),
            programs: |_, program| collective(&program.name).is_some(),
            gain: SharedGain::Steps,
            least: 0.02,
            anywhere: true,
            sentence: "IPU {ipu} exchanges gradients or weights with other replicas for {share} \
                       of the run, one tensor at a time.",
            advice: "Merged collectives send one buffer per element type.",
            formula: "cycles of the run without exchanges between replicas: the longer of the \
                      remaining critical path and the IPU that works longest",
            changes: &[("options.merge_collectives", "true")],
            cost: "One buffer of the size of the gradients",
        }
        .find(&COLLECTIVES, facts)
    },
};

/// Forward passes that are repeated although memory would suffice to store their results.
pub(super) const RECOMPUTED_PASSES: InsightRule = InsightRule {
    name: "recomputed_passes",
    description: "forward passes that are recomputed in the backward pass",
    keys: &["options.recomputation"],
    find: |facts| {
        TimeShareRule {
            less: |facts| facts.spec("options.recomputation").map(|_| 1.0),
            programs: |_, program| is_of_recomputation(&program.name),
            gain: SharedGain::Steps,
            least: 0.02,
            anywhere: true,
            sentence: "IPU {ipu} spends {share} of the run recomputing forward passes.",
            advice: "Without recomputation, activations stay in memory if they fit.",
            formula: "cycles of the run without recomputed steps: the longer of the remaining \
                      critical path and the IPU that works longest",
            changes: &[("options.recomputation", "none")],
            cost: "Memory for all activations of a stage",
        }
        .find(&RECOMPUTED_PASSES, facts)
    },
};

/// Single precision in place of half precision.
pub(super) const PRECISION: InsightRule = InsightRule {
    name: "precision",
    description: "compute, exchange and copies in single precision",
    keys: &["model.precision"],
    find: |facts| {
        TimeShareRule {
            less: |facts| facts.is_single_precision().then_some(0.5),
            programs: depends_on_width,
            gain: SharedGain::Work,
            least: LEAST_FOR_DIGITS,
            anywhere: false,
            sentence: "IPU {ipu} spends {share} of the run on float32 data.",
            advice: "Mixed precision halves the width of everything except the weights.",
            formula: "compute sets, exchanges and transfers without their starts / 2: the longer \
                      of the remaining critical path and the IPU that works longest",
            changes: &[("model.precision", "mixed")],
            cost: "Precision: float16 has an 11-bit significand; gradients may need loss scaling",
        }
        .find(&PRECISION, facts)
    },
};

/// Partial sums of matmuls and convolutions that are wider than their operands.
pub(super) const PARTIALS: InsightRule = InsightRule {
    name: "partials",
    description: "partial sums of matmuls and convolutions in single precision",
    keys: &["options.partials_type"],
    find: |facts| {
        TimeShareRule {
            less: |facts| {
                // Operands in single precision have partial sums in single precision.
                let wide = facts.spec("options.partials_type") == Some("float32");
                (wide && !facts.is_single_precision()).then_some(0.5)
            },
            programs: |_, program| {
                use ProgramKind::{DoExchange, OnTileExecute};
                let works = matches!(program.kind, OnTileExecute | DoExchange);
                works && is_of_convolution(&program.name)
            },
            gain: SharedGain::Work,
            least: LEAST_FOR_DIGITS,
            anywhere: false,
            sentence: "IPU {ipu} spends {share} of the run on matmuls and convolutions with \
                       float32 partial sums.",
            advice: "AMP units accumulate float16 partial sums twice as fast, and the reduction \
                     is half the size.",
            formula: "steps of matmuls and convolutions without their starts / 2: the longer of \
                      the remaining critical path and the IPU that works longest",
            changes: &[("options.partials_type", "float16")],
            cost: "Precision of long sums",
        }
        .find(&PARTIALS, facts)
    },
};

/// Time spent on remote buffers.
pub(super) const REMOTE_BUFFERS: InsightRule = InsightRule {
    name: "remote_buffers",
    description: "time spent on remote buffers",
    keys: &[
        "options.location.optimizer_state.on_chip",
        "options.location.accumulators.on_chip",
        "options.location.activations.on_chip",
        "options.location.weights.on_chip",
    ],
    find: |facts| {
        TimeShareRule {
            less: |_| Some(1.0),
            programs: |_, program| is_remote(program),
            gain: SharedGain::By(gain_of_remote_buffers),
            least: 0.02,
            anywhere: true,
            sentence: "IPU {ipu} reads and writes remote buffers for {share} of the run.",
            advice: "Keep tensors that fit on the IPU, offload only the optimiser state, or \
            overlap the copies with I/O tiles.",
            formula: "cycles of the run without remote buffer copies and external syncs: those of \
                      the IPU that works longest",
            changes: &[
                ("options.location.optimizer_state.on_chip", "true"),
                ("options.location.accumulators.on_chip", "true"),
                ("options.location.activations.on_chip", "true"),
                ("options.location.weights.on_chip", "true"),
            ],
            cost: "Tile memory for the data that is now in streaming memory",
        }
        .find(&REMOTE_BUFFERS, facts)
    },
};

/// Smaller gains do not justify a loss of precision.
const LEAST_FOR_DIGITS: f64 = 0.05;

/// Smaller shares do not justify I/O tiles.
const LEAST_OVERLAP: f64 = 0.02;

/// The share of micro-batches whose copies can overlap with compute, on one IPU or in a grouped
/// pipeline: the first one has no compute to overlap with.
fn share_beside_compute(facts: &InsightFacts) -> Option<f64> {
    let grouped = facts.spec("options.pipeline_schedule") == Some("grouped");
    let pipelined = facts.spec("options.execution") == Some("pipelined");
    let can_overlap = facts.target.ipus_per_replica == 1 || (grouped && pipelined);
    let micro_batches = facts.batching.map_or(1, |batching| {
        batching.gradient_accumulation.saturating_mul(batching.device_iterations)
    });
    let has_io_tiles = facts.target.io_tiles_per_ipu > 0;
    if !can_overlap || micro_batches < 2 || has_io_tiles {
        return None;
    }
    Some((micro_batches - 1) as f64 / micro_batches as f64)
}

fn gain_of_overlap(facts: &InsightFacts) -> Option<RunShare> {
    let share = share_beside_compute(facts)?;
    facts.busiest_share(copies).filter(|(share, _)| share.value() >= LEAST_OVERLAP)?;
    let chains = facts.chains.as_ref()?;
    // The change does not help if the host is late.
    Some(chains.gain(&facts.programs, |part| match part.program {
        program if program.is_external_sync() => share * part.cycles.as_f64(),
        program if copies(program) => share * (part.cycles - chains.waiting(part)).as_f64(),
        _ => 0.0,
    }))
}

/// True for a batch of images: the size of the second dimension, as in ONNX and PyTorch, or of the
/// last one, as in TensorFlow, is one, three or four channels.
fn is_picture(shape: &[u64]) -> bool {
    let [_, second, third, last] = shape[..] else { return false };
    let is_of = |colours, sides: [u64; 2]| {
        matches!(colours, 1 | 3 | 4) && sides.iter().all(|side| *side > colours)
    };
    is_of(second, [third, last]) || is_of(last, [second, third])
}

/// True for a model in half precision whose samples arrive as float32. Half as many bytes lose no
/// digit that the model keeps, which comes before a narrower type.
fn is_cast_to_half(facts: &InsightFacts) -> bool {
    facts.spec("options.input_type") == Some("float32")
        && matches!(facts.spec("model.precision"), Some("float16" | "mixed"))
}

/// The share of the bytes of samples that is saved if float32 samples are copied as float16.
fn bytes_saved_by_half(facts: &InsightFacts) -> Option<f64> {
    let wide = facts.host_inputs.iter().filter(|input| input.element_type == "float32");
    share_of_samples(facts, wide.map(|input| input.bytes.as_f64() / 2.0).sum())
}

/// The share of the bytes of samples that is saved if images are copied as uint8: 8 bits for each
/// channel of a pixel. `None` if another input would lose its fractions.
fn bytes_saved_by_uint8(facts: &InsightFacts) -> Option<f64> {
    let mut saved = 0.0;
    for input in &facts.host_inputs {
        let width = match &*input.element_type {
            "float32" => 4.0,
            "float16" => 2.0,
            _ => continue,
        };
        if !is_picture(&input.shape) {
            return None;
        }
        saved += input.bytes.as_f64() * (1.0 - 1.0 / width);
    }
    share_of_samples(facts, saved)
}

/// The share of saved bytes in the bytes of all samples; `None` if nothing is saved.
fn share_of_samples(facts: &InsightFacts, saved: f64) -> Option<f64> {
    let all: Bytes = facts.host_inputs.iter().map(|input| input.bytes).sum();
    (saved > 0.0).then(|| saved / all.as_f64())
}

fn returns(program: &ProgramNode) -> bool {
    copies(program) && is_to_host(&program.name)
}

fn gain_of_outputs(facts: &InsightFacts) -> Option<RunShare> {
    // Each of these copies has its own sync, like every copy with the host.
    let syncs = facts.count_of(returns) as f64 / facts.count_of(copies).max(1) as f64;
    // I/O tiles that return results delay those that receive samples at the syncs of both: without
    // such a sync, neither has to be on the critical path.
    let has_io_tiles = facts.target.io_tiles_per_ipu > 0;
    facts.gain(|part| match part.program {
        program if returns(program) => part.cycles.as_f64(),
        program if has_io_tiles && copies(program) => part.cycles.as_f64(),
        program if program.is_external_sync() => syncs * part.cycles.as_f64(),
        _ => 0.0,
    })
}

/// True if the cycles of a program depend on the width of elements. The width of weights does not
/// change, so their updates do not depend on it.
fn depends_on_width(facts: &InsightFacts, program: &ProgramNode) -> bool {
    let operation = program.operation.and_then(|id| facts.operations.get(id.index()));
    let stays = |of: &ModelOperation| {
        of.pass == TrainingPass::Update
            || of.element_type.is_some_and(|kind| kind < ArithmeticType::Float)
    };
    if operation.is_some_and(stays) {
        return false;
    }
    use ProgramKind::{DoExchange, GlobalExchange, OnTileExecute, StreamCopyMid};
    match program.kind {
        OnTileExecute | DoExchange | GlobalExchange => true,
        StreamCopyMid => copies(program),
        _ => false,
    }
}

fn is_remote(program: &ProgramNode) -> bool {
    activity(program) == StepActivity::RemoteBuffer
}

fn gain_of_remote_buffers(facts: &InsightFacts) -> Option<RunShare> {
    // Each of these copies has a sync that may stop all IPUs.
    let removed = |part: ChainPart<'_>| {
        let program = part.program;
        if is_remote(program) || program.is_external_sync() { part.cycles.as_f64() } else { 0.0 }
    };
    match facts.target.ipus_per_replica {
        0 | 1 => facts.gain(removed),
        _ => facts.chains.as_ref()?.gain_without_syncs(&facts.programs, removed),
    }
}

#[cfg(test)]
mod tests {
    use super::is_picture;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn images_have_channels_second_or_last(
            batch in 1u64..100,
            sides in [5u64..600, 5u64..600],
            channels in 1u64..5,
        ) {
            let [height, width] = sides;
            let has_colours = channels != 2;
            prop_assert_eq!(is_picture(&[batch, channels, height, width]), has_colours);
            prop_assert_eq!(is_picture(&[batch, height, width, channels]), has_colours);
            prop_assert!(!is_picture(&[channels, height, width]));
            prop_assert!(!is_picture(&[batch, 1, 1, width]));
        }
    }
}
