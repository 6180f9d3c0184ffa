//! Replicas: the rings of their data, and the classes of those that differ.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_LINKED_IPUS, MAX_REPLICA_RINGS, MAX_REPLICAS};
use crate::model::{ReplicaClass, ReplicaClasses, ReplicaRing, ReplicaShape, RingLinks, RingOrder};
use crate::units::{ProgramId, ReplicaClassId};

impl Report {
    /// The rings of copies between replicas; empty if there are none, or they were not recorded.
    /// Rings with more replicas than exist or with invalid shares are left out. None are returned
    /// if there are more IPUs than any machine has.
    pub fn replica_rings(&self) -> Result<Vec<ReplicaRing>, ReportError> {
        let shape = ReplicaShape::of(&*self.target()?);
        if shape.ipus() > MAX_LINKED_IPUS {
            return Ok(Vec::new());
        }
        let replicas = shape.replicas;
        let columns = ["id", "ring_order", "links", "ranks", "spacing", "clockwise"];
        let most = format!("ORDER BY id LIMIT {MAX_REPLICA_RINGS}");
        let all = SelectQuery::all("replica_rings", &columns);
        let rings = self.db.list(all.clauses(&most), |cells| {
            let ring = ReplicaRing {
                order: cells.named(1, RingOrder::from_name)?,
                links: cells.named(2, RingLinks::from_name)?,
                ranks: cells.small_up_to(3, replicas)?,
                spacing: cells.small_up_to(4, replicas)?,
                clockwise: cells.real(5)?,
                programs: Vec::new(),
            };
            let all = ring.ranks.checked_mul(ring.spacing).filter(|all| *all > 0);
            let fits = all.is_some_and(|all| replicas.is_multiple_of(all));
            let is_share = (0.0..=1.0).contains(&ring.clockwise);
            if fits && is_share { Some((cells.int(0)?, ring)) } else { None }
        })?;
        let mut rings: Vec<(i64, ReplicaRing)> = rings.into_iter().flatten().collect();
        let all = SelectQuery::all("replica_ring_programs", &["program", "ring"]);
        let programs = self.db.list(all.clauses("ORDER BY program"), |cells| {
            Some((ProgramId(cells.small(0)?), cells.int(1)?))
        })?;
        for (program, of) in programs.into_iter().flatten() {
            let ring = rings.iter_mut().find(|(id, _)| *id == of);
            ring.into_iter().for_each(|(_, ring)| ring.programs.push(program));
        }
        Ok(rings.into_iter().map(|(_, ring)| ring).collect())
    }

    /// The classes of the replicas of the run; empty if all are alike, or they were not recorded.
    pub fn replica_classes(&self) -> Result<ReplicaClasses, ReportError> {
        let all = SelectQuery::all("replica_classes", &["why"]);
        let most = format!("ORDER BY id LIMIT {MAX_REPLICAS}");
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
