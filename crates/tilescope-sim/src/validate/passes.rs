//! The passes of a layer that are run.

use super::config::{RowConfig, RowProblem};

/// The keys of the passes. Each tool of poplibs uses one of them.
pub(crate) const PASS_KEYS: [&str; 4] = ["phase", "single-phase", "pass", "inference-only"];

/// The passes that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayerPasses {
    pub forward: bool,
    /// The gradient of the input.
    pub backward: bool,
    /// The gradient of the weights, and their update.
    pub update: bool,
    /// True if nothing is ever trained. The forward pass is then planned separately.
    pub inference: bool,
}

impl LayerPasses {
    /// Reads the passes of `config`, with `default` if it names none.
    pub(crate) fn from_config(config: &RowConfig, default: Self) -> Result<Self, RowProblem> {
        let mut passes = default;
        for key in &PASS_KEYS[..3] {
            passes = match config.text(key) {
                None => passes,
                Some("all" | "both") => Self::ALL,
                Some("fwd") => Self { forward: true, ..Self::NONE },
                Some("bwd") => Self { backward: true, ..Self::NONE },
                Some("wu") => Self { update: true, ..Self::NONE },
                Some(other) => {
                    return Err(RowProblem::Malformed(format!(
                        "{key}: expected all, fwd, bwd or wu, found {other:?}"
                    )));
                }
            };
        }
        if config.flag(PASS_KEYS[3], false)? {
            if !passes.forward {
                return Err(RowProblem::Malformed(format!(
                    "{} has a forward pass only",
                    PASS_KEYS[3]
                )));
            }
            passes = Self::INFERENCE;
        }
        Ok(passes)
    }

    const NONE: Self = Self { forward: false, backward: false, update: false, inference: false };

    /// The passes of a training step.
    pub(super) const ALL: Self =
        Self { forward: true, backward: true, update: true, inference: false };

    /// A forward pass without any other pass.
    pub(crate) const INFERENCE: Self = Self { forward: true, inference: true, ..Self::NONE };

    /// True if a gradient of the result exists.
    pub(crate) fn needs_gradient(self) -> bool {
        self.backward || self.update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> Result<LayerPasses, RowProblem> {
        LayerPasses::from_config(&RowConfig::parse(text).expect("words"), LayerPasses::ALL)
    }

    #[test]
    fn one_pass_or_all_are_run() {
        assert_eq!(passes("m=1"), Ok(LayerPasses::ALL));
        assert_eq!(passes("inference-only=true"), Ok(LayerPasses::INFERENCE));
        assert_eq!(
            passes("single-phase=wu"),
            Ok(LayerPasses { update: true, ..LayerPasses::NONE })
        );
        assert_eq!(passes("phase=fwd"), Ok(LayerPasses { forward: true, ..LayerPasses::NONE }));
        assert!(passes("phase=bwd inference-only=1").is_err() && passes("pass=x").is_err());
    }
}
