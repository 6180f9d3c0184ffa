//! Phased execution: the sets of IPUs that work, and those that load.
//!
//! A phase holds some layers. Outside the phase their weights, and the activations that wait for
//! the backward pass, are in streaming memory. The even IPUs of a replica form one set, the odd
//! ones the other. Even phases run on the even set and odd phases on the odd one, so that one set
//! loads the data of its next phase while the other works (`ExecutionPhaseIOSchedule::Preload`, the
//! default). For this, `SyncPattern::ReplicaAndLadder` gives each set a part of GS2 of its own:
//!
//! ```text
//!             phase 0     phase 1     phase 2     phase 3
//!  IPUs 0, 2  work        load 2      work        load
//!  IPUs 1, 3  load 1      work        load 3      work
//! ```
//!
//! The stages of a phase, one for each IPU of its set, run at the same time. Each holds its part of
//! the weights, which it loads, updates and stores by itself, and parts of a result cross between
//! the IPUs of the set before the phase is over. PopTorch requires the model to be written in such
//! parts (its test of two by two IPUs has a separate product on each). Here the columns of linear
//! layers are split if the saved loading time exceeds the crossing time. Other operations of a
//! split phase run on every IPU of its set. An unsplit phase runs on one IPU. The phases of the
//! first part of the model alternate between the IPUs of the first pair, those of the last part
//! between the IPUs of the last pair.
//!
//! With one set (`executionPhaseSettings.stages = 1`) all IPUs work on every phase. Then only I/O
//! tiles can load while compute tiles work. Tensors that they do not move are loaded between
//! phases.
//!
//! Sources: the PopTorch guide, "Phased execution", and `ParallelPhasedExecution` (phases 0 and 2
//! on IPUs 0 and 2, phase 1 on 1 and 3; the end of the forward pass and the start of the backward
//! pass share a phase); popart `ExecutionPhaseSettings`.

use tilescope_report::units::IpuId;

/// The IPU of an unsplit phase, one of `phases`, which alternate over `sets` sets.
pub(super) fn phase_ipu(phase: usize, phases: usize, ipus: u32, sets: u32) -> IpuId {
    if sets == 1 {
        return IpuId(0);
    }
    // Data cross faster within a pair than between pairs.
    let pairs = (ipus as usize / 2).min(phases.div_ceil(2)).max(1);
    IpuId::from_index(2 * (phase * pairs / phases) + phase % 2)
}

/// The set that an IPU belongs to.
pub(super) fn phase_set(ipu: IpuId, ipus: u32, sets: u32) -> Vec<IpuId> {
    (ipu.0 % sets..ipus).step_by(sets as usize).map(IpuId).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_those_of_the_guide() {
        for (phase, set) in [(0, [0, 2]), (1, [1, 3]), (2, [0, 2])] {
            assert_eq!(phase_set(phase_ipu(phase, 3, 4, 2), 4, 2), set.map(IpuId), "phase {phase}");
        }
    }

    #[test]
    fn phases_alternate_within_a_pair() {
        let placed = |phases: usize, ipus| -> Vec<u32> {
            (0..phases).map(|phase| phase_ipu(phase, phases, ipus, 2).0).collect()
        };
        assert_eq!(placed(4, 2), [0, 1, 0, 1]);
        assert_eq!(placed(8, 4), [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(placed(4, 8), [0, 1, 2, 3]);
    }

    #[test]
    fn one_set_has_all_ipus() {
        assert_eq!(phase_set(phase_ipu(3, 4, 3, 1), 3, 1), [0, 1, 2].map(IpuId));
    }
}
