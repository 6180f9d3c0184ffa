//! Host copies that follow each other. They share one sync, and one begin and one end on each IPU.

use super::host_copies::HostStreamCopy;
use tilescope_report::units::{IpuId, ProgramId};

/// The copies of one IPU from or to the host in one exchange.
#[derive(Clone, Debug)]
pub(crate) struct HostExchange<'a> {
    first: &'a HostStreamCopy,
    others: Vec<&'a HostStreamCopy>,
}

impl<'a> HostExchange<'a> {
    /// Makes an exchange of a single copy.
    pub(crate) fn of(copy: &'a HostStreamCopy) -> Self {
        Self { first: copy, others: Vec::new() }
    }

    /// The copies of the exchange, in order.
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

    /// The sync before the exchange. Exchanges of other IPUs can share it.
    pub(crate) fn sync(&self) -> ProgramId {
        self.first.sync
    }

    /// The steps of the exchange: a begin, the transfers, and an end.
    pub(crate) fn steps(&self) -> Vec<ProgramId> {
        let transfers = self.copies().map(|copy| copy.transfer);
        let begin = std::iter::once(self.first.begin);
        begin.chain(transfers).chain([self.last().end]).collect()
    }
}

/// Groups the copies of a slot in one direction into exchanges that share a sync. If neighbours are
/// merged (PopART's pass MergeExchange, for copies of any IPU), one group holds all of them.
/// Otherwise a group holds the copies that are parts of one tensor.
pub(crate) fn host_exchanges<'a>(
    copies: impl IntoIterator<Item = &'a HostStreamCopy>,
    merge: bool,
) -> Vec<Vec<HostExchange<'a>>> {
    let mut groups: Vec<Vec<HostExchange>> = Vec::new();
    for copy in copies {
        let last = groups.last_mut();
        let joined = last.filter(|last| merge || last.iter().any(|of| of.sync() == copy.sync));
        match joined {
            Some(group) => match group.iter_mut().find(|of| of.ipu() == copy.ipu) {
                Some(exchange) => exchange.others.push(copy),
                None => group.push(HostExchange::of(copy)),
            },
            None => groups.push(vec![HostExchange::of(copy)]),
        }
    }
    groups
}
