//! `onnx`: lists the content of an ONNX file, and the treatment of its operators.

use super::command::{CliCommand, CliError, json_argument, path_of};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilescope_analysis::confidence::{MemoryFit, memory_fit};
use tilescope_onnx::{
    DimValues, Dimension, GraphInput, OnnxError, OnnxFile, OnnxGraph, Symbol, composed_operators,
    is_foldable,
};
use tilescope_report::units::{Bytes, binary_bytes, grouped};
use tilescope_sim::onnx::{
    ImportedFile, OpState, annotated_stages, has_loss, op_state, refused_nodes,
};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MoreIpus, compile, enough_ipus};

/// `tilescope onnx`
pub(super) const COMMAND: CliCommand = CliCommand { name: "onnx", arguments, run };

/// The prefix of keys of symbolic dimensions.
const DIM_KEY: &str = "model.dim.";

/// The prefix of keys of `If`s that depend on data.
const BRANCH_KEY: &str = "model.branch.";

/// The prefix of keys of `Loop`s that depend on data.
const TRIPS_KEY: &str = "model.trips.";

/// The key of the most results of operators whose number of results depends on data.
const RESULTS_KEY: &str = "model.max_results";

/// The maximum number of refused nodes that are listed.
const MOST_REFUSED: usize = 10;

/// The key of the batch, for any name of its symbol.
const BATCH_KEY: &str = "model.batch_size";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List the content of an ONNX file: inputs, dimensions, parameters, and operators \
                with their treatment")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("The ONNX file; external weights are not needed"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Set values that the file leaves open, as for simulate: \
                       model.dim.sequence=128, model.trips.NAME=8, model.branch.NAME=then, \
                       model.max_results=100"),
        )
        .arg(
            Arg::new("no-fit")
                .long("no-fit")
                .action(ArgAction::SetTrue)
                .help("Do not compile the model, which shows whether it fits in memory"),
        )
        .arg(json_argument())
        .after_help(
            "The batch is 1 unless model.batch_size, or the name of its dimension, sets it. Once every \
             other symbolic dimension has a value, multiply-accumulates are counted, nodes are folded, \
             and the model is compiled for the machine that simulate chooses.\n\n\
             Examples:\n  tilescope onnx model.onnx\n  \
             tilescope onnx model.onnx --set model.dim.batch=4 --set model.dim.sequence=384\n  \
             tilescope onnx model.onnx --json",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let path = path_of(matches, "file");
    let to_error =
        |error: OnnxError| JobError::InFile { file: path.to_owned(), error: error.into() };
    let file = Arc::new(OnnxFile::open(path).map_err(to_error)?);
    let dims = given_dims(matches, &file)?;
    let needs_dims = file.symbols().iter().any(|symbol| {
        let of_batch = dims.batch.filter(|_| symbol.is_batch);
        dims.by_name.get(&symbol.name).copied().or(of_batch).is_none()
    });
    // A symbol without a value leaves figures open, but an unknown one is an error.
    let has_wrong_names =
        dims.by_name.keys().any(|name| file.symbols().iter().all(|s| s.name != *name));
    let is_open = needs_dims && !has_wrong_names;
    let mut graph = None;
    let mut fit = None;
    if !is_open && !matches.get_flag("no-fit") {
        let (found, built) = ModelFit::of(path, &file, super::simulate::overrides(matches));
        // Loops of a trained model are unrolled for its backward pass, but not in the listing.
        graph = built.filter(|built| built.dims == dims).map(|built| built.graph);
        fit = Some(found);
    }
    if !is_open && graph.is_none() {
        graph = Some(Arc::new(file.resolve(&dims).map_err(to_error)?));
    }
    let graph = graph.as_deref();
    let refused = graph.map(refused_nodes).unwrap_or_default();
    let listing = OnnxListing { file: &file, graph, refused, fit };
    if matches.get_flag("json") {
        return super::command::print_json(&listing.json(), output);
    }
    listing.text(output)
}

