//! Tensors over replicas: with replicated tensor sharding, each replica holds a part instead of the
//! whole tensor.

use super::bytes_of;
use super::mapping_rows::element_bytes;
use crate::report_variables::for_each_variable;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Bytes, VariableId};
use tilescope_report::{Report, ReportError, Target, Variable};

/// The part of a tensor on a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaShare {
    /// Bytes of all its elements.
    pub whole: Bytes,
    /// Bytes on each replica, including padding after the last elements.
    pub held: Bytes,
    pub replicas: u32,
    /// Number of parts.
    pub shards: u32,
}

impl ReplicaShare {
    /// The part on a replica, from 0.
    pub fn shard_of(&self, replica: u32) -> u32 {
        replica % self.shards.max(1)
    }
}

/// The part of a variable on each replica; `None` for variables that do not persist between
/// micro-batches, and for those whose total size is not in the report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn replica_share(report: &Report, id: VariableId) -> Result<Option<ReplicaShare>, ReportError> {
    let Some(variable) = report.variable(id)? else { return Ok(None) };
    let all = replica_shares(report)?;
    Ok(all.into_iter().find(|(name, _)| *name == variable.name).map(|(_, share)| share))
}

/// The parts of all variables, with their names.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn replica_shares(report: &Report) -> Result<Vec<(String, ReplicaShare)>, ReportError> {
    let kept = kept_tensors(report)?;
    let target = report.target()?;
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for_each_variable(report, |_, variable| {
        if kept.contains(&variable.name)
            && let Some(elements) = elements(&variable.shape)
        {
            sizes.insert(variable.name.clone(), elements);
        }
    })?;
    let mut found = Vec::new();
    for_each_variable(report, |_, variable| {
        let share = share(variable, &sizes, &target);
        found.extend(share.map(|share| (variable.name.clone(), share)));
    })?;
    Ok(found)
}

/// Names of weights, optimiser state and accumulators.
fn kept_tensors(report: &Report) -> Result<BTreeSet<String>, ReportError> {
    let buffers = report.data_flows()?.buffers.into_iter();
    Ok(buffers.filter(|buffer| buffer.persistent).map(|buffer| buffer.name).collect())
}

fn share(
    variable: &Variable,
    sizes: &BTreeMap<String, u64>,
    target: &Target,
) -> Option<ReplicaShare> {
    let element = element_bytes(&variable.shape)?;
    let own = *sizes.get(variable.name.as_str())?;
    // Optimiser state and accumulators are named after their weights, and have the same total
    // number of elements.
    let weight = variable.name.split_once("___").and_then(|(_, weight)| sizes.get(weight));
    let whole = element.0.checked_mul(own.max(weight.copied().unwrap_or(0)))?;
    let held = bytes_of(&variable.tiles).total();
    if target.replicas < 2 || whole == 0 || held.is_zero() {
        return None;
    }
    // Each part is padded, so the sum of all parts is at least the whole. There are at most as many
    // parts as replicas, and each part is on the same number of replicas.
    let most = u32::try_from(whole.div_ceil(held.0)).ok()?;
    let fits = |shards: &u32| {
        target.replicas.is_multiple_of(*shards) && held.0.saturating_mul((*shards).into()) >= whole
    };
    // A tensor that is not sharded here may be a part according to its own shape, so it is left
    // out.
    let shards = (2..=most.min(target.replicas)).rev().find(fits)?;
    Some(ReplicaShare { whole: Bytes(whole), held, replicas: target.replicas, shards })
}

/// Number of elements of `float32[10,1,5,5]`.
fn elements(shape: &str) -> Option<u64> {
    let sizes = shape.split_once('[')?.1.strip_suffix(']')?;
    let mut sizes = sizes.split(',').filter(|size| !size.trim().is_empty());
    sizes.try_fold(1u64, |product, size| product.checked_mul(size.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::{IpuId, TileId};
    use tilescope_report::{DataBuffer, DataPlace, MemoryCategory};

    #[test]
    fn parts_follow_from_the_bytes_of_a_replica() {
        let mut builder = ReportBuilder::new(1, 8);
        builder.parts.target.replicas = 4;
        builder.parts.target.num_ipus = 4;
        // 1,000 elements of 4 bytes on four tiles: all of them, a quarter, and for 1,001 a padded
        // quarter.
        for (name, shape, each) in [
            ("weight", "float32[10,100]", 1_000),
            ("Accl1___weight", "float32[250]", 250),
            ("Accl1___odd", "float32[1001]", 252),
            ("activations", "float32[10,100]", 250),
        ] {
            builder.variable(name, MemoryCategory::Variable, 0..4, each, None);
            builder.parts.variables.last_mut().unwrap().shape = shape.to_owned();
            if name != "activations" {
                builder.parts.data_flows.buffers.push(DataBuffer {
                    name: name.to_owned(),
                    place: DataPlace::Tiles,
                    ipu: IpuId(0),
                    entries: 1,
                    persistent: true,
                    filled: true,
                });
            }
        }
        assert!(builder.parts.target.has_tile(TileId(3)));
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let shares = replica_shares(&report).unwrap();
        let found: Vec<(&str, u32, u64)> =
            shares.iter().map(|(name, of)| (name.as_str(), of.shards, of.whole.0)).collect();
        let expected = [("Accl1___weight", 4, 4_000), ("Accl1___odd", 4, 4_004)];
        assert_eq!(found, expected);
        assert_eq!((shares[0].1.shard_of(0), shares[0].1.shard_of(3)), (0, 3));
    }
}
