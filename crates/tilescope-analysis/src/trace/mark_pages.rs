//! Marks of a kind by start, read page by page.

use std::iter::Peekable;
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaClassId};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark};

/// The number of marks per read.
const PAGE: usize = 1 << 16;

/// The earlier of the next marks of two kinds; of the first kind, if both start together.
pub(super) fn earlier(
    first: &mut Peekable<MarkPages<'_>>,
    second: &mut Peekable<MarkPages<'_>>,
) -> Option<Result<TraceMark, ReportError>> {
    let start = |mark: Option<&Result<TraceMark, ReportError>>| match mark {
        Some(Ok(mark)) => mark.cycles.start,
        // Errors come first.
        Some(Err(_)) => Cycles::ZERO,
        None => Cycles::MAX,
    };
    let second_first = start(second.peek()) < start(first.peek());
    if second_first { second.next() } else { first.next().or_else(|| second.next()) }
}

/// All marks of a kind for a class of replicas by start, read page by page.
pub(super) struct MarkPages<'a> {
    report: &'a Report,
    class: ReplicaClassId,
    kind: MarkKind,
    /// Their IPU; `None` for all IPUs.
    ipu: Option<IpuId>,
    page: std::vec::IntoIter<TraceMark>,
    /// Start of the next page.
    from: Option<Cycles>,
    /// Upper bound of the start of marks.
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
        // A window excludes a mark without cycles at its start.
        let window =
            self.from.map(|from| CycleRange::new(from.saturating_sub(Cycles(1)), self.until));
        let filter = MarkFilter { kind: Some(self.kind), ipu: self.ipu, window, limit: self.limit };
        let mut marks = self.report.marks_of_class(self.class, &filter)?;
        self.more = marks.len() >= self.limit;
        // Marks that started before the window were in the previous page.
        marks.retain(|mark| self.from.is_none_or(|from| mark.cycles.start >= from));
        if let Some(last) = marks.last().filter(|_| self.more).map(|mark| mark.cycles.start) {
            // This page may lack some of the marks that start with the last one.
            marks.retain(|mark| mark.cycles.start < last);
            self.from = Some(last);
        }
        if marks.is_empty() && self.more {
            // More marks than a page start at the same cycle, or extend beyond the start of the
            // page.
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
