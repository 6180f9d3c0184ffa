//! The walk over a report that every trace format shares: lane by lane, piece by piece.

use crate::chrome_trace::ChromeTrace;
use crate::clock::NanosecondClock;
use crate::data_flows::{FlowFacts, LaneFlows, SliceFlows};
use crate::lane_marks::{FreeRows, LaneMark, OpenMarks, beginning};
use crate::live_memory::LiveMemory;
use crate::perfetto::PerfettoTrace;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use tilescope_analysis::replica_classes::replica_numbers;
use tilescope_analysis::trace::InterIpuTransfers;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles, IpuId, Quantity, ReplicaClassId};
use tilescope_report::{
    MarkFilter, MarkKind, ProgramNodeTable, Report, ReportError, ReportPart, TraceMark,
};

/// Number of steps in memory at a time: 16 chunks of the trace.
const PIECE: u64 = 1 << 16;

/// Kinds of marks of the host.
const HOST_KINDS: [MarkKind; 2] = [MarkKind::Loader, MarkKind::Callback];

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Protocol buffers of Perfetto: <https://perfetto.dev>.
    Perfetto,
    /// The JSON of Chrome's `about:tracing`, which other viewers can read too.
    Chrome,
}

/// The part of a trace to write; everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSelection {
    /// Only these IPUs.
    pub ipus: Option<Vec<u32>>,
    /// Only steps that share a cycle with this window; they are written completely.
    pub window: Option<CycleRange>,
}

impl TraceSelection {
    fn has_ipu(&self, ipu: IpuId) -> bool {
        self.ipus.as_ref().is_none_or(|ipus| ipus.contains(&ipu.0))
    }
}

/// The reason why a trace could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceExportError {
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// There is nothing to write.
    #[error("the report has no executed steps: the program was only compiled")]
    NoExecution,
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The caller cancelled the export.
    #[error("cancelled")]
    Cancelled,
}

/// A group of tracks: replicas that run the same steps at the same cycles, or the host.
pub(crate) struct ProcessTrack {
    pub(crate) number: u32,
    pub(crate) name: String,
}

/// A track of steps.
pub(crate) struct LaneTrack {
    pub(crate) process: u32,
    pub(crate) ipu: IpuId,
    pub(crate) sub_lane: u8,
    /// True if live bytes are known.
    pub(crate) has_live_memory: bool,
}

impl LaneTrack {
    pub(crate) fn name(&self) -> String {
        match self.sub_lane {
            0 => format!("IPU {}", self.ipu),
            1 => format!("IPU {}, I/O tiles", self.ipu),
            more => format!("IPU {}, tiles {more}", self.ipu),
        }
    }
}

/// A step with the data to write.
pub(crate) struct StepSlice<'a> {
    pub(crate) step: &'a LaneStep,
    /// Its name, if that is not the name of its program.
    pub(crate) other_name: Option<&'a str>,
    pub(crate) flows: &'a SliceFlows,
    /// Live bytes from this step, if they change.
    pub(crate) live: Option<u64>,
}

/// Facts about steps from a report, and their names.
pub(crate) struct StepFacts {
    pub(crate) clock: NanosecondClock,
    pub(crate) programs: Arc<ProgramNodeTable>,
    pub(crate) has_balance: bool,
    pub(crate) has_bytes: bool,
}

