//! Steps of fragments and copies, in the order of the program.

use tilescope_report::units::{IpuId, ProgramId};

/// A step of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum FragmentItem {
    Leaf(ProgramId),
    /// Steps that run several times over.
    Loop {
        times: u64,
        body: Vec<FragmentItem>,
    },
    /// A sync of an IPU with those that wait for its host copies.
    HostSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of an IPU with those that work on the same phase beside it, or share rows with it.
    SetSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of an IPU before it exchanges data with its place in the other replicas.
    ReplicaSync {
        program: ProgramId,
        ipu: IpuId,
    },
    /// A sync of the I/O tiles and the steps of a copy behind it, while the compute tiles go on.
    IoStream {
        sync: ProgramId,
        steps: Vec<ProgramId>,
        ipu: IpuId,
    },
    /// The compute tiles of an IPU wait for its I/O tiles.
    WaitForIo(IpuId),
}

/// The first program of a sequence that is no sync with the host.
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

/// The last program of a sequence that is no sync with the host.
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

/// Hands over the leaves of some items, and how many times each runs.
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
