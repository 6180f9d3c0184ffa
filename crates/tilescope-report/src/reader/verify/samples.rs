//! Samples of tiles compared with their steps.

use super::{InvariantCheck, InvariantViolation, MAX_STEPS, Report};
use crate::error::ReportError;
use crate::model::{SampleKind, StepOnIpu, TileSample};
use crate::units::{Cycles, StepId, TileId};

/// The number of steps read at a time.
const BATCH: usize = 4096;

impl Report {
    /// Checks that every step has samples, of each tile in order, and begins and ends with them.
    pub(super) fn verify_samples(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        if !self.has_tile_samples() {
            return Ok(());
        }
        let mut law = InvariantCheck::new("samples_are_of_steps", found);
        let labels = self.sample_labels()?;
        let tiles_per_ipu = self.target()?.tiles_per_ipu.max(1);
        let mut first = StepId(0);
        loop {
            let steps = self.steps(first..StepId(MAX_STEPS), BATCH)?;
            let Some(last) = steps.last().map(|step| step.id) else { break };
            let mut samples: Vec<(StepId, TileSample)> = Vec::new();
            self.visit_tile_samples(first..last + 1, |step, sample| samples.push((step, sample)))?;
            let mut by_step = samples.chunk_by(|one, next| one.0 == next.0).peekable();
            for step in &steps {
                let own = by_step.next_if(|own| own.first().is_some_and(|of| of.0 == step.id));
                let own = own.unwrap_or_default();
                let places: Vec<(TileId, Cycles)> =
                    own.iter().map(|(_, sample)| (sample.tile, sample.cycles.start)).collect();
                law.check(places.is_sorted(), || {
                    format!("samples of step {} are out of order", step.id)
                });
                let is_idle = |sample: &TileSample| {
                    labels.get(sample.label as usize).map(|label| label.kind)
                        == Some(SampleKind::Idle)
                };
                let all_idle = own.iter().all(|(_, sample)| is_idle(sample));
                let busy = own.iter().map(|(_, sample)| sample);
                let busy: Vec<&TileSample> =
                    busy.filter(|sample| all_idle || !is_idle(sample)).collect();
                for on_ipu in &step.ipus {
                    let of_ipu =
                        |sample: &&&TileSample| sample.tile.0 / tiles_per_ipu == on_ipu.ipu.0;
                    let own: Vec<&TileSample> = busy.iter().filter(of_ipu).copied().collect();
                    law.check(agree(on_ipu, &own), || {
                        let id = step.id;
                        let ipu = on_ipu.ipu;
                        format!("step {id} on IPU {ipu} begins or ends without its samples")
                    });
                }
            }
            law.check(by_step.next().is_none(), || "samples of steps that do not exist".to_owned());
            first = last + 1;
        }
        Ok(())
    }
}

/// True if a step begins and ends on an IPU as its tiles do. A bar may begin later than the last of
/// them, after the previous bar.
fn agree(on_ipu: &StepOnIpu, samples: &[&TileSample]) -> bool {
    let iter_starts = || samples.iter().map(|sample| sample.cycles.start);
    let iter_ends = || samples.iter().map(|sample| sample.cycles.end);
    let mut tiles: Vec<TileId> = samples.iter().map(|sample| sample.tile).collect();
    tiles.dedup();
    iter_starts().min() == Some(on_ipu.from_min)
        && iter_starts().max() <= Some(on_ipu.from_max)
        && iter_ends().min() == Some(on_ipu.to_min)
        && iter_ends().max() <= Some(on_ipu.to_max)
        && tiles.len() == on_ipu.active_tiles as usize
}
