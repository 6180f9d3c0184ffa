//! Executed steps: one row for each step on each lane, in batches that are decoded as they are asked
//! for, so that a run of 10^8 steps takes no more memory than a short one.

use super::{TextDictionary, by_key};
use crate::stream::BatchIterator;
use arrow_array::{ArrayRef, Float32Array, RecordBatch, UInt8Array, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::trace::{LaneStep, Trace};
use tilescope_report::units::{CycleRange, Cycles, IpuId, ProgramId, StepId};
use tilescope_report::{ProgramKind, Report, ReportError, ReportPart, StepOnIpu, StreamEndpoint};

/// Rows of a batch: 16 chunks of the trace.
const BATCH_ROWS: u64 = 1 << 16;

/// What is asked of the steps of a report.
pub(crate) struct StepSelection {
    /// Only these IPUs.
    pub(crate) ipus: Option<Vec<u32>>,
    /// Only steps that share a cycle with this window.
    pub(crate) cycles: Option<(u64, u64)>,
}

/// Steps that were asked for, not read yet.
pub(crate) struct StepTable {
    report: Arc<Report>,
    trace: Option<Trace>,
    /// Lane and positions of each batch.
    pieces: Vec<(usize, Range<u64>)>,
    texts: StepTexts,
    /// First step behind each host call.
    runs: Vec<StepId>,
    has_balance: bool,
    has_bytes: bool,
}

/// Names by their keys.
struct StepTexts {
    names: ArrayRef,
    name_keys: HashMap<ProgramId, i32>,
    kinds: ArrayRef,
    kind_keys: BTreeMap<ProgramKind, i32>,
    streams: ArrayRef,
}

impl StepTexts {
    fn read(report: &Report) -> Result<Self, ReportError> {
        let mut names = TextDictionary::default();
        let mut name_keys = HashMap::new();
        for (id, program) in report.programs()?.iter() {
            name_keys.insert(id, names.key(&program.name));
        }
        let mut kinds = TextDictionary::default();
        let kind_keys = ProgramKind::ALL.map(|kind| (kind, kinds.key(kind.name()))).into();
        let mut streams = TextDictionary::default();
        for end in StreamEndpoint::ALL {
            streams.key(end.name());
        }
        let (names, kinds, streams) = (names.values(), kinds.values(), streams.values());
        Ok(Self { names, name_keys, kinds, kind_keys, streams })
    }
}

impl StepTable {
    /// Finds the steps: O(log steps) for each lane.
    pub(crate) fn select(
        report: Arc<Report>,
        selection: &StepSelection,
    ) -> Result<Self, ReportError> {
        let trace = report.trace()?;
        let mut pieces = Vec::new();
        for (index, info) in trace.iter().flat_map(|trace| trace.lanes().iter().enumerate()) {
            let wanted = selection.ipus.as_ref().is_none_or(|ipus| ipus.contains(&info.ipu.0));
            let lane = trace.as_ref().and_then(|trace| trace.lane(index)).filter(|_| wanted);
            let Some(lane) = lane else { continue };
            let mut positions = match selection.cycles {
                Some((start, end)) => lane.touching(CycleRange::new(Cycles(start), Cycles(end)))?,
                None => 0..info.steps,
            };
            while positions.start < positions.end {
                // Batches end where chunks do, so that none is decoded twice.
                let end = (positions.start + 1).next_multiple_of(BATCH_ROWS).min(positions.end);
                pieces.push((index, positions.start..end));
                positions.start = end;
            }
        }
        let runs = report.runs()?.into_iter().map(|run| run.steps.end).collect();
        Ok(Self {
            texts: StepTexts::read(&report)?,
            has_balance: report.has(ReportPart::ActiveTiles),
            has_bytes: report.has(ReportPart::StepBytes),
            report,
            trace,
            pieces,
            runs,
        })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.pieces.iter().map(|(_, positions)| positions.end - positions.start).sum()
    }

    /// Columns and their types.
    pub(crate) fn schema() -> SchemaRef {
        let text = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        let fields = [
            ("step", DataType::UInt64),
            ("run", DataType::UInt32),
            ("ipu", DataType::UInt32),
            ("sub_lane", DataType::UInt8),
            ("type", text.clone()),
            ("program", DataType::UInt32),
            ("name", text.clone()),
            ("compute_set", DataType::UInt32),
            ("operation", DataType::UInt32),
            ("start", DataType::UInt64),
            ("end", DataType::UInt64),
            ("cycles", DataType::UInt64),
            ("active_tiles", DataType::UInt32),
            ("tile_balance", DataType::Float32),
            ("active_tile_balance", DataType::Float32),
            ("bytes_in", DataType::UInt64),
            ("bytes_out", DataType::UInt64),
            ("stream", text),
        ];
        let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
        Arc::new(Schema::new(fields.to_vec()))
    }

    /// The rows, batch by batch.
    pub(crate) fn batches(self: &Arc<Self>) -> BatchIterator {
        Box::new(StepBatches { table: self.clone(), next: 0, ready: VecDeque::new() })
    }

    fn batch(&self, (lane, positions): &(usize, Range<u64>)) -> Result<RecordBatch, ArrowError> {
        let failed = |error: ReportError| ArrowError::ExternalError(Box::new(error));
        let rows = self.rows_of(*lane, positions.clone()).map_err(failed)?;
        self.columns(&rows)
    }

    fn rows_of(&self, lane: usize, positions: Range<u64>) -> Result<Vec<StepRow>, ReportError> {
        let lane = self.trace.as_ref().and_then(|trace| trace.lane(lane));
        let Some(lane) = lane else { return Ok(Vec::new()) };
        let (ipu, sub_lane) = (lane.info().ipu, lane.info().sub_lane);
        let mut rows = Vec::new();
        lane.visit_each_step(positions, |step, on_ipu| {
            rows.push(StepRow { step, on_ipu, ipu, sub_lane });
        })?;
        self.add_rows_of_file(&mut rows)?;
        Ok(rows)
    }

    /// What a report with rows of steps says of them there.
    fn add_rows_of_file(&self, rows: &mut [StepRow]) -> Result<(), ReportError> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        if !self.has_balance || first.on_ipu.is_some() {
            return Ok(());
        }
        let ids = first.step.step..last.step.step + 1;
        let mut recorded = self.report.steps(ids, usize::MAX)?.into_iter().peekable();
        for row in rows {
            // Both are in the order of ids.
            while recorded.next_if(|of| of.id < row.step.step).is_some() {}
            let of = recorded.peek().filter(|of| of.id == row.step.step);
            let mut parts = of.into_iter().flat_map(|of| &of.ipus);
            row.on_ipu =
                parts.find(|part| (part.ipu, part.sub_lane) == (row.ipu, row.sub_lane)).copied();
        }
        Ok(())
    }

    fn run(&self, step: StepId) -> Option<u32> {
        let run = self.runs.partition_point(|end| *end <= step);
        (run < self.runs.len()).then(|| u32::try_from(run).ok()).flatten()
    }

    fn columns(&self, rows: &[StepRow]) -> Result<RecordBatch, ArrowError> {
        let texts = &self.texts;
        let programs = self.report.programs();
        let programs = programs.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let program = |row: &StepRow| programs.get(row.step.program?);
        let kind = |row: &StepRow| texts.kind_keys.get(&row.step.kind).copied();
        let name = |row: &StepRow| texts.name_keys.get(&row.step.program?).copied();
        let balance = |read: fn(&StepOnIpu) -> f32| {
            let value = |row: &StepRow| row.on_ipu.as_ref().map(read).filter(|_| self.has_balance);
            Arc::new(rows.iter().map(value).collect::<Float32Array>()) as ArrayRef
        };
        // Balances are shares of one, of which 16 bits are known.
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let tile_balance = |row: &StepRow| row.step.tile_balance.share() as f32;
        let tile_balance: Float32Array =
            rows.iter().map(|row| self.has_balance.then(|| tile_balance(row))).collect();
        let active = |row: &StepRow| row.on_ipu.map(|of| of.active_tiles);
        let columns: Vec<ArrayRef> = vec![
            u64s(rows, |row| row.step.step.0),
            u32s(rows, |row| self.run(row.step.step)),
            u32s(rows, |row| Some(row.ipu.0)),
            Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.sub_lane))),
            by_key(rows.iter().map(kind).collect::<Vec<_>>(), &texts.kinds)?,
            u32s(rows, |row| row.step.program.map(|id| id.0)),
            by_key(rows.iter().map(name).collect::<Vec<_>>(), &texts.names)?,
            u32s(rows, |row| program(row)?.compute_set.map(|id| id.0)),
            u32s(rows, |row| program(row)?.operation.map(|id| id.0)),
            u64s(rows, |row| row.step.range.start.0),
            u64s(rows, |row| row.step.range.end.0),
            u64s(rows, |row| row.step.range.length().0),
            u32s(rows, |row| active(row).filter(|_| self.has_balance)),
            Arc::new(tile_balance),
            balance(|of| of.active_tile_balance),
            self.bytes(rows, |row| row.step.bytes_in.0),
            self.bytes(rows, |row| row.step.bytes_out.0),
            by_key(
                rows.iter().map(|row| stream(row, program(row))).collect::<Vec<_>>(),
                &texts.streams,
            )?,
        ];
        RecordBatch::try_new(Self::schema(), columns)
    }

    fn bytes(&self, rows: &[StepRow], read: fn(&StepRow) -> u64) -> ArrayRef {
        if self.has_bytes {
            return u64s(rows, read);
        }
        Arc::new(UInt64Array::new_null(rows.len()))
    }
}

