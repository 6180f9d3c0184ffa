//! The state of a program while its fragments and copies are added.

use super::data_flow::DataFlowRecorder;
use super::operation_table::OperationTable;
use super::program_plan::ProgramPlan;
use super::program_tables::ProgramTables;
use super::replica_rings::ReplicaRings;
use super::wanted_variables::WantedVariables;
use crate::poplar::code_bytes::TileCodeBytes;

/// The parts that the steps of a program add to. Each part numbers or collects its own entries.
pub(super) struct ProgramBuilder<'a> {
    pub plan: &'a ProgramPlan<'a>,
    pub tables: ProgramTables,
    pub operations: OperationTable<'a>,
    pub variables: WantedVariables<'a>,
    /// The buffers that programs read and write.
    pub flows: DataFlowRecorder<'a>,
    /// The routes of collectives through the replicas.
    pub rings: ReplicaRings<'a>,
}

impl<'a> ProgramBuilder<'a> {
    pub(super) fn new(plan: &'a ProgramPlan<'a>) -> Self {
        let target = &plan.spec.target;
        let code = TileCodeBytes::new(&target.chip, target.kind, target.ipus * target.chip.tiles);
        let outlining = plan.spec.options.enable_outlining;
        Self {
            plan,
            tables: ProgramTables::new(target.kind, &target.chip, code, outlining),
            operations: OperationTable::new(plan),
            variables: WantedVariables::new(plan),
            flows: DataFlowRecorder::new(plan),
            rings: ReplicaRings::new(plan),
        }
    }
}
