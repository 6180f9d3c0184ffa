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

    /// Rate over GW-Links of one IPU's share: 2 x 100 Gbit/s for the four of a machine
    GATEWAY_BYTES_PER_SECOND = 6.25e9, Ratio("bytes/s"), Published {
        source: "Bow-2000 data sheet",
        serves: "collectives over several racks",
    }

    /// Rate between one IPU and what is behind its eight PCIe lanes, without a framework: memory of a plain program's stream, and streaming memory, of which no measurement is public
    REMOTE_BYTES_PER_SECOND = 20.1e9, Ratio("bytes/s"), Measured {
        source: "graphcore/examples tut6 on hardware: 40.04 MB in 2,641,488 cycles",
        serves: "off-loaded tensors, streams of plain programs",
    }

    /// Before the transfer of a copy that no callback on the host answers
    REMOTE_BEGIN_CYCLES = 155.0, Cycles, Measured {
        source: "shortest StreamCopyBegin of the lightweight-profiling tutorial",
        serves: "off-loaded tensors",
    }

    /// After the transfer of such a copy
    REMOTE_END_CYCLES = 87.0, Cycles, Measured {
        source: "shortest StreamCopyEnd of the lightweight-profiling tutorial",
        serves: "off-loaded tensors",
    }

    /// A sync between IPUs, after the last one has arrived
    EXTERNAL_SYNC_CYCLES = 600.0, Cycles, Published {
        source: "Target::getGlobalSyncCycles, IPU21",
        serves: "programs on several IPUs, host copies",
    }

    /// A step of a collective besides its sync and its bytes
    COLLECTIVE_STEP_SECONDS = 2_056.0 / 1.6e9, Ratio("s"), Measured {
        source: "halos between 16 GC2 take 3,043 cycles, twice as many bytes 4,017 to 4,048, their syncs apart (thorbenlouw/lbm-graphcore, gaussian-blur-scaling/exchange-vs-compute.csv): 2,056 are not of bytes. The data-loading tutorial with two replicas (SDK 3.1) leaves 1.6 us",
        serves: "collectives",
    }

    /// Rate from the host to one IPU of a PopTorch program
    HOST_BYTES_PER_SECOND = 5.3e9, Ratio("bytes/s"), Fitted {
        source: "single-replica row of the PopTorch data-loading tutorial",
        serves: "host copies",
    }

    /// An exchange with the host besides its transfers, however many copies it has
    STREAM_HANDSHAKE_SECONDS = 15_700.0 / 1.33e9, Ratio("s"), Fitted {
        source: "trace of the PopTorch pipelining tutorial: 40 copies, which are 23 exchanges, leave 15,700 cycles for each of these",
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

    /// Before a transfer on the IPU Model
    MODEL_STREAM_BEGIN_CYCLES = 200.0, Cycles, Assumed {
        source: "control copies of the matmul tutorial leave about 300 cycles each besides the exchange behind them",
        serves: "host copies of an IPU Model",
    }

    /// After a transfer on the IPU Model
    MODEL_STREAM_END_CYCLES = 60.0, Cycles, Assumed {
        source: "the same control copies",
        serves: "host copies of an IPU Model",
    }

    /// A sync signal of the IPU Model per hop, there and back counted apart
    MODEL_SYNC_SECONDS_PER_HOP = 15e-9, Ratio("s"), Published {
        source: "poplibs lib/poplibs_test/Util.cpp, setGlobalSyncLatency",
        serves: "several IPUs of an IPU Model",
    }

    /// Error that nine of ten predictions stay below which rest on assumptions or on rates of links and host
    UNMEASURED_ERROR_SHARE = 0.25, Ratio("share"), Assumed {
        source: "published programs that use them are up to 20 % off",
        serves: "bands on predictions",
    }

    /// Between measured shapes and as far beyond them an operation counts as measured: rows of a kind are few
    NEAR_MEASURED_RATIO = 4.0, Ratio("ratio"), Assumed {
        source: "errors of the rows do not grow with their size",
        serves: "bands on predictions",
    }

    /// Cycles of copies of rows that end inside a vector over the predicted ones, or the inverse
    ODD_ROW_COPY_RATIO = 2.1, Ratio("ratio"), Measured {
        source: "the one public profile of an attention with odd rows (729 tokens, SDK 3): 126,283 cycles of strided copies, 60,200 predicted",
        serves: "bands on predictions",
    }

    /// Time of copies with the host, and of its loader, over the predicted one, or the inverse
    HOST_TIME_RATIO = 3.1, Ratio("ratio"), Measured {
        source: "three editions of the PopTorch data-loading tutorial: real data add 10.6, 14.0 and 17.9 ms to a call of 800 samples, and 9.1 and 42.7 ms to one of 3,200, where 10.5 are predicted",
        serves: "bands on predictions",
    }

    /// Error that nine of ten predictions of an imported model stay below, beside those of built-in ones
    IMPORTED_ERROR_SHARE = 0.15, Ratio("share"), Assumed {
        source: "nothing published; networks built in and imported took up to 15 % different times before layouts followed views",
        serves: "bands on predictions",
    }

    /// Cycles that splitting a phase over a set of IPUs has to save for each that it adds: most of what it saves is loading, which the other set's work hides in part
    SAVED_FOR_ADDED = 2.0, Ratio("ratio"), Assumed {
        source: "no schedule of PopART's is measured in public",
        serves: "phased programs on more than two IPUs",
    }

    /// Memory of an I/O tile over that of its data: a rule of thumb
    IO_TILE_OVERHEAD = 1.05, Ratio("ratio"), Published {
        source: "Memory and performance optimisation, 4.4.2",
        serves: "the note on the number of I/O tiles",
    }

    /// Bytes below which two-way rings win on a Barley twist: of an all-gather, and twice as many of a reduce-scatter
    SMALL_BARLEY_TWIST_BYTES = 196_608.0, Bytes, Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }

    /// Bytes below which a method with fewer steps wins
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

    /// Replicas from which no pair of rings is used whatever the size
    MANY_RANKS = 16.0, Count("replicas"), Published {
        source: "poplibs lib/popops/ReplicatedCollectives.cpp",
        serves: "collectives",
    }
}
