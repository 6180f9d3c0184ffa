//! Writes traces of Perfetto: a sequence of packets, each a message of protocol buffers.
//!
//! A lane is a packet sequence of its own. Its first packet describes its track, makes it the
//! default track of events, and defines the numbers of names of categories and annotations. Names
//! of programs follow on first use.

mod wire;

use crate::clock::NanosecondClock;
use crate::timeline::{LaneTrack, ProcessTrack, StepFacts, StepSlice, TraceWriter};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use tilescope_report::units::{CycleRange, Cycles, ProgramId};
use tilescope_report::{MarkKind, StepActivity, TraceMark};
use wire::{Message, NestedMessage};

/// Numbers of fields, message by message, as in Perfetto's definitions.
mod field {
    pub(super) mod trace {
        pub(crate) const PACKET: u64 = 1;
    }
    pub(super) mod packet {
        pub(crate) const TIMESTAMP: u64 = 8;
        pub(crate) const SEQUENCE_ID: u64 = 10;
        pub(crate) const TRACK_EVENT: u64 = 11;
        pub(crate) const INTERNED_DATA: u64 = 12;
        pub(crate) const SEQUENCE_FLAGS: u64 = 13;
        pub(crate) const DEFAULTS: u64 = 59;
        pub(crate) const TRACK_DESCRIPTOR: u64 = 60;
    }
    pub(super) mod defaults {
        pub(crate) const TRACK_EVENT: u64 = 11;
    }
    pub(super) mod track {
        pub(crate) const UUID: u64 = 1;
        pub(crate) const NAME: u64 = 2;
        pub(crate) const PROCESS: u64 = 3;
        pub(crate) const PARENT_UUID: u64 = 5;
        pub(crate) const COUNTER: u64 = 8;
        pub(crate) const CHILD_ORDERING: u64 = 11;
        pub(crate) const SIBLING_ORDER_RANK: u64 = 12;
    }
    pub(super) mod process {
        pub(crate) const PID: u64 = 1;
        pub(crate) const NAME: u64 = 6;
    }
    pub(super) mod counter {
        pub(crate) const UNIT: u64 = 3;
    }
    pub(super) mod event {
        pub(crate) const CATEGORY_IID: u64 = 3;
        pub(crate) const DEBUG_ANNOTATION: u64 = 4;
        pub(crate) const TYPE: u64 = 9;
        pub(crate) const NAME_IID: u64 = 10;
        pub(crate) const TRACK_UUID: u64 = 11;
        pub(crate) const NAME: u64 = 23;
        pub(crate) const COUNTER_VALUE: u64 = 30;
        pub(crate) const FLOW_ID: u64 = 47;
        pub(crate) const TERMINATING_FLOW_ID: u64 = 48;
    }
    pub(super) mod interned {
        pub(crate) const CATEGORY: u64 = 1;
        pub(crate) const EVENT_NAME: u64 = 2;
        pub(crate) const ANNOTATION_NAME: u64 = 3;
        pub(crate) const IID: u64 = 1;
        pub(crate) const TEXT: u64 = 2;
    }
    pub(super) mod annotation {
        pub(crate) const NAME_IID: u64 = 1;
        pub(crate) const UINT: u64 = 3;
        pub(crate) const DOUBLE: u64 = 5;
        pub(crate) const TEXT: u64 = 6;
    }
}

/// Types of events.
mod event_type {
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
}

/// `SEQ_INCREMENTAL_STATE_CLEARED`: names are redefined from here on.
const STATE_CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet depends on earlier definitions.
const NEEDS_STATE: u64 = 2;
/// Children are in the order of their ranks.
const EXPLICIT_ORDER: u64 = 3;
/// `UNIT_SIZE_BYTES`
const UNIT_BYTES: u64 = 3;

/// The sequence of tracks other than lanes.
const OTHER_SEQUENCE: u64 = 1;
/// Bytes that are buffered before they are written.
const GATHERED: usize = 1 << 16;
/// Number of mark names that are interned; further ones are written in full, so that the table
/// stays small.
const MOST_LABELS: usize = 1 << 12;