/// Writes the events of the walk. Slices of a lane come in order, each nested in the open ones.
pub(crate) trait TraceWriter {
    fn process(&mut self, process: &ProcessTrack) -> io::Result<()>;
    /// Starts a lane.
    fn lane(&mut self, lane: &LaneTrack) -> io::Result<()>;
    fn open_mark(&mut self, mark: &TraceMark, cycles: CycleRange) -> io::Result<()>;
    /// Closes the mark that was opened last.
    fn close_mark(&mut self, at: Cycles) -> io::Result<()>;
    /// Writes a mark beside the lane, because it would extend beyond an open one.
    fn mark_beside(&mut self, row: usize, mark: &TraceMark, cycles: CycleRange) -> io::Result<()>;
    fn step(&mut self, slice: &StepSlice<'_>) -> io::Result<()>;
    /// Writes a mark of the host.
    fn host_mark(&mut self, process: u32, row: usize, mark: &TraceMark) -> io::Result<()>;
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes the trace of a report. `on_steps` receives the number of steps written over all lanes and
/// their total, and returns whether to continue. Returns the number of steps.
///
/// # Errors
/// The report has no execution, a part of it cannot be read, the output cannot be written, or
/// [`TraceExportError::Cancelled`].
pub fn write_trace(
    report: &Report,
    selection: &TraceSelection,
    format: TraceFormat,
    output: &mut dyn Write,
    on_steps: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<u64, TraceExportError> {
    let trace = report.trace()?.ok_or(TraceExportError::NoExecution)?;
    let target = report.target()?;
    let facts = StepFacts {
        clock: NanosecondClock::new(target.clock),
        programs: report.programs()?,
        has_balance: report.has(ReportPart::ActiveTiles),
        has_bytes: report.has(ReportPart::StepBytes),
    };
    let mut writer: Box<dyn TraceWriter + '_> = match format {
        TraceFormat::Perfetto => Box::new(PerfettoTrace::new(output, &facts)),
        TraceFormat::Chrome => Box::new(ChromeTrace::new(output, &facts)?),
    };
    let transfers = InterIpuTransfers::read(report)?;
    let has_ipu = |ipu| selection.has_ipu(ipu);
    let flows = FlowFacts {
        programs: &facts.programs,
        transfers: &transfers,
        has_ipu: &has_ipu,
        ipus: u64::from(target.ipus_per_replica),
        steps: report.step_count()?,
    };
    let mut walk = TraceWalk {
        report,
        selection,
        programs: &facts.programs,
        flows: &flows,
        writer: writer.as_mut(),
        done: 0,
        all: 0,
        on_steps,
    };
    walk.count(&trace)?;
    walk.trace(&trace)?;
    let done = walk.done;
    writer.finish()?;
    Ok(done)
}

/// The walk and its position.
struct TraceWalk<'a> {
    report: &'a Report,
    selection: &'a TraceSelection,
    programs: &'a ProgramNodeTable,
    flows: &'a FlowFacts<'a>,
    writer: &'a mut dyn TraceWriter,
    done: u64,
    all: u64,
    on_steps: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl TraceWalk<'_> {
    /// Positions of the steps of a lane that are written.
    fn selected(&self, lane: TraceLane<'_>) -> Result<Range<u64>, ReportError> {
        let info = lane.info();
        match self.selection.window {
            _ if !self.selection.has_ipu(info.ipu) => Ok(0..0),
            Some(window) => lane.touching(window),
            None => Ok(0..info.steps),
        }
    }

    fn count(&mut self, trace: &Trace) -> Result<(), ReportError> {
        for class in trace.classes() {
            for lane in lanes(&class) {
                let selected = self.selected(lane)?;
                self.all += selected.end - selected.start;
            }
        }
        Ok(())
    }

    fn trace(&mut self, trace: &Trace) -> Result<(), TraceExportError> {
        let classes = self.report.replica_classes()?;
        for class in trace.classes() {
            let number = class.class().0 + 1;
            let known = classes.classes.get(class.class().index());
            let name = match known.filter(|_| classes.differ()) {
                Some(of) => format!("IPU program, replicas {}", replica_numbers(&of.replicas)),
                None => "IPU program".to_owned(),
            };
            self.writer.process(&ProcessTrack { number, name: self.with_clock(name)? })?;
            for lane in lanes(&class) {
                let selected = self.selected(lane)?;
                if !selected.is_empty() {
                    self.lane(number, lane, selected)?;
                }
            }
        }
        self.host(trace)
    }

    /// The name, with a note if the times are not real times.
    fn with_clock(&self, name: String) -> Result<String, ReportError> {
        let clock = self.report.target()?.clock;
        Ok(if NanosecondClock::new(clock).is_known() {
            name
        } else {
            format!("{name} (clock not recorded: 1 ns is 1 cycle)")
        })
    }

    fn lane(
        &mut self,
        process: u32,
        lane: TraceLane<'_>,
        selected: Range<u64>,
    ) -> Result<(), TraceExportError> {
        let LaneInfo { ipu, sub_lane, .. } = lane.info();
        // Tiles beside the compute tiles run under the same marks, which are on the IPU's own
        // track.
        let memory = match sub_lane {
            0 => LiveMemory::read(self.report, ipu)?,
            _ => LiveMemory::default(),
        };
        let has_live_memory = memory.is_known();
        self.writer.lane(&LaneTrack { process, ipu, sub_lane, has_live_memory })?;
        let mut flows = LaneFlows::new(self.flows, lane, selected.clone());
        let mut open = OpenMarks::default();
        let mut rows = FreeRows::default();
        let mut live = None;
        let mut start = selected.start;
        while start < selected.end {
            let piece = start..(start + 1).next_multiple_of(PIECE).min(selected.end);
            start = piece.end;
            let steps = steps_at(lane, &piece)?;
            let mut marks = self.marks(lane, (&piece, &selected), &steps)?.into_iter().peekable();
            for step in &steps {
                self.close(&mut open, step.position)?;
                while let Some(mark) = marks.next_if(|mark| mark.positions.start <= step.position) {
                    if open.open(&mark) {
                        self.writer.open_mark(&mark.mark, mark.cycles)?;
                    } else {
                        let row = rows.row_of(mark.cycles);
                        self.writer.mark_beside(row, &mark.mark, mark.cycles)?;
                    }
                }
                let bytes = memory.during(step.program);
                let changed = bytes.filter(|bytes| live != Some(*bytes));
                live = bytes.or(live);
                let other_name = self.other_name(step);
                let flows = flows.at(step)?;
                self.writer.step(&StepSlice { step, other_name, flows, live: changed })?;
            }
            self.done += steps.len() as u64;
            if !(self.on_steps)(self.done, self.all) {
                return Err(TraceExportError::Cancelled);
            }
        }
        self.close(&mut open, u64::MAX)
    }

    fn close(&mut self, open: &mut OpenMarks, position: u64) -> Result<(), TraceExportError> {
        while let Some(end) = open.close_at(position) {
            self.writer.close_mark(end)?;
        }
        Ok(())
    }

    fn marks(
        &self,
        lane: TraceLane<'_>,
        positions: (&Range<u64>, &Range<u64>),
        steps: &[LaneStep],
    ) -> Result<Vec<LaneMark>, ReportError> {
        let Some(first) = steps.first() else { return Ok(Vec::new()) };
        let Some(last) = steps.last() else { return Ok(Vec::new()) };
        if lane.info().sub_lane > 0 {
            return Ok(Vec::new());
        }
        beginning(self.report, lane, positions, first.range.union(last.range))
    }

    /// The name of a step without a program, or with a program without a name.
    fn other_name(&self, step: &LaneStep) -> Option<&'static str> {
        let program = step.program.and_then(|id| self.programs.get(id));
        let has_name = program.is_some_and(|program| !program.name.is_empty());
        if !has_name { Some(step.kind.name()) } else { None }
    }