/// Values of dimensions from `--set`; the batch defaults to 1, as in a spec.
fn given_dims(matches: &ArgMatches, file: &OnnxFile) -> Result<DimValues, CliError> {
    let mut dims = DimValues { batch: Some(1), ..DimValues::default() };
    for given in matches.get_many::<String>("set").into_iter().flatten() {
        let to_error = || {
            let known: Vec<String> = file
                .symbols()
                .into_iter()
                .map(|symbol| format!("{DIM_KEY}{}", symbol.name))
                .collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            UsageError::NoDimension { given: given.clone(), known }
        };
        // The name of a dimension may contain any characters.
        let (key, value) = given.rsplit_once('=').ok_or_else(to_error)?;
        if let Some(name) = key.trim().strip_prefix(BRANCH_KEY) {
            let is_first = match value.trim() {
                "then" => true,
                "else" => false,
                _ => return Err(to_error().into()),
            };
            dims.branches.insert(name.to_owned(), is_first);
            continue;
        }
        let value = value.trim().parse().map_err(|_| to_error())?;
        if let Some(name) = key.trim().strip_prefix(TRIPS_KEY) {
            dims.trips.insert(name.to_owned(), value);
            continue;
        }
        match key.trim().strip_prefix(DIM_KEY) {
            Some(name) => {
                dims.by_name.insert(name.to_owned(), value);
            }
            None if key.trim() == BATCH_KEY => dims.batch = Some(value),
            None if key.trim() == RESULTS_KEY => dims.max_results = Some(value),
            None => return Err(to_error().into()),
        }
    }
    Ok(dims)
}

/// The listing of a file, and of its graph if all dimensions have values.
struct OnnxListing<'a> {
    file: &'a OnnxFile,
    graph: Option<&'a OnnxGraph>,
    /// Nodes that a simulation would refuse, with the reasons.
    refused: Vec<(usize, String)>,
    /// The result of compiling it, if requested.
    fit: Option<ModelFit>,
}

/// The fit of a model on the default machine of a simulation.
enum ModelFit {
    /// The reason why it cannot be simulated.
    Refused(String),
    Compiled {
        machine: String,
        fit: MemoryFit,
        fullest_tile: Bytes,
        /// The last number of IPUs that was tried, if it does not fit.
        more: Option<MoreIpus>,
    },
}

impl ModelFit {
    /// Compiles the model of a file. Also returns its graph, if it has one for these overrides.
    fn of(
        path: &Path,
        file: &Arc<OnnxFile>,
        overrides: Vec<String>,
    ) -> (Self, Option<ImportedFile>) {
        let Some(name) = path.to_str() else {
            return (Self::Refused("the path is not UTF-8".to_owned()), None);
        };
        let source = SpecSource::of_model(name, file.clone(), overrides);
        let spec = match Spec::build(&source) {
            Ok(spec) => spec,
            Err(error) => return (Self::Refused(error.to_string()), None),
        };
        let fit = Self::compiled(&source, &spec).unwrap_or_else(Self::Refused);
        (fit, spec.model.file)
    }

    fn compiled(source: &SpecSource, spec: &Spec) -> Result<Self, String> {
        let compiled = compile(spec).map_err(|error| error.to_string())?;
        let ipus = spec.target.ipus;
        let chip = spec.target.chip.name;
        let doing = if spec.model.training { "training" } else { "inference" };
        Ok(Self::Compiled {
            machine: format!("{doing} on {ipus} x {chip}"),
            fit: memory_fit(&compiled.compilation),
            fullest_tile: compiled.fullest_tile(),
            more: match compiled.tiles_out_of_memory() {
                0 => None,
                _ => enough_ipus(source, spec),
            },
        })
    }