/// Annotations of a slice beside its name and time.
#[derive(Clone, Copy)]
enum Annotation {
    Cycles,
    Step,
    TileBalance,
    BytesIn,
    BytesOut,
    Index,
    Pass,
}

impl Annotation {
    const ALL: [Self; 7] = [
        Self::Cycles,
        Self::Step,
        Self::TileBalance,
        Self::BytesIn,
        Self::BytesOut,
        Self::Index,
        Self::Pass,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Step => "step",
            Self::TileBalance => "tile_balance",
            Self::BytesIn => "bytes_in",
            Self::BytesOut => "bytes_out",
            Self::Index => "index",
            Self::Pass => "pass",
        }
    }

    fn iid(self) -> u64 {
        self as u64 + 1
    }
}

fn activity_iid(activity: StepActivity) -> u64 {
    activity as u64 + 1
}

fn kind_iid(kind: MarkKind) -> u64 {
    StepActivity::ALL.len() as u64 + kind as u64 + 1
}

/// Tracks of counters of a lane, if it has any.
#[derive(Clone, Copy, Default)]
struct CounterTracks {
    live: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// An event under construction, and its packet.
struct OpenEvent {
    packet: NestedMessage,
    event: NestedMessage,
}

/// Writes packets.
pub(crate) struct PerfettoTrace<'a> {
    output: &'a mut dyn Write,
    facts: &'a StepFacts,
    clock: NanosecondClock,
    /// The last number used for a track, and for a sequence.
    last_track: u64,
    last_sequence: u64,
    sequence: u64,
    /// Tracks of processes, by their number.
    processes: BTreeMap<u32, u64>,
    /// The track of the IPU whose lanes are written.
    ipu: Option<(u32, u32, u64)>,
    lane: u64,
    counters: CounterTracks,
    /// Tracks of marks beside the lane, or of the host, by process, kind and row.
    rows: BTreeMap<(Option<(u32, MarkKind)>, usize), u64>,
    /// Numbers of names of programs in this sequence. A map, because a file may have any ids of
    /// programs.
    program_names: HashMap<ProgramId, u64>,
    labels: BTreeMap<String, u64>,
    last_name: u64,
    /// Packets that are not written yet.
    packets: Message,
    inner: Message,
    entry: Message,
    /// Names that the event under construction uses for the first time.
    interned: Message,
}

impl<'a> PerfettoTrace<'a> {
    pub(crate) fn new(output: &'a mut dyn Write, facts: &'a StepFacts) -> Self {
        Self {
            output,
            facts,
            clock: facts.clock,
            last_track: 0,
            last_sequence: OTHER_SEQUENCE,
            sequence: OTHER_SEQUENCE,
            processes: BTreeMap::new(),
            ipu: None,
            lane: 0,
            counters: CounterTracks::default(),
            rows: BTreeMap::new(),
            program_names: HashMap::new(),
            labels: BTreeMap::new(),
            last_name: 0,
            packets: Message::default(),
            inner: Message::default(),
            entry: Message::default(),
            interned: Message::default(),
        }
    }

    fn begin_packet(&mut self) -> NestedMessage {
        self.packets.begin(field::trace::PACKET)
    }

    fn end_packet(&mut self, packet: NestedMessage) -> io::Result<()> {
        self.packets.end(packet);
        if self.packets.bytes().len() >= GATHERED { self.write_packets() } else { Ok(()) }
    }

    fn write_packets(&mut self) -> io::Result<()> {
        self.output.write_all(self.packets.bytes())?;
        self.packets.clear();
        Ok(())
    }

    fn next_track(&mut self) -> u64 {
        self.last_track += 1;
        self.last_track
    }

