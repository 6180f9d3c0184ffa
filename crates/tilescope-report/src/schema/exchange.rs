//! Tables of exchanges: the traffic of their tiles, and who sends to whom.

use super::{BASE_TILE, BYTES, ID, KEY, NUMBER, SchemaTable, TEXT, col, table};

pub(super) const TRAFFIC: SchemaTable = table(
    "exchanges",
    "a program that moves data",
    &[
        col("id", KEY, "position"),
        col("program", ID, "programs.id"),
        BASE_TILE,
        col(
            "pattern",
            ID,
            "tile_patterns.id: bytes in, out and delivered, messages in and out, code",
        ),
    ],
    "",
);

pub(super) const CYCLES_BY_TILE: SchemaTable = table(
    "exchange_cycles",
    "time in which tiles send or receive in an exchange between tiles of an IPU; since version \
     2.3",
    &[
        col("exchange", KEY, "exchanges.id"),
        BASE_TILE,
        col("pattern", ID, "tile_patterns.id: cycles"),
    ],
    "",
);

pub(super) const ROUTES: SchemaTable = table(
    "exchange_routes",
    "tiles that send bytes to other tiles, in order; since version 2.11, `exchange_flows` has \
     these and all other known senders and receivers",
    &[
        col("id", KEY, "position"),
        col("program", ID, "programs.id"),
        col("first_sender", NUMBER, "first tile that sends"),
        col("end_sender", NUMBER, "first tile after the senders"),
        col("first_receiver", NUMBER, "first tile that receives"),
        col("end_receiver", NUMBER, "first tile after the receivers"),
        col("bytes", BYTES, "bytes that arrive"),
    ],
    "",
);

pub(super) const FLOWS: SchemaTable = table(
    "exchange_flows",
    "senders and receivers of bytes of an exchange; the rows of an exchange have all of its \
     bytes, and of an exchange without rows only the bytes of each tile are known; since \
     version 2.11",
    &[
        col("id", KEY, "position"),
        col("program", ID, "programs.id"),
        col(
            "kind",
            TEXT,
            "in_order: the first bytes of the first sender go to the first receiver; \
             rearranged: as in blocks; broadcast: a sender sends the same number of bytes to \
             all other receivers of its group; gather: a receiver gets the same number of \
             bytes from all other senders of its group; unknown: any in its group",
        ),
        BASE_TILE,
        col("pattern", ID, "tile_patterns.id: bytes delivered and received"),
        col(
            "groups",
            TEXT,
            "groups of tiles, JSON: first tile, first tile and number of tiles of a ring, both \
             from base_tile on, 1 if numbers increase towards lower tiles, then the digits of \
             a tile's number in the ring, the most significant first: values of the digit, and \
             even parts of them that are in different groups; NULL: no groups",
        ),
        col(
            "blocks",
            TEXT,
            "rearranged data, JSON: bytes of a unit, then blocks of the first position in the \
             memory of all senders and of all receivers, and for each dimension the number of \
             units, their distance on the side of the senders and that of the receivers, in \
             units; NULL: data keep their order",
        ),
    ],
    "",
);

pub(super) const MEMORY: SchemaTable = table(
    "exchange_memory",
    "memory along which the blocks of rearranged data count; units may be sent repeatedly, and \
     not all are sent or arrive; without a row, blocks count the delivered and the received bytes, \
     in tile order; since version 2.11",
    &[
        col("flow", KEY, "exchange_flows.id"),
        BASE_TILE,
        col("pattern", ID, "tile_patterns.id: bytes of memory of senders and of receivers"),
        col(
            "receivers",
            TEXT,
            "order of the receivers, JSON: first tile, first tile and number of tiles of a ring, \
             both from base_tile on, 1 if numbers increase towards lower tiles, then the digits \
             of the position of a tile, the most significant first: values of the digit, and \
             distance of their numbers; the number of a tile is the sum of its digits times their \
             distances; NULL: tile order",
        ),
    ],
    "",
);
