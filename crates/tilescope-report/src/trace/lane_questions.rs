//! Questions to lanes of a report on another machine.
//!
//! There a lane is asked as a whole, by the code that asks it here, and the answer travels: one delay
//! of the link instead of one for each level of the pyramid, and spans instead of all nodes below
//! them. Answers are checked as blobs of a file are.

// Answers may come from anybody.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::{FixedPointBalance, LaneInfo, LaneSpan, LaneStep, StepBucket, StepTotals};
use super::lane::TraceLane;
use super::program_totals::{ProgramStepSums, ProgramStepTotals, ProgramTotals};
use super::pyramid::{self, BLOCK_NODES, PyramidNode};
use super::step_record::{StepClass, StepRecord};
use super::store::TraceStore;
use super::{LaneNumber, PathProgram, Trace};
use crate::codec::{VarintReader, apply_zigzag_difference, difference, write_varint};
use crate::database::ReportDatabase;
use crate::error::ReportError;
use crate::limits::MAX_CYCLES;
use crate::model::StepActivity;
use crate::units::{CycleRange, Cycles, StepId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Pixels of a picture that can be asked for: far more than screens have.
const MAX_PIXELS: u32 = 1 << 16;
/// Steps that can be asked for one by one; further ones come in chunks.
const MAX_STEPS_ASKED: u64 = 4096;
/// Steps that come with one that is looked at.
const STEPS_AROUND: u64 = 256;

/// What is asked of a lane: see the methods of [`TraceLane`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaneQuestion {
    /// [`TraceLane::spans`]
    Spans { window: CycleRange, pixels: u32 },
    /// [`TraceLane::cut_spans`]
    CutSpans { window: CycleRange, pixels: u32 },
    /// [`TraceLane::totals`]
    Totals { window: CycleRange },
    /// [`TraceLane::program_totals`]
    ProgramTotals { positions: Range<u64> },
    /// [`TraceLane::program_sums`]
    ProgramSums,
    /// [`TraceLane::step_lengths`]
    StepLengths { positions: Range<u64> },
    /// [`TraceLane::touching`]
    Touching { window: CycleRange },
    /// [`TraceLane::step_at`]
    StepAt { cycle: Cycles },
    /// [`TraceLane::longest_in`]
    LongestIn { window: CycleRange },
    /// [`TraceLane::find`]
    Find { step: StepId },
    /// [`TraceLane::find_with_next`]
    FindWithNext { step: StepId, next: u32 },
    /// Steps at positions.
    Steps { positions: Range<u64> },
    /// Of [`CriticalPath::programs`](super::CriticalPath::programs) those of the lane.
    OnPath,
}

impl LaneQuestion {
    /// The cycles that it is about. They came as two numbers, which may be in any order.
    fn window(&self) -> Option<CycleRange> {
        match self {
            Self::Spans { window, .. }
            | Self::CutSpans { window, .. }
            | Self::Totals { window }
            | Self::Touching { window }
            | Self::LongestIn { window } => Some(*window),
            Self::ProgramTotals { .. }
            | Self::ProgramSums
            | Self::StepLengths { .. }
            | Self::StepAt { .. }
            | Self::Find { .. }
            | Self::FindWithNext { .. }
            | Self::Steps { .. }
            | Self::OnPath => None,
        }
    }
}

/// How many steps of an activity were up to so many cycles long.
pub type StepLengths = (StepActivity, u64, u64);