    /// Describes a track below another one; further fields are in `inner`.
    fn describe(&mut self, track: u64, name: &str, parent: u64, special: Option<u64>) {
        let Self { entry, inner, .. } = self;
        entry.clear();
        entry.number(field::track::UUID, track);
        entry.text(field::track::NAME, name);
        if parent > 0 {
            entry.number(field::track::PARENT_UUID, parent);
        }
        if let Some(field) = special {
            entry.message(field, inner);
        }
        entry.number(field::track::CHILD_ORDERING, EXPLICIT_ORDER);
        entry.number(field::track::SIBLING_ORDER_RANK, track);
    }

    /// Writes the description under construction in a separate packet.
    fn send_description(&mut self, sequence: u64) -> io::Result<()> {
        let packet = self.begin_packet();
        self.packets.number(field::packet::SEQUENCE_ID, sequence);
        self.packets.message(field::packet::TRACK_DESCRIPTOR, &self.entry);
        self.end_packet(packet)
    }

    fn counter_track(&mut self, name: &str, parent: u64) -> io::Result<u64> {
        let track = self.next_track();
        self.inner.clear();
        self.inner.number(field::counter::UNIT, UNIT_BYTES);
        self.describe(track, name, parent, Some(field::track::COUNTER));
        self.send_description(self.sequence)?;
        Ok(track)
    }

    /// Adds an entry to a table of names.
    fn intern(&mut self, table: u64, iid: u64, text: &str) {
        self.entry.clear();
        self.entry.number(field::interned::IID, iid);
        self.entry.text(field::interned::TEXT, text);
        self.interned.message(table, &self.entry);
    }

    fn begin_event(&mut self, kind: u64) -> OpenEvent {
        self.interned.clear();
        let packet = self.begin_packet();
        let event = self.packets.begin(field::packet::TRACK_EVENT);
        self.packets.number(field::event::TYPE, kind);
        OpenEvent { packet, event }
    }

    /// Starts a slice; its name follows.
    fn begin_slice(&mut self, category: u64) -> OpenEvent {
        let open = self.begin_event(event_type::BEGIN);
        self.packets.number(field::event::CATEGORY_IID, category);
        open
    }

    fn annotate(&mut self, annotation: Annotation, fill: impl FnOnce(&mut Message)) {
        let inner = self.packets.begin(field::event::DEBUG_ANNOTATION);
        self.packets.number(field::annotation::NAME_IID, annotation.iid());
        fill(&mut self.packets);
        self.packets.end(inner);
    }

    fn annotate_number(&mut self, annotation: Annotation, value: u64) {
        self.annotate(annotation, |inner| inner.number(field::annotation::UINT, value));
    }

    /// Ends an event and its packet.
    fn end_event(&mut self, open: OpenEvent, at: u64) -> io::Result<()> {
        let packets = &mut self.packets;
        packets.end(open.event);
        packets.number(field::packet::TIMESTAMP, at);
        packets.number(field::packet::SEQUENCE_ID, self.sequence);
        packets.number(field::packet::SEQUENCE_FLAGS, NEEDS_STATE);
        if !self.interned.bytes().is_empty() {
            packets.message(field::packet::INTERNED_DATA, &self.interned);
        }
        self.end_packet(open.packet)
    }

    /// Ends the innermost slice of a track; 0 is the track of the lane.
    fn end_slice(&mut self, track: u64, at: u64) -> io::Result<()> {
        let open = self.begin_event(event_type::END);
        if track > 0 {
            self.packets.number(field::event::TRACK_UUID, track);
        }
        self.end_event(open, at)
    }

    fn count(&mut self, track: u64, at: u64, value: u64) -> io::Result<()> {
        let open = self.begin_event(event_type::COUNTER);
        self.packets.number(field::event::TRACK_UUID, track);
        self.packets.number(field::event::COUNTER_VALUE, value);
        self.end_event(open, at)
    }

    /// Counts bytes that a step moves: the counter has them from its start to its end.
    fn count_moved(&mut self, track: u64, (start, end): (u64, u64), bytes: u64) -> io::Result<()> {
        if bytes == 0 || track == 0 {
            return Ok(());
        }
        self.count(track, start, bytes)?;
        self.count(track, end, 0)
    }

