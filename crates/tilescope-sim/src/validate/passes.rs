//! Which passes of a layer are run.

use super::config::{Config, Problem};

/// Words for it: all tools of poplibs call it one of these.
pub(crate) const KEYS: [&str; 4] = ["phase", "single-phase", "pass", "inference-only"];

/// Passes that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    pub forward: bool,
    /// Gradient of the input.
    pub backward: bool,
    /// Gradient of the weights, and their update.
    pub update: bool,
    /// Whether nothing is ever trained: the forward pass is then planned on its own.
    pub inference: bool,
}

impl Passes {
    /// What `config` asks for; `default` where it is silent.
    pub(crate) fn of(config: &Config, default: Self) -> Result<Self, Problem> {
        let mut passes = default;
        for key in &KEYS[..3] {
            passes = match config.text(key) {
                None => passes,
                Some("all" | "both") => Self::ALL,
                Some("fwd") => Self { forward: true, ..Self::NONE },
                Some("bwd") => Self { backward: true, ..Self::NONE },
                Some("wu") => Self { update: true, ..Self::NONE },
                Some(other) => {
                    return Err(Problem::Broken(format!(
                        "{key}: expected all, fwd, bwd or wu, found {other:?}"
                    )));
                }
            };
        }
        if config.flag(KEYS[3], false)? {
            if !passes.forward {
                return Err(Problem::Broken(format!("{} has a forward pass only", KEYS[3])));
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
    pub(crate) fn goes_back(self) -> bool {
        self.backward || self.update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> Result<Passes, Problem> {
        Passes::of(&Config::parse(text).expect("words"), Passes::ALL)
    }

    #[test]
    fn one_pass_or_all_are_run() {
        assert_eq!(passes("m=1"), Ok(Passes::ALL));
        assert_eq!(passes("inference-only=true"), Ok(Passes::INFERENCE));
        assert_eq!(passes("single-phase=wu"), Ok(Passes { update: true, ..Passes::NONE }));
        assert_eq!(passes("phase=fwd"), Ok(Passes { forward: true, ..Passes::NONE }));
        assert!(passes("phase=bwd inference-only=1").is_err() && passes("pass=x").is_err());
    }
}
