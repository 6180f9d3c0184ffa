//! The labels of samples without repetition: a profile repeats its names with every sample.

use super::ProfileError;
use crate::limits::MAX_NAME_BYTES;
use crate::model::{SampleKind, SampleLabel};
use std::collections::HashMap;

/// Labels of a profile, with texts borrowed from its bytes.
#[derive(Default)]
pub(super) struct LabelTable<'a> {
    texts: Numbered<&'a [u8]>,
    labels: Numbered<Box<[u32]>>,
    /// The label under construction: its kind, then the texts of operation, kernel and metadata.
    open: Vec<u32>,
}

/// Values numbered in the order of arrival.
struct Numbered<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbered<T> {
    fn number(&mut self, value: T) -> u32 {
        // Each takes at least a word of the file, which is not that long.
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }
}

impl<'a> LabelTable<'a> {
    /// Begins a label.
    pub(super) fn begin(&mut self, kind: SampleKind, operation: &'a [u8], kernel: &'a [u8]) {
        self.open.clear();
        let kind = (0..).zip(SampleKind::ALL).find(|(_, of)| *of == kind);
        self.open.push(kind.map_or(0, |(number, _)| number));
        self.metadata(operation, kernel);
    }

    /// Adds a name and its value to the label under construction.
    pub(super) fn metadata(&mut self, name: &'a [u8], value: &'a [u8]) {
        let pair = [self.texts.number(name), self.texts.number(value)];
        self.open.extend(pair);
    }

    /// Completes the label under construction. Returns its number.
    pub(super) fn end(&mut self) -> Result<u32, ProfileError> {
        if let Some(known) = self.labels.numbers.get(self.open.as_slice()) {
            return Ok(*known);
        }
        Ok(self.labels.number(self.open.clone().into_boxed_slice()))
    }

    /// The kind of samples with this label.
    pub(super) fn kind(&self, label: u32) -> SampleKind {
        let kind = self.parts(label).first().and_then(|kind| SampleKind::ALL.get(*kind as usize));
        kind.copied().unwrap_or(SampleKind::Idle)
    }

    /// The numbers of the texts of its operation and its kernel.
    pub(super) fn operation_and_kernel(&self, label: u32) -> (u32, u32) {
        match self.parts(label) {
            [_, operation, kernel, ..] => (*operation, *kernel),
            _ => (0, 0),
        }
    }

    /// A text by its number, cut at the length limit of names.
    pub(super) fn text(&self, number: u32) -> String {
        let bytes = self.texts.values.get(number as usize).copied().unwrap_or(&[]);
        String::from_utf8_lossy(bytes.get(..MAX_NAME_BYTES).unwrap_or(bytes)).into_owned()
    }

    /// All labels in the order of their numbers.
    pub(super) fn labels(&self) -> Vec<SampleLabel> {
        (0..).take(self.labels.values.len()).map(|label| self.label(label)).collect()
    }

    fn label(&self, label: u32) -> SampleLabel {
        let (operation, kernel) = self.operation_and_kernel(label);
        let mut metadata: Vec<(String, String)> = Vec::new();
        for pair in self.parts(label).get(3..).unwrap_or(&[]).chunks_exact(2) {
            let &[name, value] = pair else { continue };
            let name = self.text(name);
            let value = self.text(value);
            match metadata.iter_mut().find(|(known, _)| *known == name) {
                // A repeated name keeps both values.
                Some((_, known)) => *known = format!("{known}, {value}"),
                None => metadata.push((name, value)),
            }
        }
        let operation = self.text(operation);
        let kernel = self.text(kernel);
        SampleLabel { kind: self.kind(label), operation, kernel, metadata }
    }

    fn parts(&self, label: u32) -> &[u32] {
        self.labels.values.get(label as usize).map_or(&[], |parts| parts)
    }
}
