//! Consecutive stages on one IPU merged into one stage, as in PopART.
//!
//! PopART visits the stages in order and gives each stage on the virtual graph of the previous one
//! the number of that one (`mergeConsecutivePipelineStages`, popart
//! willow/src/transforms/pipeline.cpp). Names and sizes do not matter, and stages on one IPU with
//! another between them stay separate. PopTorch relies on this: `AutoStage.AutoIncrement` makes a
//! stage of each block (poptorch python/options.py). The backward pass needs no rule of its own:
//! PopART numbers its stages back from the last, which does both passes, so they are merged like
//! the forward ones.
//!
//! All explicit stages, from a spec, a script or a file, pass through this merge. Stages that are
//! assigned to IPUs automatically have one IPU each.

use crate::specification::{ExecutionStrategy, PipelineSchedule, Spec, SpecError, StageSpec};
use tilescope_report::units::IpuId;

/// Returns the stages that remain of the explicit ones.
///
/// # Errors
/// Returns an error for stages on IPUs that do not exist, or if the schedule requires an IPU for
/// each stage.
pub(crate) fn merged_stages(
    spec: &Spec,
    written: Vec<StageSpec>,
) -> Result<Vec<StageSpec>, SpecError> {
    check_ipus(spec, &written)?;
    if spec.options.merges_stages() { Ok(merge(written)) } else { Ok(written) }
}

/// The note for the case that fewer stages remain than were written.
pub(crate) fn merge_note(written: usize, left: usize) -> Option<String> {
    if left >= written {
        return None;
    }
    Some(format!(
        "{written} stages were merged into {left}: like PopART, the simulator merges consecutive \
         stages on one IPU"
    ))
}

/// Merges the blocks of consecutive stages on one IPU.
fn merge(stages: Vec<StageSpec>) -> Vec<StageSpec> {
    let mut merged: Vec<StageSpec> = Vec::new();
    for stage in stages {
        match merged.last_mut() {
            Some(before) if before.ipu == stage.ipu => before.blocks.extend(stage.blocks),
            _ => merged.push(stage),
        }
    }
    merged
}

fn check_ipus(spec: &Spec, stages: &[StageSpec]) -> Result<(), SpecError> {
    let ipus = spec.target.ipus;
    for (position, stage) in stages.iter().enumerate() {
        if stage.ipu >= IpuId(ipus) {
            let problem =
                format!("stage {position} is on IPU {}, but target.ipus is {ipus}", stage.ipu);
            return Err(spec.refuse("options.stages", problem));
        }
        let shared = stages[..position].iter().any(|earlier| earlier.ipu == stage.ipu);
        let interleaved = spec.options.pipeline_schedule == PipelineSchedule::Interleaved;
        if shared && interleaved && spec.options.execution == ExecutionStrategy::Pipelined {
            let problem = format!(
                "two stages are on IPU {}; the interleaved schedule allows one stage per IPU",
                stage.ipu
            );
            return Err(spec.refuse("options.stages", problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Makes a stage on each IPU of a list, with the given number of blocks.
    fn stages(of: &[(u32, usize)]) -> Vec<StageSpec> {
        let mut names = (0..).map(|number| format!("block{number}"));
        let stage = |(ipu, blocks): &(u32, usize)| StageSpec {
            blocks: names.by_ref().take(*blocks).collect(),
            ipu: IpuId(*ipu),
        };
        of.iter().map(stage).collect()
    }

    /// Each block with its IPU, in order.
    fn places(stages: &[StageSpec]) -> Vec<(String, IpuId)> {
        let of_stage = |stage: &StageSpec| {
            let ipu = stage.ipu;
            stage.blocks.iter().map(move |block| (block.clone(), ipu)).collect::<Vec<_>>()
        };
        stages.iter().flat_map(of_stage).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn no_neighbours_are_left_on_one_ipu(
            of in prop::collection::vec((0u32..4, 1usize..4), 0..12)
        ) {
            let written = stages(&of);
            let merged = merge(written.clone());
            prop_assert!(merged.windows(2).all(|pair| pair[0].ipu != pair[1].ipu), "{:?}", merged);
            prop_assert_eq!(places(&merged), places(&written));
            // Only boundaries between consecutive stages on one IPU disappear.
            let changes = of.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
            prop_assert_eq!(merged.len(), if of.is_empty() { 0 } else { changes + 1 });
            prop_assert_eq!(merge(merged.clone()), merged);
        }
    }
}
