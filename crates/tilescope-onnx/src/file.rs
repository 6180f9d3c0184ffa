//! A parsed and checked file.

use crate::check;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::OnnxGraph;
use crate::proto::{DimensionProto, ModelProto, ProtoReader, ValueInfoProto};
use crate::resolve;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{Read, Seek};
use std::path::Path;

/// A dimension of a graph's input, as in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dimension {
    Known(u64),
    /// Named by the exporter: `batch`. An open dimension without a name gets one from its input and
    /// axis: `input_ids.1`.
    Symbol(String),
}

impl Dimension {
    /// The name of an unnamed dimension.
    pub(crate) fn unnamed(input: &str, axis: usize) -> String {
        format!("{input}.{axis}")
    }
}

/// A tensor that the user feeds.
#[derive(Clone, Debug)]
pub struct GraphInput {
    pub name: String,
    pub element: ElementKind,
    pub dims: Vec<Dimension>,
}

/// A dimension without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Input and axis of each occurrence.
    pub places: Vec<(String, usize)>,
    /// True for the batch dimension: by its name, or because it is dimension 0 of all inputs that
    /// have dimensions.
    pub is_batch: bool,
}

/// The user's values for what a file leaves open: sizes, branches, iterations and numbers of
/// results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimValues {
    /// By name.
    pub by_name: BTreeMap<String, u64>,
    /// Value of the symbol that is the batch, unless `by_name` has one.
    pub batch: Option<u64>,
    /// A size of the first dimension of inputs in the file, and its replacement.
    pub first: Option<(u64, u64)>,
    /// Name of an `If` that depends on data -> true if its first branch runs.
    pub branches: BTreeMap<String, bool>,
    /// Name of a `Loop` -> number of its iterations.
    pub trips: BTreeMap<String, u64>,
    /// The maximum number of results of operators whose number of results depends on data, such as
    /// `NonZero`.
    pub max_results: Option<u64>,
    /// True if every iteration of a loop gets nodes of its own.
    pub unrolls: bool,
}

/// Largest value of a symbolic dimension.
const MAX_DIMENSION: u64 = 1 << 24;

/// A word in the names of symbols that count samples, for any exporter.
const BATCH_WORD: &str = "batch";

/// The minimum similarity of a suggested name; 1 means equal.
const NEAR: f64 = 0.5;

/// A parsed and checked file, without weights.
#[derive(Debug)]
pub struct OnnxFile {
    pub ir_version: i64,
    /// Name and version of the exporter, `pytorch 2.15.0`.
    pub producer: String,
    /// Version of the standard operator set.
    pub opset: u32,
    /// `metadata_props` of the file.
    pub metadata: Vec<(String, String)>,
    /// Hash of everything that was read, without weights, in hexadecimal: it detects changes of a
    /// file.
    pub content_hash: String,
    /// Number of nodes of the graph in the file, without nested graphs and functions.
    pub node_count: usize,
    pub(crate) model: ModelProto,
    /// Nodes of the graph in an order in which they can be computed.
    pub(crate) order: Vec<usize>,
    inputs: Vec<GraphInput>,
}

/// Number of first bytes of a file that are checked for its type.
const FIRST_BYTES: usize = 16;

/// Tags that may be first in a `ModelProto`: version, producer, domain, model version, graph,
/// operator sets and properties, each with its wire type.
const FIRST_TAGS: [u8; 9] = [0x08, 0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72];

/// True if a file may be an ONNX file, regardless of its name: it begins with a field of a model,
/// unlike text. Exporters write the version first, with a byte that no text begins with.
fn begins_like_a_model(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c".contains(byte);
    start.first().is_some_and(|tag| FIRST_TAGS.contains(tag)) && !start.iter().all(is_text)
}

