//! A table of a report, as Arrow.

use crate::errors::{arrow_error, unknown_name};
use crate::stream::GuardedReader;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, SchemaRef};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyFloat, PyInt, PyList};
use std::sync::Arc;
use tilescope_arrow::ArrowTable;

/// Columns and rows, exported through the Arrow PyCapsule interface.
#[pyclass(frozen, module = "tilescope._tilescope")]
pub(crate) struct Table {
    table: ArrowTable,
}

impl Table {
    pub(crate) fn new(table: ArrowTable) -> Self {
        Self { table }
    }

    pub(crate) fn whole(batch: RecordBatch) -> Self {
        Self::new(ArrowTable::Whole(batch))
    }

    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn reader(&self) -> GuardedReader {
        GuardedReader::new(self.schema(), self.table.batches())
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.table.rows())?)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Name, type, unit of the numbers and meaning of each column.
    #[getter]
    fn schema_rows(&self) -> Vec<(String, &'static str, Option<String>, Option<String>)> {
        let schema = self.schema();
        let row = |field: &std::sync::Arc<arrow_schema::Field>| {
            let said = |key: &str| field.metadata().get(key).cloned();
            (field.name().clone(), type_name(field.data_type()), said("unit"), said("about"))
        };
        schema.fields().iter().map(row).collect()
    }

    /// The types of the columns, as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema().as_ref()).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, as a capsule that returns one batch after another. A requested schema is ignored,
    /// as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(self.reader()));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The first `limit` values of a column, as Python objects.
    #[pyo3(signature = (name, limit=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let schema = self.schema();
        let Some((place, _)) = schema.column_with_name(name) else {
            let known = self.columns().join(", ");
            return Err(unknown_name(format!("unknown column {name:?}; known: {known}")));
        };
        let limit = limit.unwrap_or(usize::MAX);
        let list = PyList::empty(py);
        let mut reader = self.reader();
        while list.len() < limit {
            let Some(batch) = py.detach(|| reader.next()) else { break };
            let batch = batch.map_err(arrow_error)?;
            // Ctrl-C must not wait for the last of 10^8 rows.
            py.check_signals()?;
            let rows = batch.num_rows().min(limit - list.len());
            for row in 0..rows {
                list.append(value(py, batch.column(place), row)?)?;
            }
        }
        Ok(list)
    }
}

/// The type that values of a column have in Python.
fn type_name(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "bool",
        DataType::Float32 | DataType::Float64 => "float",
        DataType::Binary => "bytes",
        kind if kind.is_integer() => "int",
        _ => "str",
    }
}

/// A value of a column.
fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any()),
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            let texts = column.values().as_string::<i32>();
            match column.key(row) {
                Some(key) => texts.value(key).into_bound_py_any(py),
                None => Ok(py.None().into_bound(py)),
            }
        }
        _ => column.as_string::<i32>().value(row).into_bound_py_any(py),
    }
}

/// A table of Python values: one type for each column, text for mixed columns.
#[pyfunction]
pub(crate) fn table_of_columns(columns: Vec<(String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Table> {
    let arrays: Vec<(String, ArrayRef, bool)> = columns
        .into_iter()
        .map(|(name, values)| Ok((name, array(&values)?, true)))
        .collect::<PyResult<_>>()?;
    if arrays.is_empty() {
        return Ok(Table::whole(RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()))));
    }
    Ok(Table::whole(RecordBatch::try_from_iter_with_nullable(arrays).map_err(arrow_error)?))
}

/// Booleans, integers, floats or bytes if all values are; otherwise texts.
fn array(values: &[Bound<'_, PyAny>]) -> PyResult<ArrayRef> {
    let are_all =
        |is: fn(&Bound<'_, PyAny>) -> bool| values.iter().all(|of| of.is_none() || is(of));
    if values.iter().all(|of| of.is_none()) {
        return Ok(Arc::new(StringArray::new_null(values.len())));
    }
    // A bool is also an int in Python, so it is checked first.
    if are_all(|of| of.is_instance_of::<PyBool>()) {
        let flags: Vec<Option<bool>> =
            values.iter().map(|of| of.extract()).collect::<PyResult<_>>()?;
        return Ok(Arc::new(BooleanArray::from(flags)));
    }
    if are_all(|of| of.is_instance_of::<PyInt>()) {
        let whole: Result<Vec<Option<i64>>, _> = values.iter().map(|of| of.extract()).collect();
        if let Ok(whole) = whole {
            return Ok(Arc::new(Int64Array::from(whole)));
        }
    }
    if are_all(|of| of.is_instance_of::<PyInt>() || of.is_instance_of::<PyFloat>()) {
        let real: Vec<Option<f64>> =
            values.iter().map(|of| of.extract()).collect::<PyResult<_>>()?;
        return Ok(Arc::new(Float64Array::from(real)));
    }
    if are_all(|of| of.is_instance_of::<PyBytes>()) {
        let bytes: Vec<Option<Vec<u8>>> =
            values.iter().map(|of| of.extract()).collect::<PyResult<_>>()?;
        return Ok(Arc::new(BinaryArray::from_iter(bytes)));
    }
    let texts: Vec<Option<String>> = values
        .iter()
        .map(|of| -> PyResult<Option<String>> {
            if of.is_none() { Ok(None) } else { Ok(Some(of.str()?.to_string())) }
        })
        .collect::<PyResult<_>>()?;
    Ok(Arc::new(StringArray::from_iter(texts)))
}
