//! Defaults and error bands that follow from the framework of a spec.

use super::{CheckedSpecValues, Spec};
use crate::cost_constants::{HostPath, PLAIN_HOST, own_call_factors};
use crate::spec_keys::{ChosenValues, SpecValue};
use tilescope_report::{FactorBand, ProgramErrorBand, ProgramErrorSource, TargetKind};

/// The key of the time of a call.
const CALL_SECONDS: &str = "options.host.seconds_per_framework_call";

/// The key of the form of a pipeline's schedule.
const STASH_CONVENTION: &str = "options.stash_convention";

/// The host path that a spec names.
pub(super) fn path_of_name(values: &CheckedSpecValues) -> &'static HostPath {
    values.field("options.host", "framework").unwrap_or(&PLAIN_HOST)
}

/// The value of a key that the spec does not set.
pub(super) fn inherited(values: &CheckedSpecValues, path: &str) -> Option<SpecValue> {
    if path == STASH_CONVENTION {
        let is_tensorflow = path_of_name(values).is_tensorflow();
        return is_tensorflow.then(|| SpecValue::String("tensorflow".to_owned()));
    }
    if path != CALL_SECONDS {
        return None;
    }
    // The host of an IPU Model responds immediately.
    let seconds = match values.field("target", "type").unwrap_or(TargetKind::Ipu) {
        TargetKind::Ipu => path_of_name(values).call_seconds,
        TargetKind::IpuModel => 0.0,
    };
    Some(SpecValue::Float(seconds))
}

impl Spec {
    /// The error of times of host calls: that of the framework's figures, or that of a time set by
    /// the user.
    pub(crate) fn host_call_error(&self) -> ProgramErrorBand {
        let path = self.options.host.framework;
        let (rows, factors): (usize, FactorBand) = if self.locations.contains_key(CALL_SECONDS) {
            (0, own_call_factors())
        } else {
            (path.figures.len(), path.call_factors())
        };
        ProgramErrorBand { source: ProgramErrorSource::HostCalls, rows: rows as u64, factors }
    }
}
