//! Steps of fragments and copies, in program order.

use tilescope_report::units::{IpuId, ProgramId};

/// A step of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum FragmentItem {
    Leaf(ProgramId),
    /// Steps that run several times.
    Loop {
        times: u64,
        body: Vec<FragmentItem>,
    },
    /// A sync of an IPU with the IPUs that wait for its host copies.
    HostSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of an IPU with the IPUs that work on the same phase beside it, or that share rows
    /// with it.
    SetSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of an IPU before it exchanges data with its counterparts in the other replicas.
    ReplicaSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of the I/O tiles and the copy steps after it, which run while the compute tiles
    /// continue.
    IoStream {
        sync: ProgramId,
        steps: Vec<ProgramId>,
        ipu: IpuId,
    },
    /// A wait of the compute tiles of an IPU for its I/O tiles.
    WaitForIo(IpuId),
}

/// Returns the first program of a sequence that is not a sync with the host.
pub(super) fn first_leaf(items: &[FragmentItem]) -> Option<ProgramId> {
    items.iter().find_map(|item| match item {
        FragmentItem::Leaf(program) => Some(*program),
        FragmentItem::IoStream { steps, .. } => steps.first().copied(),
        FragmentItem::Loop { body, .. } => first_leaf(body),
        FragmentItem::HostSync { .. }
        | FragmentItem::SetSync { .. }
        | FragmentItem::ReplicaSync { .. }
        | FragmentItem::WaitForIo(_) => None,
    })
}

/// Returns the last program of a sequence that is not a sync with the host.
pub(super) fn last_leaf(items: &[FragmentItem]) -> Option<ProgramId> {
    items.iter().rev().find_map(|item| match item {
        FragmentItem::Leaf(program) => Some(*program),
        FragmentItem::IoStream { steps, .. } => steps.last().copied(),
        FragmentItem::Loop { body, .. } => last_leaf(body),
        FragmentItem::HostSync { .. }
        | FragmentItem::SetSync { .. }
        | FragmentItem::ReplicaSync { .. }
        | FragmentItem::WaitForIo(_) => None,
    })
}

/// Calls `take` with each leaf of some items and the number of times that it runs.
pub(crate) fn for_each_leaf(
    items: &[FragmentItem],
    times: u64,
    take: &mut impl FnMut(ProgramId, u64),
) {
    for item in items {
        match item {
            FragmentItem::Leaf(program) => take(*program, times),
            FragmentItem::Loop { times: more, body } => for_each_leaf(body, times * more, take),
            FragmentItem::IoStream { .. }
            | FragmentItem::HostSync { .. }
            | FragmentItem::SetSync { .. }
            | FragmentItem::ReplicaSync { .. }
            | FragmentItem::WaitForIo(_) => {}
        }
    }
}
