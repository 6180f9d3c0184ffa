//! Notes for the reader of a report about the conversion of a file to a model.

use super::importer::Importer;
use std::collections::HashMap;
use tilescope_onnx::{ElementKind, OnnxValue, ValueSource};

impl Importer<'_> {
    /// Adds the notes to the graph.
    pub(super) fn add_notes(&mut self) {
        let notes = [self.narrowed_types(), self.tables_twice()];
        for note in notes.into_iter().flatten() {
            self.graph.note(note);
        }
    }

    /// A note on types that IPUs do not have.
    fn narrowed_types(&self) -> Option<String> {
        let mut read = self.file.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        if !read.any(|value| self.value(*value).element == ElementKind::BFloat16) {
            return None;
        }
        Some(
            "bfloat16 tensors of the file are simulated as float16, because IPUs do not support \
             bfloat16"
                .to_string(),
        )
    }

    /// A note on tables that the exporter wrote a second time, transposed, for the head that shares
    /// them.
    fn tables_twice(&self) -> Option<String> {
        let heads = [self.matrices(1, "MatMul"), self.matrices(1, "Linear")].concat();
        let by_shape: HashMap<[u64; 2], &OnnxValue> =
            heads.into_iter().map(|head| ([head.dims[0], head.dims[1]], head)).collect();
        for table in self.matrices(0, "Gather") {
            let turned = [table.dims[1], table.dims[0]];
            if let Some(head) = by_shape.get(&turned)
                && turned[0] != turned[1]
            {
                return Some(format!(
                    "{:?} has the transposed shape of {:?}. If the model shares one table, its \
                     exporter has stored it twice, and it is loaded twice, as in PopART",
                    head.name, table.name
                ));
            }
        }
        None
    }

    /// Weights with two axes that nodes of an operator read as this input.
    fn matrices(&self, input: usize, op: &str) -> Vec<&OnnxValue> {
        let nodes = self.file.nodes.iter().filter(|node| node.op == op);
        let read = nodes.filter_map(|node| node.inputs.get(input).copied().flatten());
        let values = read.map(|value| self.value(value));
        values
            .filter(|value| value.source == ValueSource::Initializer && value.dims.len() == 2)
            .collect()
    }
}
