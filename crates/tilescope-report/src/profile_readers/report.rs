//! Writes a report of measured tiles.

use super::run::MeasuredRun;
use super::steps::StepKeys;
use super::{MeasuredProfile, ProfileError, clock, compilation};
use crate::error::ReportError;
use crate::writer::{ReportMeta, ReportWriter, StepLayout};
use std::path::{Path, PathBuf};

/// Writes the measurements into `directory`. Returns the path of the report.
pub(super) fn write(
    mut profile: MeasuredProfile<'_>,
    directory: &Path,
) -> Result<PathBuf, WriteProfileError> {
    let keys = StepKeys::of(&profile)?;
    let cycles = clock::cycles(&mut profile, &keys)?;
    let run = MeasuredRun::new(&profile, &keys, &cycles)?;
    let meta = ReportMeta { generator: profile.generator.clone(), ..ReportMeta::default() };
    let mut writer = ReportWriter::create(directory, &meta)?;
    writer.step_layout(StepLayout::for_bars(run.bars()))?;
    writer.compilation(&compilation::of(&run))?;
    writer.sample_labels(&profile.labels.labels())?;
    for step in &run.steps {
        writer.step(&run.execution(step))?;
        let samples = run.samples_of(step).map(|sample| run.tile_sample(sample));
        writer.tile_samples(samples)?;
    }
    run.iterations().iter().try_for_each(|mark| writer.mark(mark))?;
    Ok(writer.finish()?)
}

/// The reason why a profile was not converted to a report.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteProfileError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Report(#[from] ReportError),
}
