//! The compute engines of a tile, their rates, and the engine that the vertices of a type run on.
//!
//! The name of a vertex type, as Poplar's libraries spell it, contains its types:
//! `poplin::ConvPartial1x1Out<half,float,true,false,16,4,false>`. The rules here therefore hold for
//! reports of every tool.

use super::VertexTypeInfo;

/// An engine that multiplies and adds on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComputeEngine {
    /// The matrix engine: accumulating matrix products (AMP) and sliding convolutions (SLIC).
    Amp,
    /// The vector units of the workers: everything else.
    Vector,
}

impl ComputeEngine {
    /// Both engines.
    pub const ALL: [ComputeEngine; 2] = [Self::Amp, Self::Vector];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amp => "amp",
            Self::Vector => "vector",
        }
    }

    /// The name for users.
    pub fn title(self) -> &'static str {
        match self {
            Self::Amp => "AMP",
            Self::Vector => "Vector units",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// The arithmetic types that engines distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArithmeticType {
    /// 8-bit floats.
    Quarter,
    Half,
    Float,
}

impl ArithmeticType {
    /// All types, the narrowest first.
    pub const ALL: [ArithmeticType; 3] = [Self::Quarter, Self::Half, Self::Float];

    /// The name in the file and in vertex types.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quarter => "quarter",
            Self::Half => "half",
            Self::Float => "float",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The type of a parameter of a vertex type. Vector units process integers and booleans at the
    /// rate of floats of their size.
    fn from_parameter(parameter: &str) -> Option<Self> {
        match parameter {
            "quarter" | "quarter_metadata" => Some(Self::Quarter),
            "half" | "short" | "unsigned short" | "bool" | "char" | "signed char"
            | "unsigned char" => Some(Self::Half),
            "float" | "int" | "unsigned int" | "unsigned" => Some(Self::Float),
            _ => None,
        }
    }
}

/// The rate of an engine of one tile, for types of operands and sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ComputeRate {
    pub engine: ComputeEngine,
    /// Type of the operands.
    pub input: ArithmeticType,
    /// Type of the sums.
    pub partials: ArithmeticType,
    /// Floating point operations per cycle at most; a multiply-accumulate counts as two.
    pub flops_per_cycle: u64,
}

/// The kind of work that the vertices of a type do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VertexWork {
    /// They compute on one engine, with operands and sums of these types.
    Arithmetic { engine: ComputeEngine, input: ArithmeticType, partials: ArithmeticType },
    /// They only move data.
    Copy,
    /// Their name does not tell.
    Unknown,
}

/// Prefixes of the names of classes that run on the matrix engine (poplibs lib/poplin/codelets).
const AMP_CLASSES: [&str; 3] = ["ConvPartial1x1Out", "ConvPartialnx1", "ConvPartial1xN"];

/// The namespaces of the libraries whose vertices compute in the types in their names.
const LIBRARIES: [&str; 4] = ["popops", "poplin", "popnn", "poprand"];

/// Parts of the names of classes that only move data (poplar_rt, and poplibs lib/popops/codelets).
const COPY_CLASSES: [&str; 3] = ["StridedCopy", "Memcpy", "Transpose"];

impl VertexTypeInfo {
    /// The work of its vertices, as far as the name shows it.
    pub fn work(&self) -> VertexWork {
        let (path, parameters) = self.name.split_once('<').unwrap_or((&self.name, ""));
        let (library, class) = path.rsplit_once("::").unwrap_or(("", path));
        if library == "poplar_rt" || COPY_CLASSES.iter().any(|part| class.contains(part)) {
            return VertexWork::Copy;
        }
        let parameters = parameters.strip_suffix('>').unwrap_or(parameters);
        let mut types =
            parameters.split(',').map(str::trim).filter_map(ArithmeticType::from_parameter);
        let known = LIBRARIES.contains(&library.split("::").next().unwrap_or_default());
        let Some(input) = types.next().filter(|_| known) else { return VertexWork::Unknown };
        // `ConvPartial1x4SLIC` takes windows of four; later versions call all of them 1xN.
        let slides = class.starts_with("ConvPartial1x") && class.ends_with("SLIC");
        if slides || AMP_CLASSES.iter().any(|start| class.starts_with(start)) {
            let partials = types.next().unwrap_or(input);
            return VertexWork::Arithmetic { engine: ComputeEngine::Amp, input, partials };
        }
        VertexWork::Arithmetic { engine: ComputeEngine::Vector, input, partials: input }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use ArithmeticType::{Float, Half, Quarter};

    #[test]
    fn names_of_vertex_types_show_their_engine() {
        let arithmetic =
            |engine, input, partials| VertexWork::Arithmetic { engine, input, partials };
        let amp = |input, partials| arithmetic(ComputeEngine::Amp, input, partials);
        let vector = |input| arithmetic(ComputeEngine::Vector, input, input);
        let cases = [
            ("poplin::ConvPartial1x1Out<half,float,true,false,16,4,false>", amp(Half, Float)),
            ("poplin::ConvPartialnx1<float,float,true,false>", amp(Float, Float)),
            ("poplin::ConvPartial1x1Out<quarter,half,true,false,16,8,false>", amp(Quarter, Half)),
            ("poplin::ConvPartial1x4SLIC<half,half,1,false,2>", amp(Half, Half)),
            ("poplin::ConvPartial1xNSLIC<half,float,1,true,4,2,4>", amp(Half, Float)),
            ("poplin::ConvPartialHorizontalMac<half,float,true>", vector(Half)),
            ("poplin::ReduceAdd<float,float,true,false>", vector(Float)),
            (
                "popops::Reduce<popops::ReduceAdd,half,float,false,\
                 popops::ReductionSpecialisation::STRIDED_REDUCE>",
                vector(Half),
            ),
            ("popops::UnaryOp1DSupervisor<popops::expr::UnaryOpType::NEGATE,int>", vector(Float)),
            ("popops::EncodeOneHot<unsigned int,half>", vector(Float)),
            ("popnn::MaxPooling<half>", vector(Half)),
            ("poplar_rt::DstStridedCopyDA32", VertexWork::Copy),
            ("poplin::Transpose2d<half>", VertexWork::Copy),
            ("poprand::SetSeedSupervisor", VertexWork::Unknown),
            ("MyVertex<float>", VertexWork::Unknown),
            ("", VertexWork::Unknown),
        ];
        for (name, work) in cases {
            let kind = VertexTypeInfo {
                name: name.to_owned(),
                code_bytes: Bytes::ZERO,
                shares_code: false,
                state_bytes: Bytes::ZERO,
            };
            assert_eq!(kind.work(), work, "{name}");
        }
    }
}
