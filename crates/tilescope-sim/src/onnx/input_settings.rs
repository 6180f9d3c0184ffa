//! Input settings in the properties of a file, as PopART's builder writes `InputSettings`:
//! `__tile_set/<input>`, `__exchange_strategy/<input>` (popart willow/src/builder_impl.cpp).

use super::importer::Importer;
use crate::graph::{GraphError, ImportProblem, InputExchange, InputSettings};
use crate::shape::TensorId;
use std::collections::{BTreeMap, HashMap};

const TILE_SET: &str = "__tile_set";
const EXCHANGE: &str = "__exchange_strategy";

impl Importer<'_> {
    /// Sets the tiles that copy each input, and the time of the copy. Unsupported properties are
    /// added to the ignored annotations of the same kind.
    ///
    /// # Errors
    /// Returns an error for values that PopART does not accept.
    pub(super) fn follow_metadata(
        &mut self,
        mut ignored: BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>, GraphError> {
        let inputs: HashMap<&str, Option<TensorId>> = self
            .file
            .inputs
            .iter()
            .map(|input| (self.value(*input).name.as_str(), self.tensors[input.index()]))
            .collect();
        let mut found: BTreeMap<TensorId, InputSettings> = BTreeMap::new();
        let file = self.file;
        for (key, value) in &file.metadata {
            let Some((kind, name)) = key.split_once('/').filter(|(kind, _)| kind.starts_with("__"))
            else {
                continue;
            };
            let Some(tensor) = inputs.get(name) else {
                *ignored.entry(kind.to_string()).or_default() += 1;
                continue;
            };
            // An input that nothing reads has no tensor.
            let Some(tensor) = *tensor else { continue };
            let number: Option<u32> = value.trim().parse().ok();
            let refuse = |known: &'static str| {
                let key = key.clone();
                let value = value.clone();
                GraphError::new(name, ImportProblem::Property { key, value, known })
            };
            match (kind, number) {
                (TILE_SET, Some(0 | 2)) => found.entry(tensor).or_default().io_tiles = Some(false),
                (TILE_SET, Some(1)) => found.entry(tensor).or_default().io_tiles = Some(true),
                (TILE_SET, _) => return Err(refuse("0 (compute) and 1 (I/O)")),
                (EXCHANGE, Some(number)) => {
                    let exchange = InputExchange::of_number(number);
                    let known = "0 (JustInTime), 1 (OverlapInnerLoop), 2 (OverlapLoops) and 3 \
                                 (OverlapStep)";
                    let exchange = exchange.ok_or_else(|| refuse(known))?;
                    found.entry(tensor).or_default().exchange = Some(exchange);
                }
                (EXCHANGE, None) => return Err(refuse("0 to 3")),
                _ => *ignored.entry(kind.to_string()).or_default() += 1,
            }
        }
        for (tensor, settings) in found {
            self.graph.set_input_settings(tensor, settings);
        }
        Ok(ignored)
    }
}
