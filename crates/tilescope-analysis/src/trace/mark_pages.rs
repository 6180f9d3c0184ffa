//! Marks of a kind by start, read a page at a time.

use std::iter::Peekable;
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaClassId};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark};

/// Marks that are read at once.
const PAGE: usize = 1 << 16;
/// Phases of a run in which a pipeline is full, by start.
pub(super) fn full_phases(report: &Report) -> Result<Vec<CycleRange>, ReportError> {
    let mut full = Vec::new();
    for mark in MarkPages::new(report, (ReplicaClassId(0), MarkKind::Phase, None), None) {
        let mark = mark?;
        full.extend((!crate::label_conventions::is_ramp(&mark)).then_some(mark.cycles));
    }
    Ok(full)
}

/// The earlier of the next marks of two kinds; of the first kind, if both start together.
pub(super) fn earlier(
    first: &mut Peekable<MarkPages<'_>>,
    second: &mut Peekable<MarkPages<'_>>,
) -> Option<Result<TraceMark, ReportError>> {
    let start = |mark: Option<&Result<TraceMark, ReportError>>| match mark {
        Some(Ok(mark)) => mark.cycles.start,
        // Errors are told at once.
        Some(Err(_)) => Cycles::ZERO,
        None => Cycles::MAX,
    };
    let second_first = start(second.peek()) < start(first.peek());
    if second_first { second.next() } else { first.next().or_else(|| second.next()) }
}

/// All marks of a kind of some replicas by start, read a page at a time.
pub(super) struct MarkPages<'a> {
    report: &'a Report,
    class: ReplicaClassId,
    kind: MarkKind,
    /// Their IPU; that of all of them if there is none.
    ipu: Option<IpuId>,
    page: std::vec::IntoIter<TraceMark>,
    /// Where the next page begins.
    from: Option<Cycles>,
    /// None that is wanted begins behind this.
    until: Cycles,
    limit: usize,
    more: bool,
}

impl<'a> MarkPages<'a> {
    pub(super) fn new(
        report: &'a Report,
        (class, kind, ipu): (ReplicaClassId, MarkKind, Option<IpuId>),
        part: Option<CycleRange>,
    ) -> Self {
        Self {
            report,
            class,
            kind,
            ipu,
            page: Vec::new().into_iter(),
            from: part.map(|part| part.start),
            until: part.map_or(Cycles::MAX, |part| part.end),
            limit: PAGE,
            more: true,
        }
    }

    fn next_page(&mut self) -> Result<(), ReportError> {
        // A mark without cycles shares none with a window that begins with it.
        let window =
            self.from.map(|from| CycleRange::new(from.saturating_sub(Cycles(1)), self.until));
        let filter = MarkFilter { kind: Some(self.kind), ipu: self.ipu, window, limit: self.limit };
        let mut marks = self.report.marks_of_class(self.class, &filter)?;
        self.more = marks.len() >= self.limit;
        // Marks that reach into the window were in the page before.
        marks.retain(|mark| self.from.is_none_or(|from| mark.cycles.start >= from));
        if let Some(last) = marks.last().filter(|_| self.more).map(|mark| mark.cycles.start) {
            // Those that start with the last one may not all be in this page.
            marks.retain(|mark| mark.cycles.start < last);
            self.from = Some(last);
        }
        if marks.is_empty() && self.more {
            // More than a page start together, or reach over where it begins.
            self.limit = self.limit.saturating_mul(2);
        }
        self.page = marks.into_iter();
        Ok(())
    }
}

impl Iterator for MarkPages<'_> {
    type Item = Result<TraceMark, ReportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(mark) = self.page.next() {
                return Some(Ok(mark));
            }
            if !self.more {
                return None;
            }
            if let Err(error) = self.next_page() {
                self.more = false;
                return Some(Err(error));
            }
        }
    }
}
