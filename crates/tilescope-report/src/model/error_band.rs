//! The accuracy of predicted costs.

/// The evidence behind a predicted cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostBasis {
    /// Operations of the kind were measured, and the model was compared with them.
    Measured,
    /// Published formulas; no operation of the kind was measured.
    Formula,
    /// Links between IPUs, streaming memory and the host.
    Links,
    /// No published source gives the cost.
    Assumed,
}

impl CostBasis {
    /// All bases, the most certain first.
    pub const ALL: [CostBasis; 4] = [Self::Measured, Self::Formula, Self::Links, Self::Assumed];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Formula => "formula",
            Self::Links => "links",
            Self::Assumed => "assumed",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|basis| basis.name() == name)
    }
}

/// Factors between which the true figure is expected in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorBand {
    pub low: f64,
    pub high: f64,
}

/// The error of predictions for one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBand {
    /// Operator, as in [`ModelOperation::kind`](super::ModelOperation::kind); none for programs of
    /// no operation.
    pub kind: Option<String>,
    pub basis: CostBasis,
    /// Number of measured operations behind it.
    pub rows: u64,
    /// The factors of cycles.
    pub cycles: FactorBand,
    /// The factors of bytes.
    pub bytes: FactorBand,
}

/// The source of an error of a whole program, beside those of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramErrorSource {
    /// The whole: the error of published programs.
    Program,
    /// Copies between layouts.
    Copies,
    /// Published formulas: the common error of all kinds without measurements.
    Formulas,
    /// Copies of rows that do not end at a vector boundary.
    OddRows,
    /// The host: its copies and loaders.
    Host,
    /// The time that frameworks take for a host call.
    HostCalls,
    /// Operators of an imported file.
    Imported,
    /// Bytes of the fullest tile.
    FullestTile,
    /// Bytes of code on it.
    Code,
    /// Code that replicas add, of all code of a replicated program.
    ReplicaCode,
}

impl ProgramErrorSource {
    /// All sources.
    pub const ALL: [ProgramErrorSource; 10] = [
        Self::Program,
        Self::Copies,
        Self::Formulas,
        Self::OddRows,
        Self::Host,
        Self::HostCalls,
        Self::Imported,
        Self::FullestTile,
        Self::Code,
        Self::ReplicaCode,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Copies => "copies",
            Self::Formulas => "formulas",
            Self::OddRows => "odd_rows",
            Self::Host => "host",
            Self::HostCalls => "host_calls",
            Self::Imported => "imported",
            Self::FullestTile => "fullest_tile",
            Self::Code => "code",
            Self::ReplicaCode => "replica_code",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// The error of absolute figures of a program that consists of nothing but this source. A program
/// is off by its share of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramErrorBand {
    pub source: ProgramErrorSource,
    /// Number of published figures behind it; 0 if it is assumed.
    pub rows: u64,
    /// The factors of cycles or bytes.
    pub factors: FactorBand,
}
