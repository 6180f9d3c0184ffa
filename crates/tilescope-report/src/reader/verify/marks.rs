//! Invariants of marks, whose rows may be compressed columns that SQLite cannot join.

use super::{Findings, InvariantCheck, InvariantViolation, Report, ReportOrigin};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::model::{MarkKind, TrainingPass};
use crate::reader::marks::PackedMarks;
use crate::row_cells::RowCells;
use crate::schema;
use crate::units::{Cycles, ReplicaClassId};
use std::collections::BTreeMap;

/// Marks that end after the last step of the run.
struct LateMarks {
    steps: u64,
    findings: Findings,
}

impl LateMarks {
    fn new(report: &Report) -> Result<Self, ReportError> {
        Ok(Self { steps: report.step_count()?, findings: Findings::default() })
    }

    /// Checks a mark, given the columns of its label and its last step.
    fn look(&mut self, cells: &RowCells, [label, end]: [usize; 2]) {
        let steps = self.steps;
        let Some(end) = cells.int(end).and_then(|end| u64::try_from(end).ok()) else { return };
        if end > steps {
            self.findings.add(|| {
                let label = cells.text(label).unwrap_or_else(|| "a mark".to_owned());
                format!("{label} ends before step {end}, but the run has {steps} steps")
            });
        }
    }

    fn tell(self, found: &mut Vec<InvariantViolation>) {
        self.findings.tell("marks_in_range", found);
    }
}

impl Report {
    /// Checks that marks end with a step of the run. Marks of our own reports are checked with the
    /// rest of their rows, and those of further classes with their steps.
    pub(super) fn verify_marks(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        if self.origin() == ReportOrigin::Tilescope {
            return Ok(());
        }
        let mut late = LateMarks::new(self)?;
        self.stream_marks(ReplicaClassId(0), &["label", "end_step"], |_, cells| {
            late.look(cells, [0, 1]);
        })?;
        late.tell(found);
        Ok(())
    }

    /// Checks that marks have known kinds and IPUs of the replica, and that `mark_kinds` has their
    /// numbers.
    pub(super) fn verify_mark_rows(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        let Some(table) = schema::find("marks") else { return Ok(()) };
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let ipus = i64::from(self.target()?.ipus_per_replica);
        let mut late = LateMarks::new(self)?;
        // By kind; `None` for names that are none.
        let mut kinds: BTreeMap<Option<MarkKind>, (i64, Cycles)> = BTreeMap::new();
        let mut count = 0;
        let mut last = -1;
        let mut broken = 0;
        let mut misplaced = 0;
        // One pass checks everything: marks of a long run take longer to unpack than to check.
        let mut check_mark = |chunk: Option<&PackedMarks>, cells: &RowCells| {
            let kind = cells.named(1, MarkKind::from_name);
            let ipu = cells.int(3);
            let known = kind.is_some()
                && (cells.named(4, TrainingPass::from_name).is_some() || cells.text(4).is_none())
                && ipu.is_none_or(|ipu| (0..ipus).contains(&ipu));
            let [first_step, end_step, start, end] = [6, 7, 8, 9].map(|column| cells.int(column));
            broken += i64::from(!known || end < start || end_step < first_step);
            misplaced +=
                i64::from(chunk.is_some_and(|chunk| !chunk.holds(kind, ipu, [start, end])));
            (kind, end.unwrap_or(0).saturating_sub(start.unwrap_or(0)))
        };
        // Any class beyond the first gives the same answer: all others are in one table.
        self.stream_marks(ReplicaClassId(1), &columns, |chunk, cells| {
            check_mark(chunk, cells);
        })?;
        self.stream_marks(ReplicaClassId(0), &columns, |chunk, cells| {
            let (kind, length) = check_mark(chunk, cells);
            late.look(cells, [2, 7]);
            (count, last) = (count + 1, cells.int(0).unwrap_or(-1).max(last));
            let (number, longest) = kinds.entry(kind).or_default();
            *number += 1;
            *longest = Cycles(u64::try_from(length).unwrap_or(0)).max(*longest);
        })?;
        law.check(last + 1 == count, || "ids of marks are not 0, 1, 2, …".to_owned());
        law.check(broken == 0, || format!("{broken} marks have no length, IPU or kind"));
        law.check(misplaced == 0, || format!("mark_chunks has {misplaced} marks in wrong chunks"));
        let columns = ["kind", "count", "longest_cycles"];
        let recorded = self.db.list(SelectQuery::all("mark_kinds", &columns), |cells| {
            let longest = u64::try_from(cells.int(2)?).ok()?;
            Some((cells.named(0, MarkKind::from_name), (cells.int(1)?, Cycles(longest))))
        })?;
        let recorded: BTreeMap<_, _> = recorded.into_iter().flatten().collect();
        law.check(recorded == kinds, || "mark_kinds does not match the marks".to_owned());
        late.tell(law.found);
        for problem in self.mark_row_problems()? {
            law.check(false, || problem.clone());
        }
        Ok(())
    }
}
