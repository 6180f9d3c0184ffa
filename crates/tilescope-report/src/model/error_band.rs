//! How well the cost of a program is known.

/// What a predicted cost rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostBasis {
    /// Operations of the kind were measured, and the model was held against them.
    Measured,
    /// Published formulas; nothing of the kind was measured.
    Formula,
    /// Links between IPUs, streaming memory and the host.
    Links,
    /// Nothing published says what it costs.
    Assumed,
}

impl CostBasis {
    /// Every basis, the best known first.
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

    /// The basis of a name in a file.
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

/// How far predictions of one kind of operation may be off.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBand {
    /// Operator, as [`ModelOperation::kind`](super::ModelOperation::kind) has it; nothing for
    /// programs of no operation.
    pub kind: Option<String>,
    pub basis: CostBasis,
    /// Measured operations it is taken from.
    pub rows: u64,
    /// Of cycles.
    pub cycles: FactorBand,
    /// Of bytes.
    pub bytes: FactorBand,
}

/// The source of an error of a whole program, beside those of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramErrorSource {
    /// Everything: what published programs are off by.
    Program,
    /// Copies between layouts.
    Copies,
    /// Published formulas: what all kinds without measurements have in common.
    Formulas,
    /// Copies of rows that do not end with a vector.
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
    /// Every source.
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

    /// The source of a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// How far absolute figures of a program may be off that consists of nothing else than a source of
/// errors: a program with a part of it is off by that part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramErrorBand {
    pub source: ProgramErrorSource,
    /// Published figures it is taken from; 0 where it is assumed.
    pub rows: u64,
    /// Of cycles or bytes.
    pub factors: FactorBand,
}