    /// Starts a sequence, whose events are on `track` by default.
    fn start_sequence(&mut self, sequence: u64, track: u64) -> io::Result<()> {
        self.sequence = sequence;
        self.program_names.clear();
        self.labels.clear();
        self.last_name = 0;
        let packet = self.begin_packet();
        self.packets.number(field::packet::SEQUENCE_ID, sequence);
        self.packets.number(field::packet::SEQUENCE_FLAGS, STATE_CLEARED);
        if track > 0 {
            self.packets.message(field::packet::TRACK_DESCRIPTOR, &self.entry);
            let defaults = self.packets.begin(field::packet::DEFAULTS);
            let event = self.packets.begin(field::defaults::TRACK_EVENT);
            self.packets.number(field::event::TRACK_UUID, track);
            self.packets.end(event);
            self.packets.end(defaults);
        }
        self.interned.clear();
        for activity in StepActivity::ALL {
            self.intern(field::interned::CATEGORY, activity_iid(activity), activity.name());
        }
        for kind in MarkKind::ALL {
            self.intern(field::interned::CATEGORY, kind_iid(kind), kind.name());
        }
        for annotation in Annotation::ALL {
            self.intern(field::interned::ANNOTATION_NAME, annotation.iid(), annotation.name());
        }
        self.packets.message(field::packet::INTERNED_DATA, &self.interned);
        self.end_packet(packet)
    }

    /// Names the event under construction; a name is interned once.
    fn name_mark(&mut self, label: &str) {
        let known = self.labels.get(label).copied();
        let iid = known.or_else(|| {
            if self.labels.len() >= MOST_LABELS {
                return None;
            }
            self.last_name += 1;
            let iid = self.last_name;
            self.labels.insert(label.to_owned(), iid);
            self.intern(field::interned::EVENT_NAME, iid, label);
            Some(iid)
        });
        match iid {
            Some(iid) => self.packets.number(field::event::NAME_IID, iid),
            None => self.packets.text(field::event::NAME, label),
        }
    }

    fn begin_mark(&mut self, track: u64, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        let open = self.begin_slice(kind_iid(mark.kind));
        self.name_mark(&mark.label);
        if track > 0 {
            self.packets.number(field::event::TRACK_UUID, track);
        }
        self.annotate_number(Annotation::Cycles, cycles.length().0);
        self.annotate_number(Annotation::Index, mark.index);
        if let Some(pass) = mark.pass {
            self.annotate(Annotation::Pass, |inner| {
                inner.text(field::annotation::TEXT, pass.name())
            });
        }
        self.end_event(open, self.clock.at(cycles.start))
    }

    /// Writes a complete slice on a track that is not a lane.
    fn mark_on_row(
        &mut self,
        (key, row): (Option<(u32, MarkKind)>, usize),
        (name, parent): (&str, u64),
        (mark, cycles): (&TraceMark, CycleRange),
    ) -> io::Result<()> {
        let track = match self.rows.get(&(key, row)) {
            Some(track) => *track,
            None => {
                let track = self.next_track();
                self.describe(track, name, parent, None);
                self.send_description(self.sequence)?;
                self.rows.insert((key, row), track);
                track
            }
        };
        self.begin_mark(track, mark, cycles)?;
        self.end_slice(track, self.clock.at(cycles.end))
    }

    fn name_step(&mut self, slice: &StepSlice<'_>) {
        let id = slice.step.program;
        let other = slice.other_name;
        let Some(id) = id.filter(|_| other.is_none()) else {
            return self.name_mark(other.unwrap_or_default());
        };
        let iid = match self.program_names.get(&id) {
            Some(known) => *known,
            None => {
                self.last_name += 1;
                let facts = self.facts;
                let name = facts.programs.get(id).map_or("", |program| program.name.as_str());
                self.intern(field::interned::EVENT_NAME, self.last_name, name);
                self.program_names.insert(id, self.last_name);
                self.last_name
            }
        };
        self.packets.number(field::event::NAME_IID, iid);
    }
}

