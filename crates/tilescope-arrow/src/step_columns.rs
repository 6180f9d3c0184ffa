//! The columns of executed steps, filled row by row.

use crate::text_dictionary::{TextDictionary, by_key};
use arrow_array::builder::{
    Float32Builder, Int32Builder, UInt8Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;
use tilescope_report::trace::LaneStep;
use tilescope_report::units::{IpuId, StepId};
use tilescope_report::{ProgramKind, Report, ReportError, ReportPart, StepOnIpu, StreamEndpoint};

/// What steps take from their report, by program.
pub(super) struct StepFacts {
    /// By the number of the program.
    programs: Vec<Option<ProgramFacts>>,
    names: ArrayRef,
    kinds: ArrayRef,
    streams: ArrayRef,
    /// First step behind each host call.
    runs: Vec<StepId>,
    pub(super) has_balance: bool,
    has_bytes: bool,
}

/// What a row says of its program; keys are those of dictionaries.
#[derive(Clone, Copy)]
struct ProgramFacts {
    name: i32,
    compute_set: Option<u32>,
    operation: Option<u32>,
    stream: i32,
}

/// A kind's key is its place in the list of all.
fn kind_key(kind: ProgramKind) -> Option<i32> {
    (0..).zip(ProgramKind::ALL).find(|(_, known)| *known == kind).map(|(key, _)| key)
}

impl StepFacts {
    pub(super) fn read(report: &Report) -> Result<Self, ReportError> {
        let table = report.programs()?;
        let last = table.iter().map(|(id, _)| id.index()).max();
        let mut programs = vec![None; last.map_or(0, |last| last + 1)];
        let mut names = TextDictionary::default();
        for (id, program) in table.iter() {
            let mut streams = (0..).zip(StreamEndpoint::ALL);
            let stream = streams.find(|(_, known)| *known == program.stream);
            let facts = ProgramFacts {
                name: names.key(&program.name),
                compute_set: program.compute_set.map(|id| id.0),
                operation: program.operation.map(|id| id.0),
                stream: stream.map_or(0, |(key, _)| key),
            };
            programs.get_mut(id.index()).into_iter().for_each(|known| *known = Some(facts));
        }
        let texts = |names: &[&str]| {
            let mut texts = TextDictionary::default();
            for name in names {
                texts.key(name);
            }
            texts.values()
        };
        Ok(Self {
            programs,
            names: names.values(),
            kinds: texts(&ProgramKind::ALL.map(ProgramKind::name)),
            streams: texts(&StreamEndpoint::ALL.map(StreamEndpoint::name)),
            runs: report.runs()?.into_iter().map(|run| run.steps.end).collect(),
            has_balance: report.has(ReportPart::ActiveTiles),
            has_bytes: report.has(ReportPart::StepBytes),
        })
    }

    fn run(&self, step: StepId) -> Option<u32> {
        let run = self.runs.partition_point(|end| *end <= step);
        (run < self.runs.len()).then(|| u32::try_from(run).ok()).flatten()
    }
}

/// Columns and their types.
pub(super) fn schema() -> SchemaRef {
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

/// Rows of one lane.
pub(super) struct StepColumns<'a> {
    facts: &'a StepFacts,
    lane: (IpuId, u8),
    step: UInt64Builder,
    run: UInt32Builder,
    ipu: UInt32Builder,
    sub_lane: UInt8Builder,
    kind: Int32Builder,
    program: UInt32Builder,
    name: Int32Builder,
    compute_set: UInt32Builder,
    operation: UInt32Builder,
    start: UInt64Builder,
    end: UInt64Builder,
    cycles: UInt64Builder,
    active_tiles: UInt32Builder,
    tile_balance: Float32Builder,
    active_tile_balance: Float32Builder,
    bytes_in: UInt64Builder,
    bytes_out: UInt64Builder,
    stream: Int32Builder,
}

impl<'a> StepColumns<'a> {
    pub(super) fn new(facts: &'a StepFacts, lane: (IpuId, u8), rows: usize) -> Self {
        Self {
            facts,
            lane,
            step: UInt64Builder::with_capacity(rows),
            run: UInt32Builder::with_capacity(rows),
            ipu: UInt32Builder::with_capacity(rows),
            sub_lane: UInt8Builder::with_capacity(rows),
            kind: Int32Builder::with_capacity(rows),
            program: UInt32Builder::with_capacity(rows),
            name: Int32Builder::with_capacity(rows),
            compute_set: UInt32Builder::with_capacity(rows),
            operation: UInt32Builder::with_capacity(rows),
            start: UInt64Builder::with_capacity(rows),
            end: UInt64Builder::with_capacity(rows),
            cycles: UInt64Builder::with_capacity(rows),
            active_tiles: UInt32Builder::with_capacity(rows),
            tile_balance: Float32Builder::with_capacity(rows),
            active_tile_balance: Float32Builder::with_capacity(rows),
            bytes_in: UInt64Builder::with_capacity(rows),
            bytes_out: UInt64Builder::with_capacity(rows),
            stream: Int32Builder::with_capacity(rows),
        }
    }

    /// Adds a step, with what is known of its tiles.
    pub(super) fn push(&mut self, step: &LaneStep, on_ipu: Option<&StepOnIpu>) {
        use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
        let facts = self.facts;
        let known = |id: tilescope_report::units::ProgramId| *facts.programs.get(id.index())?;
        let program = step.program.and_then(known);
        let is_stream = [StreamCopyBegin, StreamCopyMid, StreamCopyEnd].contains(&step.kind);
        let on_ipu = on_ipu.filter(|_| facts.has_balance);
        // Balances are shares of one, of which 16 bits are known.
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let balance = step.tile_balance.share() as f32;
        let bytes = |bytes: tilescope_report::units::Bytes| facts.has_bytes.then_some(bytes.0);
        self.step.append_value(step.step.0);
        self.run.append_option(facts.run(step.step));
        self.ipu.append_value(self.lane.0.0);
        self.sub_lane.append_value(self.lane.1);
        self.kind.append_option(kind_key(step.kind));
        self.program.append_option(step.program.map(|id| id.0));
        self.name.append_option(program.map(|of| of.name));
        self.compute_set.append_option(program.and_then(|of| of.compute_set));
        self.operation.append_option(program.and_then(|of| of.operation));
        self.start.append_value(step.range.start.0);
        self.end.append_value(step.range.end.0);
        self.cycles.append_value(step.range.length().0);
        self.active_tiles.append_option(on_ipu.map(|of| of.active_tiles));
        self.tile_balance.append_option(facts.has_balance.then_some(balance));
        self.active_tile_balance.append_option(on_ipu.map(|of| of.active_tile_balance));
        self.bytes_in.append_option(bytes(step.bytes_in));
        self.bytes_out.append_option(bytes(step.bytes_out));
        self.stream.append_option(program.filter(|_| is_stream).map(|of| of.stream));
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let facts = self.facts;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.step.finish()),
            Arc::new(self.run.finish()),
            Arc::new(self.ipu.finish()),
            Arc::new(self.sub_lane.finish()),
            by_key(self.kind.finish(), &facts.kinds)?,
            Arc::new(self.program.finish()),
            by_key(self.name.finish(), &facts.names)?,
            Arc::new(self.compute_set.finish()),
            Arc::new(self.operation.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.end.finish()),
            Arc::new(self.cycles.finish()),
            Arc::new(self.active_tiles.finish()),
            Arc::new(self.tile_balance.finish()),
            Arc::new(self.active_tile_balance.finish()),
            Arc::new(self.bytes_in.finish()),
            Arc::new(self.bytes_out.finish()),
            by_key(self.stream.finish(), &facts.streams)?,
        ];
        RecordBatch::try_new(schema(), columns)
    }
}
