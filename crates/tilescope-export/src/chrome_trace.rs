//! Writes Chrome's trace events: one JSON object per line, with times in microseconds and three
//! decimals.

use crate::clock::NanosecondClock;
use crate::timeline::{LaneTrack, ProcessTrack, StepFacts, StepSlice, TraceWriter};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Write};
use tilescope_report::units::{CycleRange, Cycles, ProgramId};
use tilescope_report::{MarkKind, TraceMark};

/// Nanoseconds as microseconds, exactly.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// The maximum length of a string in characters. Each event repeats its name, so long names in an
/// untrusted file would turn a few megabytes into gigabytes.
const MOST_LETTERS: usize = 1024;

/// A text as JSON, cut with an ellipsis beyond [`MOST_LETTERS`].
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0.char_indices().nth(MOST_LETTERS) {
            Some((end, _)) => serde_json::to_string(&format!("{}…", &self.0[..end])),
            None => serde_json::to_string(self.0),
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

/// Writes trace events.
pub(crate) struct ChromeTrace<'a> {
    output: &'a mut dyn Write,
    facts: &'a StepFacts,
    clock: NanosecondClock,
    /// True if an event was written, so that a comma must follow.
    has_events: bool,
    process: u32,
    thread: u32,
    last_thread: u32,
    /// The name of the lane, which is the prefix of its counters.
    lane: String,
    /// Threads of marks beside the lane, or of the host, by process, kind and row.
    rows: BTreeMap<(Option<(u32, MarkKind)>, usize), u32>,
    /// Names of programs as JSON, built on first use. A map, because a file may have any ids of
    /// programs.
    program_names: HashMap<ProgramId, String>,
    /// The event under construction.
    event: Vec<u8>,
}

impl<'a> ChromeTrace<'a> {
    pub(crate) fn new(output: &'a mut dyn Write, facts: &'a StepFacts) -> io::Result<Self> {
        output.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self {
            output,
            facts,
            clock: facts.clock,
            has_events: false,
            process: 0,
            thread: 0,
            last_thread: 0,
            lane: String::new(),
            rows: BTreeMap::new(),
            program_names: HashMap::new(),
            event: Vec::new(),
        })
    }

    /// Writes the event under construction.
    fn send(&mut self) -> io::Result<()> {
        let between: &[u8] = if self.has_events { b",\n" } else { b"" };
        self.has_events = true;
        self.output.write_all(between)?;
        self.output.write_all(&self.event)?;
        self.event.clear();
        Ok(())
    }

    fn metadata(&mut self, what: &str, thread: Option<u32>, name: &str) -> io::Result<()> {
        let process = self.process;
        let name = Quoted(name);
        write!(self.event, "{{\"ph\":\"M\",\"pid\":{process}")?;
        if let Some(thread) = thread {
            write!(self.event, ",\"tid\":{thread}")?;
        }
        write!(self.event, ",\"name\":\"{what}\",\"args\":{{\"name\":{name}}}}}")?;
        self.send()
    }

    /// Names a thread; threads are sorted by number.
    fn start_thread(&mut self, name: &str) -> io::Result<u32> {
        self.last_thread += 1;
        let process = self.process;
        let thread = self.last_thread;
        self.metadata("thread_name", Some(thread), name)?;
        write!(
            self.event,
            "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"thread_sort_index\",\
             \"args\":{{\"sort_index\":{thread}}}}}"
        )?;
        self.send()?;
        Ok(thread)
    }

    /// Starts a slice; its name and arguments follow.
    fn begin_slice(&mut self, thread: u32, cycles: CycleRange, category: &str) -> io::Result<()> {
        let (start, end) = self.clock.range(cycles);
        let process = self.process;
        let at = Microseconds(start);
        let length = Microseconds(end - start);
        write!(
            self.event,
            "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{at},\"dur\":{length},\
             \"cat\":\"{category}\",\"name\":"
        )
    }

    fn mark(&mut self, thread: u32, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        self.begin_slice(thread, cycles, mark.kind.name())?;
        let name = Quoted(&mark.label);
        let length = cycles.length().0;
        let index = mark.index;
        write!(self.event, "{name},\"args\":{{\"cycles\":{length},\"index\":{index}")?;
        if let Some(pass) = mark.pass {
            write!(self.event, ",\"pass\":\"{}\"", pass.name())?;
        }
        self.event.extend_from_slice(b"}}");
        self.send()
    }

    fn mark_on_row(
        &mut self,
        (key, row): (Option<(u32, MarkKind)>, usize),
        name: &str,
        (mark, cycles): (&TraceMark, CycleRange),
    ) -> io::Result<()> {
        let thread = match self.rows.get(&(key, row)) {
            Some(thread) => *thread,
            None => {
                let thread = self.start_thread(name)?;
                self.rows.insert((key, row), thread);
                thread
            }
        };
        self.mark(thread, mark, cycles)
    }

    fn count(&mut self, name: &str, at: u64, bytes: u64) -> io::Result<()> {
        let process = self.process;
        let at = Microseconds(at);
        let lane = &self.lane;
        write!(
            self.event,
            "{{\"ph\":\"C\",\"pid\":{process},\"ts\":{at},\"name\":\"{lane} {name}\",\
             \"args\":{{\"bytes\":{bytes}}}}}"
        )?;
        self.send()
    }

    fn count_moved(&mut self, name: &str, (start, end): (u64, u64), bytes: u64) -> io::Result<()> {
        if bytes == 0 || !self.facts.has_bytes {
            return Ok(());
        }
        self.count(name, start, bytes)?;
        self.count(name, end, 0)
    }

    fn flow(&mut self, phase: &str, at: u64, number: u64) -> io::Result<()> {
        let process = self.process;
        let thread = self.thread;
        let at = Microseconds(at);
        // The arrow ends at the enclosing slice, not at the next one.
        let binding = if phase == "f" { ",\"bp\":\"e\"" } else { "" };
        write!(
            self.event,
            "{{\"ph\":\"{phase}\"{binding},\"pid\":{process},\"tid\":{thread},\"ts\":{at},\
             \"cat\":\"flow\",\"name\":\"data\",\"id\":\"{number:#x}\"}}"
        )?;
        self.send()
    }

    fn name_step(&mut self, slice: &StepSlice<'_>) -> io::Result<()> {
        let id = slice.step.program.filter(|_| slice.other_name.is_none());
        let Some(id) = id else {
            return write!(self.event, "{}", Quoted(slice.other_name.unwrap_or_default()));
        };
        let facts = self.facts;
        let name = self.program_names.entry(id).or_insert_with(|| {
            let name = facts.programs.get(id).map_or("", |program| program.name.as_str());
            Quoted(name).to_string()
        });
        self.event.extend_from_slice(name.as_bytes());
        Ok(())
    }
}

