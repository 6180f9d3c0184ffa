//! Which passes of a layer are run.

use super::config::{RowConfig, RowProblem};

/// Words for it: all tools of poplibs call it one of these.
pub(crate) const PASS_KEYS: [&str; 4] = ["phase", "single-phase", "pass", "inference-only"];

/// Passes that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayerPasses {
    pub forward: bool,
    /// Gradient of the input.
    pub backward: bool,
    /// Gradient of the weights, and their update.
    pub update: bool,
    /// Whether nothing is ever trained: the forward pass is then planned on its own.
    pub inference: bool,
}

impl LayerPasses {
    /// What `config` asks for; `default` where it is silent.
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

    /// A step of training.
    pub(super) const ALL: Self =
        Self { forward: true, backward: true, update: true, inference: false };

    /// A forward pass that nothing follows.
    pub(crate) const INFERENCE: Self = Self { forward: true, inference: true, ..Self::NONE };

    /// Whether a gradient of the result exists.
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
