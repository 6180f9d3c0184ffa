//! Host copies that follow each other: one sync for all, and one begin and one end on each IPU.

use super::host_copies::HostStreamCopy;
use tilescope_report::units::{IpuId, ProgramId};

/// What one IPU copies from or to the host in one exchange.
#[derive(Clone, Debug)]
pub(crate) struct HostExchange<'a> {
    first: &'a HostStreamCopy,
    others: Vec<&'a HostStreamCopy>,
}

impl<'a> HostExchange<'a> {
    /// The exchange of one copy.
    pub(crate) fn of(copy: &'a HostStreamCopy) -> Self {
        Self { first: copy, others: Vec::new() }
    }

    /// Its copies, in order.
    pub(crate) fn copies(&self) -> impl Iterator<Item = &'a HostStreamCopy> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    pub(crate) fn first(&self) -> &'a HostStreamCopy {
        self.first
    }

    pub(crate) fn last(&self) -> &'a HostStreamCopy {
        self.others.last().copied().unwrap_or(self.first)
    }

    pub(crate) fn ipu(&self) -> IpuId {
        self.first.ipu
    }

    /// The sync before it, which it may share with exchanges of other IPUs.
    pub(crate) fn sync(&self) -> ProgramId {
        self.first.sync
    }

    /// Its steps: a begin, the transfers, an end.
    pub(crate) fn steps(&self) -> Vec<ProgramId> {
        let transfers = self.copies().map(|copy| copy.transfer);
        let begin = std::iter::once(self.first.begin);
        begin.chain(transfers).chain([self.last().end]).collect()
    }
}

/// Copies in one direction that a slot makes, as exchanges that share a sync: all of them where
/// neighbours are merged (PopART's pass MergeExchange, whatever IPUs they are of), else those that
/// are parts of one tensor.
pub(crate) fn host_exchanges<'a>(
    copies: impl IntoIterator<Item = &'a HostStreamCopy>,
    merge: bool,
) -> Vec<Vec<HostExchange<'a>>> {
    let mut groups: Vec<Vec<HostExchange>> = Vec::new();
    for copy in copies {
        let together = |group: &&mut Vec<HostExchange>| {
            merge || group.iter().any(|exchange| exchange.sync() == copy.sync)
        };
        match groups.last_mut().filter(together) {
            Some(group) => match group.iter_mut().find(|of| of.ipu() == copy.ipu) {
                Some(exchange) => exchange.others.push(copy),
                None => group.push(HostExchange::of(copy)),
            },
            None => groups.push(vec![HostExchange::of(copy)]),
        }
    }
    groups
}