impl TraceWriter for ChromeTrace<'_> {
    fn process(&mut self, process: &ProcessTrack) -> io::Result<()> {
        self.process = process.number;
        self.metadata("process_name", None, &process.name)
    }

    fn lane(&mut self, lane: &LaneTrack) -> io::Result<()> {
        self.rows.retain(|(key, _), _| key.is_some());
        self.lane = lane.name();
        self.thread = self.start_thread(&lane.name())?;
        Ok(())
    }

    fn open_mark(&mut self, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        self.mark(self.thread, mark, cycles)
    }

    fn close_mark(&mut self, _: Cycles) -> io::Result<()> {
        // A complete slice was written at its start.
        Ok(())
    }

    fn mark_beside(&mut self, row: usize, mark: &TraceMark, cycles: CycleRange) -> io::Result<()> {
        let name = format!("{}, marks beside", self.lane);
        self.mark_on_row((None, row), &name, (mark, cycles))
    }

    fn step(&mut self, slice: &StepSlice<'_>) -> io::Result<()> {
        let step = slice.step;
        let (start, end) = self.clock.range(step.range);
        if let Some(live) = slice.live {
            self.count("live bytes", start, live)?;
        }
        self.begin_slice(self.thread, step.range, step.activity.name())?;
        self.name_step(slice)?;
        let cycles = step.range.length().0;
        let id = step.step.0;
        write!(self.event, ",\"args\":{{\"cycles\":{cycles},\"step\":{id}")?;
        if self.facts.has_balance {
            write!(self.event, ",\"tile_balance\":{}", step.tile_balance.share())?;
        }
        if self.facts.has_bytes {
            for (name, bytes) in [("bytes_in", step.bytes_in), ("bytes_out", step.bytes_out)] {
                if !bytes.is_zero() {
                    write!(self.event, ",\"{name}\":{}", bytes.0)?;
                }
            }
        }
        self.event.extend_from_slice(b"}}");
        self.send()?;
        let flows = slice.flows;
        for (phase, numbers) in
            [("s", &flows.starting), ("t", &flows.passing), ("f", &flows.ending)]
        {
            for number in numbers {
                self.flow(phase, start, *number)?;
            }
        }
        self.count_moved("bytes in", (start, end), step.bytes_in.0)?;
        self.count_moved("bytes out", (start, end), step.bytes_out.0)
    }

    fn host_mark(&mut self, process: u32, row: usize, mark: &TraceMark) -> io::Result<()> {
        let key = (Some((process, mark.kind)), row);
        self.mark_on_row(key, mark.kind.name(), (mark, mark.cycles))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.output.write_all(b"\n]}\n")
    }
}
