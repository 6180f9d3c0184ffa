//! Sequences of handles, built on demand, and of numbers by tile.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice};
use std::sync::Arc;
use tilescope_report::units::TileRuns;

/// A handle as an object of Python.
pub(super) fn object<T>(py: Python<'_>, handle: T) -> PyResult<Py<PyAny>>
where
    T: Into<PyClassInitializer<T>> + pyo3::PyClass,
{
    Ok(Py::new(py, handle)?.into_any())
}

type MakeItem = dyn Fn(Python<'_>, usize) -> PyResult<Py<PyAny>> + Send + Sync;

/// A sequence whose items are built on access.
#[pyclass(frozen, sequence, module = "tilescope.pva")]
pub(crate) struct List {
    item: Arc<MakeItem>,
    first: isize,
    stride: isize,
    count: usize,
}

/// Number of items of a list that `repr` shows.
const PRINTED_ITEMS: usize = 10;

impl List {
    /// A list of `count` items, built from their positions.
    pub(super) fn new(
        count: usize,
        item: impl Fn(Python<'_>, usize) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Self {
        Self { item: Arc::new(item), first: 0, stride: 1, count }
    }

    /// A list of items built from the entries of `ids`.
    pub(super) fn of_ids<I: Copy + Send + Sync + 'static>(
        ids: Vec<I>,
        item: impl Fn(Python<'_>, I) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Self {
        let count = ids.len();
        Self::new(count, move |py, at| match ids.get(at) {
            Some(id) => item(py, *id),
            None => Err(out_of_range()),
        })
    }

    fn at(&self, py: Python<'_>, position: usize) -> PyResult<Py<PyAny>> {
        let place = self.first + self.stride * position.cast_signed();
        (self.item)(py, place.unsigned_abs())
    }
}

#[pymethods]
impl List {
    fn __len__(&self) -> usize {
        self.count
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let indices = slice.indices(self.count.cast_signed())?;
            let part = Self {
                item: self.item.clone(),
                first: self.first + self.stride * indices.start,
                stride: self.stride * indices.step,
                count: indices.slicelength,
            };
            return object(py, part);
        }
        self.at(py, position(key, self.count)?)
    }

    fn __iter__(slf: Py<Self>) -> ListIterator {
        ListIterator { list: slf, next: std::sync::atomic::AtomicUsize::new(0) }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = (0..self.count.min(PRINTED_ITEMS)).map(|at| {
            let text = self.at(py, at)?.bind(py).repr()?;
            Ok(text.to_string())
        });
        let mut shown = shown.collect::<PyResult<Vec<String>>>()?;
        if self.count > PRINTED_ITEMS {
            shown.push(format!("… ({} in all)", self.count));
        }
        Ok(format!("[{}]", shown.join(", ")))
    }
}

fn out_of_range() -> PyErr {
    PyIndexError::new_err("list index out of range")
}

/// The position for an index of Python; a negative one counts from the end.
fn position(key: &Bound<'_, PyAny>, count: usize) -> PyResult<usize> {
    let index: isize = key
        .extract()
        .map_err(|_| PyTypeError::new_err("list indices must be integers or slices"))?;
    let index = if index < 0 { index + count.cast_signed() } else { index };
    usize::try_from(index).ok().filter(|index| *index < count).ok_or_else(out_of_range)
}

/// Iterates over a [`List`] once.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct ListIterator {
    list: Py<List>,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl ListIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let at = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let list = self.list.get();
        if at < list.count { list.at(py, at).map(Some) } else { Ok(None) }
    }
}

/// An integer for each tile of the replica; 0 for tiles that take no part. NumPy reads it without a
/// copy.
#[pyclass(frozen, sequence, module = "tilescope.pva")]
pub(crate) struct TileValues {
    values: Vec<u64>,
}

impl TileValues {
    pub(super) fn new(values: Vec<u64>) -> Self {
        Self { values }
    }
}

/// Adds values of runs of tiles to those of single tiles.
pub(super) fn add_runs<T>(values: &mut [u64], runs: &TileRuns<T>, value: impl Fn(&T) -> u64) {
    for (tiles, of) in runs.iter() {
        let more = value(of);
        let on_run = values.get_mut(tiles.indices()).into_iter().flatten();
        on_run.for_each(|sum| *sum = sum.saturating_add(more));
    }
}

#[pymethods]
impl TileValues {
    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if key.is_instance_of::<PySlice>() {
            return Ok(self.list(py)?.as_any().get_item(key)?.unbind());
        }
        let at = position(key, self.values.len())?;
        let value = self.values.get(at).copied().ok_or_else(out_of_range)?;
        Ok(value.into_pyobject(py)?.into_any().unbind())
    }

    /// Iterates over Python integers, whose sums cannot overflow.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        self.list(py)?.try_iter()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => Ok(self.values == other.get().values),
            Err(_) => self.list(py)?.eq(other),
        }
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.values)
    }

    /// NumPy's array interface, version 3: unsigned integers of 64 bits, read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.values.len(),))?;
        interface.set_item("typestr", if cfg!(target_endian = "big") { ">u8" } else { "<u8" })?;
        // NumPy keeps this object alive while it uses the address.
        interface.set_item("data", (self.values.as_ptr() as usize, true))?;
        Ok(interface)
    }
}

impl TileValues {
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.values)
    }
}
