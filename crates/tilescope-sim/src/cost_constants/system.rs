//! Costs outside the tiles: links between IPUs, sync, streaming memory and the host.

use super::ConstantUnit::{Bytes, Count, Cycles, Ratio};
use super::cost_constants;

cost_constants! { SYSTEM_CONSTANTS:
    /// Rate between paired IPUs: four links of 128 Gibit/s at 85 %
    PAIR_BYTES_PER_SECOND = 58.4e9, Ratio("bytes/s"), Published {
        source: "poplibs lib/poplibs_test/Util.cpp, addGlobalExchangeConstraints",
        serves: "copies between IPUs, collectives",
    }

    /// Rate up or down the ladder of pairs: two of those links
    LADDER_BYTES_PER_SECOND = 29.2e9, Ratio("bytes/s"), Published {
        source: "poplibs lib/poplibs_test/Util.cpp, addGlobalExchangeConstraints",
        serves: "copies between IPUs, collectives",
    }

    /// Rate over GW-Links per IPU: 2 x 100 Gbit/s for the four IPUs of a machine
    GATEWAY_BYTES_PER_SECOND = 6.25e9, Ratio("bytes/s"), Published {
        source: "Bow-2000 data sheet",
        serves: "collectives over several racks",
    }

    /// Rate over the eight PCIe lanes of one IPU without a framework: to the stream memory of a plain program, and to streaming memory, which has no public measurement
    REMOTE_BYTES_PER_SECOND = 20.1e9, Ratio("bytes/s"), Measured {
        source: "graphcore/examples tut6 on hardware: 40.04 MB in 2,641,488 cycles",
        serves: "offloaded tensors, streams of plain programs",
    }

    /// Time before the transfer of a copy without a host callback
    REMOTE_BEGIN_CYCLES = 155.0, Cycles, Measured {
        source: "shortest StreamCopyBegin of the lightweight-profiling tutorial",
        serves: "offloaded tensors",
    }

    /// Time after the transfer of such a copy
    REMOTE_END_CYCLES = 87.0, Cycles, Measured {
        source: "shortest StreamCopyEnd of the lightweight-profiling tutorial",
        serves: "offloaded tensors",
    }

    /// External sync, after the last IPU has arrived
    EXTERNAL_SYNC_CYCLES = 600.0, Cycles, Published {
        source: "Target::getGlobalSyncCycles, IPU21",
        serves: "programs on several IPUs, host copies",
    }

    /// A step of a collective, excluding its sync and its bytes
    COLLECTIVE_STEP_SECONDS = 2_056.0 / 1.6e9, Ratio("s"), Measured {
        source: "halos between 16 GC2 take 3,043 cycles, and 4,017 to 4,048 with twice the bytes, \
        excluding syncs (thorbenlouw/lbm-graphcore, gaussian-blur-scaling/exchange-vs-compute.csv): \
        2,056 cycles do not depend on bytes. The data-loading tutorial with two replicas (SDK 3.1) \
        leaves 1.6 µs",
        serves: "collectives",
    }

    /// Rate from the host to one IPU of a PopTorch program
    HOST_BYTES_PER_SECOND = 5.3e9, Ratio("bytes/s"), Fitted {
        source: "single-replica row of the PopTorch data-loading tutorial",
        serves: "host copies",
    }

    /// An exchange with the host, excluding its transfers, for any number of copies
    STREAM_HANDSHAKE_SECONDS = 15_700.0 / 1.33e9, Ratio("s"), Fitted {
        source: "trace of the PopTorch pipelining tutorial: 40 copies in 23 exchanges leave 15,700 cycles per exchange",
        serves: "host copies",
    }

    /// Share of that handshake that comes after the transfer
    STREAM_END_SHARE = 0.1, Ratio("share"), Assumed {
        source: "only the sum was fitted",
        serves: "StreamCopyBegin and StreamCopyEnd in traces",
    }

    /// Rate of the IPU Model's host
    MODEL_HOST_BYTES_PER_CYCLE = 6.0, Ratio("bytes/cycle"), Fitted {
        source: "graphcore/examples tut6: 40.04 MB in 6,663,551 cycles",
        serves: "host copies of an IPU Model",
    }

    /// Time before a transfer on the IPU Model
    MODEL_STREAM_BEGIN_CYCLES = 200.0, Cycles, Assumed {
        source: "control copies of the matmul tutorial leave about 300 cycles each, excluding the \
        exchange after them",
        serves: "host copies of an IPU Model",
    }

    /// Time after a transfer on the IPU Model
    MODEL_STREAM_END_CYCLES = 60.0, Cycles, Assumed {
        source: "the same control copies",
        serves: "host copies of an IPU Model",
    }

    /// A sync signal of the IPU Model per hop; each direction counts
    MODEL_SYNC_SECONDS_PER_HOP = 15e-9, Ratio("s"), Published {
        source: "poplibs lib/poplibs_test/Util.cpp, setGlobalSyncLatency",
        serves: "several IPUs of an IPU Model",
    }

    /// Error bound that holds for nine of ten predictions that depend on assumptions or on rates of links and host
    UNMEASURED_ERROR_SHARE = 0.25, Ratio("share"), Assumed {
        source: "published programs that use them are up to 20 % off",
        serves: "bands on predictions",
    }

    /// Factor beyond measured shapes up to which an operation counts as measured, because each kind has few rows
    NEAR_MEASURED_RATIO = 4.0, Ratio("ratio"), Assumed {
        source: "errors of the rows do not grow with their size",
        serves: "bands on predictions",
    }

    /// Ratio of actual and predicted cycles of copies of rows that end inside a vector, in either direction
    ODD_ROW_COPY_RATIO = 2.1, Ratio("ratio"), Measured {
        source: "the one public profile of an attention with odd rows (729 tokens, SDK 3): 126,283 cycles of strided copies, 60,200 predicted",
        serves: "bands on predictions",
    }

    /// Ratio of actual and predicted time of host copies and of the loader, in either direction
    HOST_TIME_RATIO = 3.1, Ratio("ratio"), Measured {
        source: "three editions of the PopTorch data-loading tutorial: real data add 10.6, 14.0 and 17.9 ms to a call of 800 samples, and 9.1 and 42.7 ms to one of 3,200, where 10.5 are predicted",
        serves: "bands on predictions",
    }

    /// Additional error bound that holds for nine of ten predictions of an imported model
    IMPORTED_ERROR_SHARE = 0.15, Ratio("share"), Assumed {
        source: "no published figure; built-in and imported networks differed by up to 15 % before \
        layouts followed views",
        serves: "bands on predictions",
    }

    /// Cycles that splitting a phase over a set of IPUs must save per added cycle: most saved cycles are loads, which the compute of the other set partly hides
    SAVED_FOR_ADDED = 2.0, Ratio("ratio"), Assumed {
        source: "no public measurement of PopART's schedule",
        serves: "phased programs on more than two IPUs",
    }

    /// Ratio of I/O tile memory and its data: a rule of thumb
    IO_TILE_OVERHEAD = 1.05, Ratio("ratio"), Published {
        source: "Memory and performance optimisation, 4.4.2",
        serves: "the note on the number of I/O tiles",
    }

    /// Size of an all-gather below which two-way rings are faster on a Barley twist; twice that for a reduce-scatter
    SMALL_BARLEY_TWIST_BYTES = 196_608.0, Bytes, Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }

    /// Bytes below which a method with fewer steps is faster
    SMALL_ALL_GATHER_BYTES = 622_592.0, Bytes, Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }

    /// The same from five replicas
    SMALL_BYTES_FROM_FIVE_RANKS = 2_490_368.0, Bytes, Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }

    /// The same from nine replicas
    SMALL_BYTES_FROM_NINE_RANKS = 19_922_944.0, Bytes, Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }

    /// Number of replicas from which no pair of rings is used for any size
    MANY_RANKS = 16.0, Count("replicas"), Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }
}
