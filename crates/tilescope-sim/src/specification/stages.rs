//! The stages of a pipeline, in the form of a spec.

use super::choices::{ExecutionStrategy, PipelineSchedule};
use super::error::SpecError;
use super::host_path::path_of_name;
use super::{CheckedSpecValues, SpecOptions};
use crate::cost_constants::HostPath;
use crate::spec_keys::ChosenValues;
use crate::spec_keys::{SpecField, SpecKeyType, SpecValue};
use tilescope_report::units::IpuId;

/// The key of the stages.
const STAGES: &str = "options.stages";

/// A pipeline stage: blocks that run on one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageSpec {
    /// Blocks in order, and single operations.
    pub blocks: Vec<String>,
    /// The IPU of the replica.
    pub ipu: IpuId,
}

/// Frameworks that keep consecutive stages on one IPU separate.
///
/// TensorFlow's only pass of this kind joins the two passes of the last stage (graphcore/tensorflow
/// compiler/plugin/poplar/driver/passes/pipeline_stage_merger.cc), and its tests map neighbours to
/// one IPU, `device_mapping=[0, 0, 2, 3, 0]` (python/ipu/tests/pipelining_test.py). A pipeline of
/// PopXL comes from graphcore/popxl-addons (transforms/pipelining.py), with a graph for each stage,
/// and bypasses PopART's pass.
const KEEP_STAGES_APART: [&str; 2] = ["keras", "popxl"];

impl SpecOptions {
    /// True if consecutive stages on one IPU are merged.
    pub(crate) fn merges_stages(&self) -> bool {
        merges_stages(self.execution, self.pipeline_schedule, self.host.framework)
    }
}

impl CheckedSpecValues {
    /// True if consecutive stages on one IPU are merged, before all options are known.
    pub(super) fn merges_stages(&self) -> bool {
        let execution = self.field("options", "execution");
        let schedule = self.field("options", "pipeline_schedule");
        merges_stages(
            execution.unwrap_or(ExecutionStrategy::Pipelined),
            schedule.unwrap_or(PipelineSchedule::Grouped),
            path_of_name(self),
        )
    }
}

/// True if consecutive stages on one IPU are merged.
///
/// PopART merges them before it counts the micro-batches that a pipeline needs and before it
/// decides what is stashed (`mergeConsecutivePipelineStages`, popart
/// willow/src/transforms/pipeline.cpp). The grouped schedule is its only one, and the others are
/// TensorFlow's. Without a pipeline it drops the numbers of stages (`Ir::verifyPipelineSettings`,
/// willow/src/ir.cpp). Phases are not stages: each loads its own weights, even on the IPU of the
/// previous phase.
fn merges_stages(
    execution: ExecutionStrategy,
    schedule: PipelineSchedule,
    framework: &HostPath,
) -> bool {
    match execution {
        ExecutionStrategy::Pipelined => {
            schedule == PipelineSchedule::Grouped && !KEEP_STAGES_APART.contains(&framework.name)
        }
        ExecutionStrategy::Sharded => true,
        ExecutionStrategy::Phased => false,
    }
}

/// The reason why stages cannot be read.
enum StagesProblem {
    /// An item is not a stage.
    NoStage { position: usize, item: SpecValue },
    /// A table has a key that stages do not have.
    UnknownKey { position: usize, key: String },
    /// A stage has no blocks.
    NoBlocks { position: usize },
}

impl SpecField for Vec<StageSpec> {
    const FORM: SpecKeyType = SpecKeyType::Stages;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::Array(items) => read(items).ok(),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        let mut tables = Vec::new();
        for stage in self {
            let blocks = stage.blocks.iter().cloned().map(SpecValue::String).collect();
            tables.push(SpecValue::Table(vec![
                ("blocks".to_string(), SpecValue::Array(blocks)),
                ("ipu".to_string(), SpecValue::Integer(i64::from(stage.ipu.0))),
            ]));
        }
        SpecValue::Array(tables)
    }
}

/// Rejects stages that cannot be read.
pub(super) fn check(values: &CheckedSpecValues) -> Result<(), SpecError> {
    let SpecValue::Array(items) = values.get(STAGES) else { return Ok(()) };
    let refuse = |problem| values.refuse(STAGES, problem);
    read(&items).map(|_| ()).map_err(|problem| match problem {
        StagesProblem::NoStage { position, item } => {
            let expected =
                "a block or an operation, a list of them, or { blocks = [...], ipu = N }";
            refuse(format!("stage {position}: expected {expected}, found {}", item.describe()))
        }
        StagesProblem::UnknownKey { position, key } => {
            refuse(format!("stage {position}: unknown key {key:?}"))
                .nearest(&key, &["blocks", "ipu"])
        }
        StagesProblem::NoBlocks { position } => refuse(format!("stage {position} has no blocks")),
    })
}

/// Reads stages. Each item is a block, a list of blocks, or a table with `blocks` and `ipu`. Stages
/// without an IPU are on the IPU with their position in the list.
fn read(items: &[SpecValue]) -> Result<Vec<StageSpec>, StagesProblem> {
    items.iter().enumerate().map(|(position, item)| stage(position, item)).collect()
}

fn stage(position: usize, item: &SpecValue) -> Result<StageSpec, StagesProblem> {
    let wrong = || StagesProblem::NoStage { position, item: item.clone() };
    let own_ipu = IpuId::from_index(position);
    let (blocks, ipu) = match item {
        SpecValue::Table(entries) => {
            if let Some((key, _)) = entries.iter().find(|(key, _)| key != "blocks" && key != "ipu")
            {
                return Err(StagesProblem::UnknownKey { position, key: key.clone() });
            }
            let find = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, v)| v);
            let ipu = match find("ipu") {
                Some(SpecValue::Integer(ipu)) => u32::try_from(*ipu).ok().filter(|ipu| *ipu < 64),
                Some(_) => None,
                None => Some(own_ipu.0),
            };
            (find("blocks").cloned().ok_or_else(wrong)?, IpuId(ipu.ok_or_else(wrong)?))
        }
        other => (other.clone(), own_ipu),
    };
    let blocks: Vec<String> = match blocks {
        SpecValue::String(block) => vec![block],
        SpecValue::Array(names) => names
            .into_iter()
            .map(|name| if let SpecValue::String(name) = name { Ok(name) } else { Err(wrong()) })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    if blocks.is_empty() {
        return Err(StagesProblem::NoBlocks { position });
    }
    Ok(StageSpec { blocks, ipu })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_constants::HOST_PATHS;

    #[test]
    fn pipelines_of_popart_merge_stages() {
        let grouped = PipelineSchedule::Grouped;
        let merging: Vec<&str> = HOST_PATHS
            .iter()
            .filter(|path| merges_stages(ExecutionStrategy::Pipelined, grouped, path))
            .map(|path| path.name)
            .collect();
        assert_eq!(merging, ["plain", "poptorch", "poptorch_3_1", "popart"]);
        assert_eq!(merging.len() + KEEP_STAGES_APART.len(), HOST_PATHS.len());
    }
}
