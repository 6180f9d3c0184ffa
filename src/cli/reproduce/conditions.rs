//! The conditions of a published run and of its simulation: figures are only compared under equal
//! conditions.

use super::measurements::SpecWithOverrides;
use serde::{Deserialize, Serialize};
use std::fmt;
use tilescope_report::units::grouped;
use tilescope_sim::specification::Spec;

/// The framework of a program, which determines its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum RunFramework {
    #[serde(rename = "PopTorch")]
    PopTorch,
    #[serde(rename = "PopART")]
    Popart,
    #[serde(rename = "PopRT")]
    Poprt,
    TensorFlow,
    Poplar,
}

impl fmt::Display for RunFramework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PopTorch => "PopTorch",
            Self::Popart => "PopART",
            Self::Poprt => "PopRT",
            Self::TensorFlow => "TensorFlow",
            Self::Poplar => "Poplar",
        })
    }
}

/// The task of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RunTask {
    Training,
    PreTraining,
    FineTuning,
    Inference,
}

impl fmt::Display for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Training => "training",
            Self::PreTraining => "pre-training",
            Self::FineTuning => "fine-tuning",
            Self::Inference => "inference",
        })
    }
}

/// The items that a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunItems {
    Samples,
    /// Samples of several sequences each.
    Packs,
    Sequences,
}

impl fmt::Display for RunItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "samples",
            Self::Packs => "packs",
            Self::Sequences => "sequences",
        })
    }
}

/// A condition of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PublishedCondition<T> {
    /// The figure does not depend on it.
    Any,
    NotSaid,
    #[serde(untagged)]
    Said(T),
}

impl<T: fmt::Display + PartialEq> PublishedCondition<T> {
    fn beside(&self, name: &'static str, simulated: &T) -> ComparedCondition {
        let (published, alike) = match self {
            Self::Any => ("any".to_string(), true),
            Self::NotSaid => ("not stated".to_string(), true),
            Self::Said(said) => (said.to_string(), said == simulated),
        };
        ComparedCondition { name, published, simulated: simulated.to_string(), alike }
    }
}

/// A number of micro-batches, replicas, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct RunCount(u64);

impl fmt::Display for RunCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.0))
    }
}

/// The conditions of a program in a publication.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRun {
    /// The text that it comes from.
    pub publication: String,
    framework: PublishedCondition<RunFramework>,
    task: PublishedCondition<RunTask>,
    /// Samples of one pass.
    micro_batch: PublishedCondition<RunCount>,
    /// Micro-batches per weight update.
    gradient_accumulation: PublishedCondition<RunCount>,
    replicas: PublishedCondition<RunCount>,
    items: PublishedCondition<RunItems>,
}

/// A condition of a published run and of the simulated program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ComparedCondition {
    pub name: &'static str,
    pub published: String,
    pub simulated: String,
    /// True if the two can be compared.
    #[serde(skip)]
    pub alike: bool,
}

impl PublishedRun {
    /// Compares every condition with that of a program, given by its `spec`, and of a measurement
    /// that counts `items`, if any.
    pub(super) fn beside(
        &self,
        program: &SpecWithOverrides,
        spec: &Spec,
        items: Option<RunItems>,
    ) -> Vec<ComparedCondition> {
        let options = &spec.options;
        let counts = [
            (&self.micro_batch, "micro-batch", spec.model.batch_size),
            (&self.gradient_accumulation, "accumulation", options.gradient_accumulation),
            (&self.replicas, "replicas", u64::from(options.replication_factor)),
        ];
        let mut compared = vec![
            self.framework.beside("framework", &program.framework),
            self.task.beside("task", &program.task),
        ];
        compared.extend(counts.map(|(said, name, own)| said.beside(name, &RunCount(own))));
        compared.extend(items.map(|items| self.items.beside("items", &items)));
        compared
    }
}

impl SpecWithOverrides {
    /// True if the program does its declared task: all but inference train.
    pub(super) fn does_its_task(&self, spec: &Spec) -> bool {
        spec.model.training == (self.task != RunTask::Inference)
    }
}
