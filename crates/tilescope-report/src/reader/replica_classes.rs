//! Replicas that differ, and the trace of each class of them.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_REPLICA_CLASSES, MAX_REPLICAS};
use crate::model::{ReplicaClass, ReplicaClasses};
use crate::units::{ProgramId, ReplicaClassId};

impl Report {
    /// The classes of the replicas of the run; none where all are alike, and where that was not
    /// recorded.
    pub fn replica_classes(&self) -> Result<ReplicaClasses, ReportError> {
        let all = SelectQuery::all("replica_classes", &["why"]);
        let most = format!("ORDER BY id LIMIT {MAX_REPLICA_CLASSES}");
        let mut classes: Vec<ReplicaClass> = self.db.list(all.clauses(&most), |cells| {
            ReplicaClass { replicas: Vec::new(), why: cells.text(0).unwrap_or_default() }
        })?;
        let all = SelectQuery::all("replicas", &["id", "class"]).clauses("ORDER BY id");
        let members = self.db.list(all, |cells| {
            Some((cells.small_up_to(0, MAX_REPLICAS - 1)?, ReplicaClassId(cells.small(1)?)))
        })?;
        for (replica, class) in members.into_iter().flatten() {
            if let Some(class) = classes.get_mut(class.index()) {
                class.replicas.push(replica);
            }
        }
        let all = SelectQuery::all("replica_joins", &["program"]);
        let joins = self.db.list(all, |cells| cells.small(0).map(ProgramId))?;
        Ok(ReplicaClasses { classes, joins: joins.into_iter().flatten().collect() })
    }
}