impl OnnxFile {
    /// True if a file has the name of ONNX files or begins like one.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
            return true;
        }
        // Opening a pipe could block until another process writes to it.
        let file = if path.is_file() { std::fs::File::open(path).ok() } else { None };
        let mut start = Vec::new();
        let read = file.map(|file| file.take(FIRST_BYTES as u64).read_to_end(&mut start));
        read.is_some_and(|read| read.is_ok()) && begins_like_a_model(&start)
    }

    /// Reads and checks a file. Tensor data are skipped; no other file is opened.
    ///
    /// # Errors
    /// If the file cannot be read, is not an ONNX file, or is not supported.
    pub fn open(path: &Path) -> Result<Self, OnnxError> {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(OnnxError::File("this is a directory, not an ONNX file".to_owned()));
        }
        Self::read(file)
    }

    /// Like [`OnnxFile::open`], from any seekable source.
    ///
    /// # Errors
    /// As [`OnnxFile::open`].
    pub fn read(source: impl Read + Seek) -> Result<Self, OnnxError> {
        let mut reader = ProtoReader::new(source)?;
        let model = reader.model()?;
        let opset = check::opset(&model)?;
        let graph = check::graph(&model)?;
        let order = check::order(graph)?;
        let inputs = graph_inputs(&model)?;
        let names = [model.producer_name.as_str(), model.producer_version.as_str()];
        Ok(Self {
            ir_version: model.ir_version,
            producer: names.join(" ").trim().to_owned(),
            opset,
            metadata: model.metadata.clone(),
            content_hash: reader.content_hash(),
            node_count: graph.nodes.len(),
            order,
            inputs,
            model,
        })
    }

    /// The inputs that the user feeds, without initialisers.
    #[must_use]
    pub fn inputs(&self) -> &[GraphInput] {
        &self.inputs
    }

    /// Dimensions of inputs without a value, in the order of the file.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for input in &self.inputs {
            for (axis, dimension) in input.dims.iter().enumerate() {
                let Dimension::Symbol(name) = dimension else { continue };
                let place = (input.name.clone(), axis);
                let at = *known.entry(name).or_insert_with(|| {
                    let name = name.clone();
                    let places = Vec::new();
                    symbols.push(Symbol { name, places, is_batch: false });
                    symbols.len() - 1
                });
                symbols[at].places.push(place);
            }
        }
        let batch = self.batch_symbol();
        for symbol in &mut symbols {
            symbol.is_batch = batch == Some(&*symbol.name);
        }
        symbols
    }

    /// The symbol that counts samples: the only one named after the batch, or else the one that is
    /// dimension 0 of all inputs that have dimensions.
    fn batch_symbol(&self) -> Option<&str> {
        let dims = self.inputs.iter().flat_map(|input| &input.dims);
        let symbols = dims.filter_map(|dim| match dim {
            Dimension::Symbol(name) => Some(name.as_str()),
            Dimension::Known(_) => None,
        });
        let named: BTreeSet<&str> =
            symbols.filter(|name| name.to_lowercase().contains(BATCH_WORD)).collect();
        let mut firsts = self.inputs.iter().filter_map(|input| input.dims.first());
        if named.len() == 1 {
            return named.into_iter().next();
        }
        let Some(first @ Dimension::Symbol(name)) = firsts.next() else { return None };
        if firsts.all(|other| other == first) { Some(name) } else { None }
    }

    /// Folds, and infers all shapes with these values of symbols, in one walk.
    ///
    /// # Errors
    /// If a symbol has no value, a shape cannot be inferred, or nodes and shapes contradict each
    /// other.
    pub fn resolve(&self, dims: &DimValues) -> Result<OnnxGraph, OnnxError> {
        let values = self.symbol_values(dims)?;
        resolve::resolve(self, &values, dims)
    }

    /// Symbol -> value, for all symbols of inputs.
    fn symbol_values(&self, dims: &DimValues) -> Result<BTreeMap<String, u64>, OnnxError> {
        let symbols = self.symbols();
        if let Some(name) =
            dims.by_name.keys().find(|name| symbols.iter().all(|s| s.name != **name))
        {
            return Err(unknown_dimension(name, &symbols));
        }
        let mut values = BTreeMap::new();
        let mut open = Vec::new();
        for symbol in symbols {
            let batch = dims.batch.filter(|_| symbol.is_batch);
            // There is at least one sample, but there may be no token of an earlier call.
            let least = u64::from(symbol.is_batch);
            match dims.by_name.get(&symbol.name).copied().or(batch) {
                Some(value) if (least..=MAX_DIMENSION).contains(&value) => {
                    values.insert(symbol.name, value);
                }
                Some(value) => {
                    let problem = format!("{value} is not between {least} and {MAX_DIMENSION}");
                    return Err(OnnxError::Graph {
                        place: format!("dimension {:?}", symbol.name),
                        problem,
                    });
                }
                None => open.push(symbol.name),
            }
        }
        if open.is_empty() { Ok(values) } else { Err(OnnxError::OpenDimensions(open)) }
    }
}

fn unknown_dimension(name: &str, symbols: &[Symbol]) -> OnnxError {
    let known: Vec<String> = symbols.iter().map(|symbol| symbol.name.clone()).collect();
    let measure_likeness = |other: &str| strsim::normalized_damerau_levenshtein(name, other);
    let nearest = known.iter().max_by(|a, b| measure_likeness(a).total_cmp(&measure_likeness(b)));
    let nearest = nearest.filter(|nearest| measure_likeness(nearest) >= NEAR).cloned();
    OnnxError::UnknownDimension { name: name.to_owned(), known, nearest }
}

/// Inputs other than initialisers: files of IR version 3 list those as inputs too.
fn graph_inputs(model: &ModelProto) -> Result<Vec<GraphInput>, OnnxError> {
    let Some(graph) = &model.graph else { return Ok(Vec::new()) };
    let initializers: HashSet<&str> =
        graph.initializers.iter().map(|tensor| &*tensor.name).collect();
    let fed = graph.inputs.iter().filter(|input| !initializers.contains(&*input.name));
    fed.map(graph_input).collect()
}

fn graph_input(info: &ValueInfoProto) -> Result<GraphInput, OnnxError> {
    let to_error = |problem: String| {
        let place = format!("input {:?}", info.name);
        OnnxError::Graph { place, problem }
    };
    let Some((element, dims)) = &info.tensor else {
        return Err(to_error("it does not have a tensor type".to_owned()));
    };
    let Some(dims) = dims else {
        return Err(to_error("its shape is missing: export the model with shapes".to_owned()));
    };
    let read_dimension = |(axis, dim): (usize, &DimensionProto)| match dim {
        DimensionProto::Symbol(name) => Ok(Dimension::Symbol(name.to_string())),
        // Some exporters write -1 for an open dimension.
        DimensionProto::Open | DimensionProto::Value(-1) => {
            Ok(Dimension::Symbol(Dimension::unnamed(&info.name, axis)))
        }
        DimensionProto::Value(size) => match u64::try_from(*size) {
            Ok(size) => Ok(Dimension::Known(size)),
            Err(_) => Err(to_error(format!("its dimension {axis} is {size}"))),
        },
    };
    let dims = dims.iter().enumerate().map(read_dimension).collect::<Result<_, _>>()?;
    Ok(GraphInput { name: info.name.to_string(), element: *element, dims })
}