/// A step on a lane.
struct StepRow {
    step: LaneStep,
    on_ipu: Option<StepOnIpu>,
    ipu: IpuId,
    sub_lane: u8,
}

fn u64s(rows: &[StepRow], read: impl Fn(&StepRow) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(read)))
}

fn u32s(rows: &[StepRow], read: impl Fn(&StepRow) -> Option<u32>) -> ArrayRef {
    Arc::new(rows.iter().map(read).collect::<UInt32Array>())
}

/// The key of the other end of a stream copy, in the order of [`StreamEndpoint::ALL`].
fn stream(row: &StepRow, program: Option<&tilescope_report::ProgramNode>) -> Option<i32> {
    use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
    [StreamCopyBegin, StreamCopyMid, StreamCopyEnd].contains(&row.step.kind).then_some(())?;
    let end = program?.stream;
    (0..).zip(StreamEndpoint::ALL).find(|(_, known)| *known == end).map(|(key, _)| key)
}

/// Batches, several decoded side by side.
struct StepBatches {
    table: Arc<StepTable>,
    next: usize,
    ready: VecDeque<Result<RecordBatch, ArrowError>>,
}

impl StepBatches {
    /// Threads of its own: those of a pool would be missing in a process that Python has forked.
    fn decode(&mut self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let end = (self.next + threads).min(self.table.pieces.len());
        let table = &self.table;
        let pieces = table.pieces.get(self.next..end).unwrap_or_default();
        self.next = end;
        self.ready = std::thread::scope(|scope| {
            let started: Vec<_> =
                pieces.iter().map(|piece| scope.spawn(|| table.batch(piece))).collect();
            let joined = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        });
    }
}

impl Iterator for StepBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.decode();
        }
        self.ready.pop_front()
    }
}