impl Trace {
    /// Asks lanes at once all that each will be asked, where they are on another machine: that takes
    /// one delay of the link, and not one for each lane. What goes wrong is told to who asks the lane.
    pub fn ask_ahead<'a>(
        &self,
        lanes: impl IntoIterator<Item = &'a LaneInfo>,
        questions: &[LaneQuestion],
    ) {
        lanes_ahead(self.database(), lanes, questions);
    }

    /// The answer of a lane to who has the trace on another machine; `None` for a lane that is not
    /// there, or a question that is not asked.
    pub(crate) fn answer(
        &self,
        lane: u32,
        question: &LaneQuestion,
    ) -> Result<Option<Vec<u8>>, ReportError> {
        if question.window().is_some_and(|window| window.start > window.end) {
            return Ok(None);
        }
        let Some(number) = LaneNumber::from_number(lane) else { return Ok(None) };
        let Some(lane) = self.lane_at(number.at(), number.sub_lane()) else { return Ok(None) };
        Ok(Some(match question {
            LaneQuestion::Spans { pixels, .. } | LaneQuestion::CutSpans { pixels, .. }
                if *pixels > MAX_PIXELS =>
            {
                return Ok(None);
            }
            LaneQuestion::Spans { window, pixels } => encode_spans(&lane.spans(*window, *pixels)?),
            LaneQuestion::CutSpans { window, pixels } => {
                encode_spans(&lane.cut_spans(*window, *pixels)?)
            }
            LaneQuestion::Totals { window } => encode_totals(&lane, *window)?,
            LaneQuestion::ProgramTotals { positions } => {
                let positions = lane.on_lane(positions);
                lane.sum_programs(&positions)?.encode(positions.start)
            }
            LaneQuestion::ProgramSums => ProgramStepSums::encode(&lane.program_sums()?),
            LaneQuestion::StepLengths { positions } => {
                encode_lengths(&lane.step_lengths(positions.clone())?)
            }
            LaneQuestion::Touching { window } => {
                let positions = lane.touching(*window)?;
                let mut answer = Vec::new();
                write_varint(&mut answer, positions.start);
                write_varint(&mut answer, positions.end);
                answer
            }
            LaneQuestion::StepAt { cycle } => encode_steps(lane.step_at(*cycle)?),
            LaneQuestion::LongestIn { window } => encode_steps(lane.longest_in(*window)?),
            LaneQuestion::Find { step } => encode_steps(lane.find(*step)?),
            LaneQuestion::FindWithNext { next, .. } if u64::from(*next) > MAX_STEPS_ASKED => {
                return Ok(None);
            }
            LaneQuestion::FindWithNext { step, next } => {
                encode_steps(lane.find_with_next(*step, *next)?)
            }
            LaneQuestion::Steps { positions } => {
                let positions = lane.on_lane(positions);
                if positions.end - positions.start > MAX_STEPS_ASKED {
                    return Ok(None);
                }
                encode_steps(lane.steps_at(positions)?)
            }
            LaneQuestion::OnPath => {
                let Some(path) = self.critical_path()? else { return Ok(None) };
                let own = path.position_of(number.at(), number.sub_lane());
                let programs = path.programs()?;
                let of_lane = programs.iter().filter(|program| Some(program.lane) == own);
                PathProgram::encode(of_lane)
            }
        }))
    }
}

fn lanes_ahead<'a>(
    db: &ReportDatabase,
    lanes: impl IntoIterator<Item = &'a LaneInfo>,
    questions: &[LaneQuestion],
) {
    if db.is_remote() {
        let lanes: Vec<u32> = lanes.into_iter().map(|lane| lane.number().number()).collect();
        let asked: Vec<_> = questions.iter().map(|of| (lanes.clone(), of.clone())).collect();
        db.lanes_ahead(&asked);
    }
}

/// Asks lanes on another machine at once, each something else.
pub(super) fn each_ahead(
    db: &ReportDatabase,
    asked: impl IntoIterator<Item = (LaneInfo, LaneQuestion)>,
) {
    if db.is_remote() {
        let asked = asked.into_iter().map(|(lane, of)| (vec![lane.number().number()], of));
        db.lanes_ahead(&asked.collect::<Vec<_>>());
    }
}

