//! Memory that a program takes on a tile besides its tensors: code and state.
//!
//! Poplar's code generator is closed, so these constants are derived from the few published totals.
//! Sizes of vertex code that were counted in public assembly are in `poplar::code_bytes`.

use super::ConstantUnit::{Bytes, Count, Ratio};
use super::cost_constants;

cost_constants! { MEMORY_CONSTANTS:
    /// A tile's share of the program on an IPU Model
    MODEL_TILE_BYTES = 14.0, Bytes, Fitted {
        source: "memory of the reduction rows",
        serves: "validate",
    }

    /// Additional memory of the first tile of an IPU Model: the program's own variables
    MODEL_FIRST_TILE_BYTES = 96.0, Bytes, Fitted {
        source: "fullest tiles of the reduction rows",
        serves: "validate",
    }

    /// Code of the copies of rearranged operands, for benchmarks that compile code
    REARRANGING_CODE_BYTES = 1_400.0, Bytes, Fitted {
        source: "memory of the 1x1 Inception convolutions; other rows held out",
        serves: "validate: convolutions",
    }

    /// State of a convolution vertex beyond its list of edges
    CONV_FIELD_BYTES = 16.0, Bytes, Fitted {
        source: "vertex state of the matmul tutorial, by poplibs' field layout",
        serves: "matrix products, convolutions",
    }

    /// State of a vertex with one edge: a header and a pointer
    SINGLE_EDGE_STATE_BYTES = 12.0, Bytes, Assumed {
        source: "vertex state of an empty program and of the matmul tutorial",
        serves: "vertex state",
    }

    /// State of a vertex with more edges; its edge lists are in field data
    VERTEX_STATE_BYTES = 16.0, Bytes, Assumed {
        source: "the same",
        serves: "vertex state",
    }

    /// Reserved at the start of a memory element or region, before its first variable
    ELEMENT_RESERVED_BYTES = 24.0, Bytes, Measured {
        source: "fullest tiles of Poplar's op benchmarks",
        serves: "including gaps, fullest tile",
    }

    /// Stack of a GC2's tile
    MK1_STACK_BYTES = 3_168.0, Bytes, Measured {
        source: "3,852,288 B on 1,216 tiles, graphcore/tensorflow docs/logging.rst",
        serves: "every tile of a Mk1",
    }

    /// Stack of a GC200's tile
    MK2_STACK_BYTES = 1_100.0, Bytes, Assumed {
        source: "upper bound left by the dense-layer report of ipu_tensorflow_addons",
        serves: "every tile of a Mk2 or Bow",
    }

    /// Control code of an empty program on a tile
    EMPTY_CONTROL_CODE_BYTES = 700.0, Bytes, Measured {
        source: "an adder on GC2, graphcore/tensorflow docs/logging.rst",
        serves: "every tile",
    }

    /// Vertex code of an empty program on a tile
    EMPTY_VERTEX_CODE_BYTES = 140.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Host exchange code of an empty program on a tile
    EMPTY_HOST_EXCHANGE_CODE_BYTES = 289.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Internal exchange code of an empty program on a tile
    EMPTY_INTERNAL_EXCHANGE_CODE_BYTES = 48.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Variables of an empty program on a tile
    EMPTY_VARIABLE_BYTES = 32.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Vertex state of an empty program on a tile
    EMPTY_VERTEX_STATE_BYTES = 12.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Headers of host packets of an empty program on a tile
    EMPTY_PACKET_HEADER_BYTES = 8.0, Bytes, Measured {
        source: "the adder of docs/logging.rst",
        serves: "every tile",
    }

    /// Counters of the profiler in addition to one per compute set
    EXTRA_COUNTERS = 2.0, Count("counters"), Assumed {
        source: "no published figure shows them separately",
        serves: "instrumentation results",
    }

    /// Control code of one step on a participating tile
    CONTROL_BYTES_PER_STEP = 24.0, Bytes, Measured {
        source: "a launch of the adder of docs/logging.rst",
        serves: "control code",
    }

    /// Exchange code of one received message, and of one send of up to 64 words
    EXCHANGE_BYTES_PER_MESSAGE = 4.0, Bytes, Published {
        source: "poplibs lib/popops/DynamicSlice.cpp",
        serves: "internal exchange code",
    }

    /// Host exchange code of one packet
    HOST_BYTES_PER_PACKET = 12.0, Ratio("bytes"), Fitted {
        source: "host exchange code of BERT-Large with one replica, including transfers of weights",
        serves: "host exchange code",
    }

    /// Largest packet from the host to a tile
    HOST_PACKET_IN_BYTES = 1_024.0, Bytes, Published {
        source: "osmarks/ipu-stack, exchange notes",
        serves: "host exchange code",
    }

    /// Largest packet from a tile to the host
    HOST_PACKET_OUT_BYTES = 256.0, Bytes, Published {
        source: "osmarks/ipu-stack, exchange notes",
        serves: "host exchange code",
    }

    /// Code of one end of a copy between IPUs
    INTER_IPU_END_CODE_BYTES = 8.0, Bytes, Assumed {
        source: "no published figure shows it separately",
        serves: "global exchange code",
    }

    /// Code of each 64-word send of a copy between IPUs
    INTER_IPU_SEND_CODE_BYTES = 8.0, Bytes, Assumed {
        source: "no published figure shows it separately",
        serves: "global exchange code",
    }

    /// Code of copy vertices on a tile with at least one
    COPY_CODE_BYTES = 690.0, Bytes, Fitted {
        source: "remainder of the dense layer's total",
        serves: "vertex code",
    }

    /// Code of a vertex type whose size was not counted: about the size of the small counted ones
    OTHER_VERTEX_CODE_BYTES = 240.0, Bytes, Assumed {
        source: "sizes in poplar/code_bytes.rs, counted from assembly sources",
        serves: "vertex code",
    }
}