    fn words(&self) -> String {
        match self {
            Self::Refused(problem) => format!("cannot be simulated: {problem}"),
            Self::Compiled { machine, fit, fullest_tile, more } => {
                let mut words = format!(
                    "{machine}: {}, fullest tile {}",
                    fit.words(),
                    binary_bytes(fullest_tile.0)
                );
                if let Some(more) = more {
                    words += &format!(". {}", more.words());
                }
                words
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Refused(problem) => json!({ "refused": problem }),
            Self::Compiled { machine, fit, fullest_tile, more } => {
                let enough = more.as_ref().filter(|more| more.fits);
                json!({
                    "machine": machine,
                    "fit": fit,
                    "fullest_tile_bytes": fullest_tile.0,
                    "enough_ipus": enough.map(|enough| enough.ipus),
                    "changes": enough.map(|enough| &enough.changes),
                })
            }
        }
    }
}

/// An operator with its count and treatment.
struct OpRow {
    op: String,
    count: u64,
    state: &'static str,
}

impl OnnxListing<'_> {
    /// Operators that remain, that are replaced, and that are folded. Nothing is folded unless all
    /// dimensions have values.
    fn ops(&self) -> Vec<OpRow> {
        let Some(graph) = self.graph else {
            let rows = self.file.op_counts().into_iter();
            return rows.map(|(op, count)| OpRow { state: open_state(&op), op, count }).collect();
        };
        let mut refused: BTreeMap<String, u64> = BTreeMap::new();
        for (at, _) in &self.refused {
            *refused.entry(written_op(graph, *at)).or_default() += 1;
        }
        let kept = graph.op_counts();
        let mut rows = Vec::new();
        for (op, count) in &kept {
            let wrong = refused.remove(op).unwrap_or(0).min(*count);
            if wrong > 0 {
                rows.push(OpRow { op: op.clone(), count: wrong, state: REFUSED });
            }
            if *count > wrong {
                let state = op_state(op).name();
                rows.push(OpRow { op: op.clone(), count: count - wrong, state });
            }
        }
        for (op, count) in &graph.composed {
            let state = if refused.contains_key(op) { REFUSED } else { OpState::Composed.name() };
            rows.push(OpRow { op: op.clone(), count: *count, state });
        }
        for (op, count) in &graph.folded {
            rows.push(OpRow { op: op.clone(), count: *count, state: "folded" });
        }
        rows
    }

    fn json(&self) -> Value {
        let inputs = self.file.inputs().iter().map(|input| {
            let dims: Vec<Value> = input.dims.iter().map(dim_json).collect();
            json!({ "name": input.name, "type": input.element.name(), "dims": dims })
        });
        let symbols = self.file.symbols();
        let suggested = self.file.suggested_sizes(&symbols);
        let symbols = symbols.iter().zip(suggested).map(|(symbol, size)| symbol_json(symbol, size));
        let ops: Vec<Value> = self.ops().iter().map(|row| self.op_json(row)).collect();
        let annotated = self.graph.and_then(annotated_stages);
        json!({
            "opset": self.file.opset,
            "producer": self.file.producer,
            "content_hash": self.file.content_hash,
            "nodes": self.file.node_count,
            "inputs": inputs.collect::<Vec<_>>(),
            "outputs": self.graph.map(outputs_json),
            "symbols": symbols.collect::<Vec<_>>(),
            "has_loss": self.graph.map(has_loss),
            "annotated_ipus": annotated.map(|annotated| annotated.ipus),
            "annotated_stages": annotated.map(|annotated| annotated.merged),
            "parameters": self.graph.map(OnnxGraph::parameter_count),
            "macs": self.graph.map(OnnxGraph::macs),
            "ops": ops,
            "memory": self.fit.as_ref().map(ModelFit::json),
        })
    }

    /// An operator; one that is not modelled has the first of its nodes.
    fn op_json(&self, row: &OpRow) -> Value {
        let mut json = json!({ "op": row.op, "count": row.count, "state": row.state });
        let Some(graph) = self.graph else { return json };
        if row.state == OpState::Unknown.name() {
            let first = graph.nodes.iter().find(|node| node.full_op() == row.op);
            json["node"] = json!(first.map(|node| &node.name));
        } else if row.state == REFUSED {
            let first = self.refused.iter().find(|(at, _)| written_op(graph, *at) == row.op);
            json["node"] = json!(first.map(|(at, _)| &graph.nodes[*at].name));
            json["problem"] = json!(first.map(|(_, problem)| problem));
        }
        json
    }