/// What lanes on another machine answer, as this side reads it; `None` where they are here.
impl TraceLane<'_> {
    pub(super) fn spans_there(
        &self,
        question: &LaneQuestion,
        most: u64,
    ) -> Result<Option<Vec<LaneSpan>>, ReportError> {
        self.there(question, |answer, info| decode_spans(answer, info.steps, most))
    }

    pub(super) fn totals_there(
        &self,
        window: CycleRange,
    ) -> Result<Option<StepTotals>, ReportError> {
        self.there(&LaneQuestion::Totals { window }, |answer, _| {
            Some(pyramid::decode_raw(answer, 1)?.first()?.totals)
        })
    }

    pub(super) fn program_totals_there(
        &self,
        positions: &Range<u64>,
    ) -> Result<Option<Vec<ProgramStepTotals>>, ReportError> {
        let question = LaneQuestion::ProgramTotals { positions: positions.clone() };
        self.there(&question, |answer, _| {
            let positions = self.on_lane(positions);
            let steps = positions.end.checked_sub(positions.start)?;
            ProgramTotals::decode_raw(answer, positions.start, steps)
                .map(ProgramTotals::into_totals)
        })
    }

    pub(super) fn program_sums_there(&self) -> Result<Option<Vec<ProgramStepSums>>, ReportError> {
        // Whoever asks one lane asks the others, too.
        let lanes = self.store.lanes_of(self.info().class);
        lanes_ahead(self.store.database(), lanes, &[LaneQuestion::ProgramSums]);
        self.there(&LaneQuestion::ProgramSums, |answer, info| {
            ProgramStepSums::decode_answer(answer, info.steps)
        })
    }

    pub(super) fn step_lengths_there(
        &self,
        positions: &Range<u64>,
    ) -> Result<Option<Vec<StepLengths>>, ReportError> {
        let question = LaneQuestion::StepLengths { positions: positions.clone() };
        self.there(&question, |answer, info| decode_lengths(answer, info.steps))
    }

    pub(super) fn touching_there(
        &self,
        window: CycleRange,
    ) -> Result<Option<Range<u64>>, ReportError> {
        self.there(&LaneQuestion::Touching { window }, |answer, info| {
            let mut reader = VarintReader::new(answer);
            let (start, end) = (reader.take()?, reader.take()?);
            (reader.is_done() && start <= end && end <= info.steps).then_some(start..end)
        })
    }

    /// Some steps, up to so many.
    pub(super) fn steps_there(
        &self,
        question: &LaneQuestion,
        most: u64,
    ) -> Result<Option<Vec<LaneStep>>, ReportError> {
        let Some(spans) = self.spans_there(question, most)? else { return Ok(None) };
        let steps = spans.iter().map(|span| match span {
            LaneSpan::Step(step) => Some(*step),
            LaneSpan::Bucket(_) => None,
        });
        let steps: Option<Vec<LaneStep>> = steps.collect();
        steps.map(Some).ok_or_else(|| self.store.contradiction(self.info()))
    }

    /// The step at a position, with those around it.
    pub(super) fn step_there(&self, position: u64) -> Result<Option<LaneStep>, ReportError> {
        let start = position / STEPS_AROUND * STEPS_AROUND;
        let positions = start..(start + STEPS_AROUND).min(self.info().steps);
        let steps = self.steps_there(&LaneQuestion::Steps { positions }, STEPS_AROUND)?;
        Ok(steps.into_iter().flatten().find(|step| step.position == position))
    }
}

/// Programs on the critical path of lanes on another machine, lane after lane; `None` where they are
/// here.
pub(super) fn path_programs_there(
    store: &TraceStore,
) -> Result<Option<Vec<PathProgram>>, ReportError> {
    lanes_ahead(store.database(), &store.lanes, &[LaneQuestion::OnPath]);
    let mut all = Vec::new();
    for (place, info) in store.lanes.iter().enumerate() {
        let lane = TraceLane::new(store, *info);
        let of_lane = lane.there(&LaneQuestion::OnPath, |answer, info| {
            PathProgram::decode(answer, place, info.steps)
        })?;
        let Some(of_lane) = of_lane else { return Ok(None) };
        all.extend(of_lane);
    }
    Ok(Some(all))
}

fn encode_steps(steps: impl IntoIterator<Item = LaneStep>) -> Vec<u8> {
    let spans: Vec<LaneSpan> = steps.into_iter().map(LaneSpan::Step).collect();
    encode_spans(&spans)
}

/// Spans, in groups of up to 1,024 as nodes of the pyramid; before each group, where its spans are
/// beside the position that follows from the one before, which of them are steps, and how balanced
/// those are.
fn encode_spans(spans: &[LaneSpan]) -> Vec<u8> {
    let mut answer = Vec::new();
    write_varint(&mut answer, spans.len() as u64);
    let mut expected = 0;
    for group in spans.chunks(BLOCK_NODES) {
        for span in group {
            let (position, balance) = match span {
                LaneSpan::Step(step) => (step.position, u64::from(step.tile_balance.0) + 1),
                LaneSpan::Bucket(bucket) => (bucket.first_position, 0),
            };
            write_varint(&mut answer, difference(position, expected));
            write_varint(&mut answer, balance);
            expected = position + span.steps();
        }
        let nodes: Vec<PyramidNode> = group.iter().map(node_of).collect();
        let nodes = pyramid::encode(&nodes);
        write_varint(&mut answer, nodes.len() as u64);
        answer.extend(nodes);
    }
    answer
}