    /// Writes the marks of the host, by cycles, because no steps belong to them.
    fn host(&mut self, trace: &Trace) -> Result<(), TraceExportError> {
        let all = trace.range();
        let window = self.selection.window.map_or(all, |window| all.intersection(window));
        // As many marks per piece as steps in a piece of a lane, on average.
        let pieces = (trace.bars() / PIECE + 1).min(window.length().0.max(1));
        let mut known = false;
        let number = trace.classes().count();
        let number = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        for kind in HOST_KINDS {
            let mut rows = FreeRows::default();
            let mut last = window.start;
            for piece in 1..=pieces {
                let end = window.start + window.length().share(piece, pieces);
                for mark in self.host_marks(kind, CycleRange::new(last, end), piece == 1)? {
                    if !known {
                        let name = "Host".to_owned();
                        self.writer.process(&ProcessTrack { number, name })?;
                        known = true;
                    }
                    self.writer.host_mark(number, rows.row_of(mark.cycles), &mark)?;
                }
                last = end;
            }
        }
        Ok(())
    }

    /// Marks that begin in a window; in the first one also those that extend into it.
    fn host_marks(
        &self,
        kind: MarkKind,
        window: CycleRange,
        is_first: bool,
    ) -> Result<Vec<TraceMark>, ReportError> {
        let filter =
            MarkFilter { kind: Some(kind), ipu: None, window: Some(window), limit: usize::MAX };
        let mut marks = self.report.marks_of_class(ReplicaClassId(0), &filter)?;
        marks.retain(|mark| {
            let begins = is_first || window.start <= mark.cycles.start;
            begins && mark.ipu.is_none_or(|ipu| self.selection.has_ipu(ipu))
        });
        Ok(marks)
    }
}

fn lanes(trace: &Trace) -> impl Iterator<Item = TraceLane<'_>> {
    (0..trace.lanes().len()).filter_map(|index| trace.lane(index))
}

fn steps_at(lane: TraceLane<'_>, positions: &Range<u64>) -> Result<Vec<LaneStep>, ReportError> {
    let mut steps = Vec::new();
    lane.visit_records(positions.clone(), |step| steps.push(step))?;
    Ok(steps)
}