    fn text(&self, output: &mut dyn Write) -> Result<(), CliError> {
        let file = self.file;
        writeln!(output, "opset {}, written by {}", file.opset, file.producer)?;
        writeln!(output, "{} nodes", grouped(file.node_count as u64))?;
        for input in file.inputs() {
            writeln!(output, "input {}", describe_input(input))?;
        }
        for symbol in file.symbols() {
            let batch = if symbol.is_batch { ", the batch: also model.batch_size" } else { "" };
            writeln!(output, "dimension {DIM_KEY}{}{batch}", symbol.name)?;
        }
        match self.graph {
            Some(graph) => {
                writeln!(output, "{} parameters", grouped(graph.parameter_count()))?;
                writeln!(
                    output,
                    "{} multiply-accumulates in a forward pass",
                    grouped(graph.macs())
                )?;
            }
            None => writeln!(
                output,
                "for parameters, multiply-accumulates and folded nodes, give each dimension a \
                 value with --set"
            )?,
        }
        let rows = self.ops();
        let width = rows.iter().map(|row| row.op.len()).max().unwrap_or(0).max("operator".len());
        writeln!(output, "\n{:width$} {:>7}  becomes", "operator", "nodes")?;
        for OpRow { op, count, state } in rows {
            writeln!(output, "{op:width$} {:>7}  {state}", grouped(count))?;
        }
        for (_, problem) in self.refused.iter().take(MOST_REFUSED) {
            writeln!(output, "refused: {problem}")?;
        }
        if let Some(fit) = &self.fit {
            writeln!(output, "\n{}", fit.words())?;
        }
        Ok(())
    }
}

/// The treatment of an operator whose operands the simulation does not accept.
const REFUSED: &str = "refused";

/// The treatment of an operator before sizes are known. It is open for one that may fold from
/// shapes and constants, or may be decided by them.
fn open_state(op: &str) -> &'static str {
    match op_state(op) {
        OpState::Unknown if composed_operators().any(|composed| composed == op) => {
            OpState::Composed.name()
        }
        OpState::Unknown if is_foldable(op) => "open",
        state => state.name(),
    }
}

/// The operator in the file that a node is, or is a part of.
fn written_op(graph: &OnnxGraph, at: usize) -> String {
    let source = graph.nodes[at].source();
    source.rsplit_once('@').map_or(source.clone(), |(op, _)| op.to_owned())
}

/// A dimension without a value, with an initial size.
fn symbol_json(symbol: &Symbol, suggested: u64) -> Value {
    let places = symbol.places.iter();
    let places = places.map(|(input, axis)| json!({ "input": input, "axis": axis }));
    json!({
        "name": symbol.name,
        "is_batch": symbol.is_batch,
        "places": places.collect::<Vec<_>>(),
        "suggested": suggested,
    })
}

fn outputs_json(graph: &OnnxGraph) -> Vec<Value> {
    graph
        .outputs
        .iter()
        .copied()
        .map(|id| {
            let value = graph.value(id);
            json!({ "name": value.name, "type": value.element.name(), "dims": value.dims })
        })
        .collect()
}

fn dim_json(dim: &Dimension) -> Value {
    match dim {
        Dimension::Known(size) => json!(size),
        Dimension::Symbol(name) => json!(name),
    }
}

/// `input_ids: int64 [batch, sequence]`.
fn describe_input(input: &GraphInput) -> String {
    let dims: Vec<String> = input
        .dims
        .iter()
        .map(|dim| match dim {
            Dimension::Known(size) => size.to_string(),
            Dimension::Symbol(name) => name.clone(),
        })
        .collect();
    format!("{}: {} [{}]", input.name, input.element, dims.join(", "))
}