impl TraceWriter for PerfettoTrace<'_> {
    fn process(&mut self, process: &ProcessTrack) -> io::Result<()> {
        let track = self.next_track();
        self.processes.insert(process.number, track);
        self.inner.clear();
        self.inner.number(field::process::PID, u64::from(process.number));
        self.inner.text(field::process::NAME, &process.name);
        self.describe(track, &process.name, 0, Some(field::track::PROCESS));
        self.send_description(OTHER_SEQUENCE)
    }

    fn lane(&mut self, lane: &LaneTrack) -> io::Result<()> {
        self.rows.retain(|(key, _), _| key.is_some());
        let process = self.processes.get(&lane.process).copied().unwrap_or(0);
        let of_ipu = self.ipu.filter(|ipu| (ipu.0, ipu.1) == (lane.process, lane.ipu.0));
        let parent = of_ipu.map_or(process, |(_, _, track)| track);
        let track = self.next_track();
        if of_ipu.is_none() {
            self.ipu = Some((lane.process, lane.ipu.0, track));
        }
        self.lane = track;
        self.describe(track, &lane.name(), parent, None);
        self.last_sequence += 1;
        self.start_sequence(self.last_sequence, track)?;
        self.counters = CounterTracks::default();
        if lane.has_live_memory {
            self.counters.live = self.counter_track("live bytes", track)?;
        }
        if self.facts.has_bytes {
            self.counters.bytes_in = self.counter_track("bytes in", track)?;
            self.counters.bytes_out = self.counter_track("bytes out", track)?;
        }
        Ok(())
    }

    fn open_mark(&mut self, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        self.begin_mark(0, mark, cycles)
    }

    fn close_mark(&mut self, at: Cycles) -> io::Result<()> {
        self.end_slice(0, self.clock.at(at))
    }

    fn mark_beside(&mut self, row: usize, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        self.mark_on_row((None, row), ("marks beside", self.lane), (mark, cycles))
    }

    fn step(&mut self, slice: &StepSlice<'_>) -> io::Result<()> {
        let step = slice.step;
        let (start, end) = self.clock.range(step.range);
        if let Some(live) = slice.live {
            self.count(self.counters.live, start, live)?;
        }
        let open = self.begin_slice(activity_iid(step.activity));
        self.name_step(slice);
        self.annotate_number(Annotation::Cycles, step.range.length().0);
        self.annotate_number(Annotation::Step, step.step.0);
        if self.facts.has_balance {
            let share = step.tile_balance.share();
            self.annotate(Annotation::TileBalance, |inner| {
                inner.real(field::annotation::DOUBLE, share);
            });
        }
        if self.facts.has_bytes {
            for (annotation, bytes) in
                [(Annotation::BytesIn, step.bytes_in), (Annotation::BytesOut, step.bytes_out)]
            {
                if !bytes.is_zero() {
                    self.annotate_number(annotation, bytes.0);
                }
            }
        }
        for flow in slice.flows.starting.iter().chain(&slice.flows.passing) {
            self.packets.fixed(field::event::FLOW_ID, *flow);
        }
        for flow in &slice.flows.ending {
            self.packets.fixed(field::event::TERMINATING_FLOW_ID, *flow);
        }
        self.end_event(open, start)?;
        self.end_slice(0, end)?;
        let CounterTracks { bytes_in, bytes_out, .. } = self.counters;
        self.count_moved(bytes_in, (start, end), step.bytes_in.0)?;
        self.count_moved(bytes_out, (start, end), step.bytes_out.0)
    }

    fn host_mark(&mut self, process: u32, row: usize, mark: &TraceMark) -> io::Result<()> {
        if self.sequence != OTHER_SEQUENCE {
            self.start_sequence(OTHER_SEQUENCE, 0)?;
        }
        let parent = self.processes.get(&process).copied().unwrap_or(0);
        let key = (Some((process, mark.kind)), row);
        self.mark_on_row(key, (mark.kind.name(), parent), (mark, mark.cycles))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_packets()
    }
}