fn node_of(span: &LaneSpan) -> PyramidNode {
    match span {
        LaneSpan::Step(step) => PyramidNode::from_record(&StepRecord {
            step: step.step,
            range: step.range,
            program: step.program,
            class: StepClass::from_activity(step.kind, step.activity),
            balance: step.tile_balance,
            bytes_in: step.bytes_in,
            bytes_out: step.bytes_out,
        }),
        LaneSpan::Bucket(StepBucket { range, first_step, totals, .. }) => {
            PyramidNode { range: *range, first_step: *first_step, totals: *totals }
        }
    }
}

/// The spans of an answer, if they can be those of a lane of so many steps, and are no more than was
/// asked for.
fn decode_spans(answer: &[u8], steps: u64, most: u64) -> Option<Vec<LaneSpan>> {
    let mut reader = VarintReader::new(answer);
    let count = reader.take()?;
    // Every span takes more than one byte.
    (count <= most && count <= reader.left() as u64).then_some(())?;
    let mut left = usize::try_from(count).ok()?;
    let mut spans = Vec::with_capacity(left);
    let (mut expected, mut end) = (0u64, Cycles::ZERO);
    while left > 0 {
        let group = left.min(BLOCK_NODES);
        let places = (0..group).map(|_| Some((reader.take()?, reader.take()?)));
        let places = places.collect::<Option<Vec<(u64, u64)>>>()?;
        let length = usize::try_from(reader.take()?).ok()?;
        let nodes = pyramid::decode_raw(reader.bytes(length)?, group)?;
        for (node, (place, balance)) in nodes.iter().zip(places) {
            let position = apply_zigzag_difference(place, expected);
            expected = position.checked_add(node.totals.steps).filter(|behind| *behind <= steps)?;
            (node.range.start >= end).then_some(())?;
            end = node.range.end;
            spans.push(match balance.checked_sub(1) {
                Some(balance) => LaneSpan::Step(step_of(node, position, balance)?),
                None => LaneSpan::Bucket(StepBucket {
                    range: node.range,
                    first_position: position,
                    first_step: node.first_step,
                    totals: node.totals,
                }),
            });
        }
        left -= group;
    }
    reader.is_done().then_some(spans)
}

/// The one step of a node.
fn step_of(node: &PyramidNode, position: u64, balance: u64) -> Option<LaneStep> {
    let longest = node.totals.longest?;
    (node.totals.steps == 1 && longest.cycles == node.range.length()).then_some(())?;
    let class = StepClass::from_activity(longest.kind, longest.activity);
    let record = StepRecord {
        step: node.first_step,
        range: node.range,
        program: longest.program,
        class,
        balance: FixedPointBalance(u16::try_from(balance).ok()?),
        bytes_in: node.totals.bytes_in[class.activity()],
        bytes_out: node.totals.bytes_out[class.activity()],
    };
    Some(LaneStep::new(position, &record))
}

/// Sums over a window as one node, as long as the part of the window in which the lane is.
fn encode_totals(lane: &TraceLane, window: CycleRange) -> Result<Vec<u8>, ReportError> {
    let range = window.intersection(lane.info().range);
    let totals = lane.totals(window)?;
    Ok(pyramid::encode(&[PyramidNode { range, first_step: StepId(0), totals }]))
}

fn encode_lengths(lengths: &[StepLengths]) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut before = 0;
    for (activity, length, steps) in lengths {
        write_varint(&mut answer, *activity as u64);
        write_varint(&mut answer, difference(*length, before));
        write_varint(&mut answer, *steps);
        before = *length;
    }
    answer
}

fn decode_lengths(answer: &[u8], steps: u64) -> Option<Vec<StepLengths>> {
    let mut reader = VarintReader::new(answer);
    let (mut lengths, mut before, mut all) = (Vec::new(), 0, 0u64);
    while !reader.is_done() {
        let activity = usize::try_from(reader.take()?).ok()?;
        let activity = *StepActivity::ALL.get(activity)?;
        before = apply_zigzag_difference(reader.take()?, before);
        let count = reader.take()?;
        all = all.checked_add(count)?;
        (before <= MAX_CYCLES.0 && all <= steps).then_some(())?;
        lengths.push((activity, before, count));
    }
    Some(lengths)
}
