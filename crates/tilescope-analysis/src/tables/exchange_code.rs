//! Tables of exchanges: code and traffic by link, by program and by tile; cycles in the run.

use crate::data_table::{DataTable, TableColumn};
use crate::exchange_code::{
    ExchangeCodeOverview, ExchangeCyclesList, ExchangeLink, ExchangeProgramRow, ExchangeRun,
    ExchangeTile, ExchangeTileRow, IpuPair,
};
use crate::table;
use tilescope_report::units::{Bytes, Cycles};

const SHARED_CODE_HINT: &str = "Code of the programs, each counted separately, minus code in memory: code that programs \
     share.";
const UNATTRIBUTED_CODE_HINT: &str = "Code in memory minus code of the programs: code that every \
tile has, regardless of its exchanges.";
const BYTES_MOVED_HINT: &str = "Each program counted once; loop iterations are not counted.";

/// Code by kind of link.
pub fn overview(overview: &ExchangeCodeOverview) -> DataTable {
    table! { &overview.links, |of|
        text "Link" => of.link.title();
        bytes "Code in memory" => of.stored, "Bytes over all tiles of a replica";
        part "Share of memory" => share(of.stored, overview.used), "Bytes of code / bytes that tiles use";
        unsummed_bytes "Fullest tile" => of.fullest, "Most code of this kind on one tile";
        bytes "Code of programs" => of.program_bytes, "Sum over programs, each counted separately";
        bytes "Shared" => of.shared(), SHARED_CODE_HINT;
        bytes "Unattributed" => of.unattributed(), UNATTRIBUTED_CODE_HINT;
        number "Programs" => of.program_bytes.map(|_| of.programs), "Programs that move data over this link";
        number "Messages" => of.program_bytes.map(|_| of.messages), BYTES_MOVED_HINT;
        number "Bytes moved" => of.program_bytes.map(|_| of.bytes), BYTES_MOVED_HINT;
    }
}

/// `part` as a share of `all`; `None` if `all` is zero.
pub fn share(part: Bytes, all: Bytes) -> Option<f64> {
    if all.is_zero() { None } else { Some(part.as_f64() / all.as_f64()) }
}

/// Programs that move data.
pub fn programs(rows: &[ExchangeProgramRow]) -> DataTable {
    let table = table! { rows, |row|
        operation "Name" => &row.name, "Debug name of the program";
        text "Type" => row.kind.name(), "Program.Type of libpva";
        short "Link" => row.link.title(), "Link that transfers its bytes";
        program "Id" => row.program, "programs.id";
        bytes "Code" => row.traffic.code_bytes, "Code of this program, summed over tiles";
        bytes "Received" => row.traffic.bytes_in, "Bytes that arrive when it runs once, summed over tiles";
        bytes "Sent" => row.traffic.bytes_out, "Bytes that leave when it runs once; a multicast counts once";
        number "Messages received" => row.traffic.messages_in, "When it runs once, summed over tiles";
        number "Messages sent" => row.traffic.messages_out, "When it runs once; a multicast counts once";
        most "Tiles" => row.tiles, "Tiles that take part";
    };
    table.with_totals().with_names(&[
        "name",
        "type",
        "link",
        "program",
        "code_bytes",
        "bytes_in",
        "bytes_out",
        "messages_in",
        "messages_out",
        "tiles",
    ])
}

/// Tiles that hold exchange code or take part in an exchange.
pub fn tiles(rows: &[ExchangeTileRow]) -> DataTable {
    let code = |link: ExchangeLink| {
        TableColumn::bytes(format!("{} code", link.title()))
            .about("Bytes in the memory of this tile")
    };
    let table = table! { rows, |row|
        text "Tile" => row.tile;
        all ExchangeLink::ALL.map(code) => row.code;
        bytes "Received" => row.traffic.bytes_in, BYTES_MOVED_HINT;
        bytes "Sent" => row.traffic.bytes_out, BYTES_MOVED_HINT;
        number "Messages received" => row.traffic.messages_in, BYTES_MOVED_HINT;
        number "Messages sent" => row.traffic.messages_out, BYTES_MOVED_HINT;
    };
    table.with_totals()
}

/// Traffic of each pair of IPUs in the run.
pub fn ipu_pairs(pairs: &[IpuPair]) -> DataTable {
    let table = table! { pairs, |pair|
        text "From" => format!("IPU {}", pair.from);
        text "To" => pair.to.map_or_else(|| "not recorded".to_owned(), |to| format!("IPU {to}")),
            "Not recorded: the report does not name the receiver.";
        number "Exchanges" => pair.executions, "Each multiplied by its executions";
        bytes "Sent" => pair.bytes, "Bytes of an exchange from one IPU to the other x executions";
    };
    table.with_totals()
}

const ARRIVAL_SPREAD_HINT: &str = "Cycles between the first and the last tile to finish the \
previous step; mean over executions. Empty if the cycles of its tiles are not recorded, or if it \
is neither a compute set nor an exchange between tiles";
const LAST_TILE_HINT: &str = "The last tile to arrive in the execution with the largest spread, or \
the first of several; empty if all tiles arrive together, or if this is unknown";
const START_HINT: &str = "Cycles of a step - cycles of its slowest tile: the start of an \
                          exchange, before its tiles move data, without syncs; mean over executions";
const TRANSFER_HINT: &str = "Cycles of a step - its start, all after the last arrival; mean over \
executions. Without a known start, all cycles of a step";
const LOWER_BOUND_HINT: &str = "For exchanges between tiles, the cycles of the busiest tile: the \
larger of bytes sent / bytes per cycle, and bytes received / bytes per cycle; data that another \
tile on its bus also receives is twice as fast. Between IPUs, the larger of bytes sent and \
received / bytes per cycle of all links of the IPU together, each way. Otherwise bytes / bytes per \
cycle of the interface of the IPU";

/// Cycles of exchanges in the run, and their lower bounds.
pub fn cycles(list: &ExchangeCyclesList) -> DataTable {
    const BALANCE: &str =
        "Mean of the minimum cycles of the tiles of the IPU / minimum cycles of the busiest tile";
    let rows = list.rows.iter().map(|row| {
        // An exchange that never ran has no means.
        let ran = row.run.as_ref().filter(|run| run.executions > 0);
        let arrivals = ran.and_then(|run| run.arrivals.as_ref().ok());
        let sender = row.traffic.and_then(|of| of.sender);
        let receiver = row.traffic.and_then(|of| of.receiver);
        (row, row.run.as_ref(), ran, arrivals, sender, receiver)
    });
    // Cycles of IPUs that run at the same time cannot be summed, so there are no totals.
    table! { rows, |(row, run, ran, arrivals, sender, receiver)|
        operation "Name" => &row.name;
        short "Link" => row.link.title();
        ipu_id "IPU" => row.ipu, "IPU of the replica";
        program "Id" => row.program;
        grouped_cycles "Avoidable cycles" => run.and_then(ExchangeRun::avoidable),
            "(Transfer - lower bound) x executions";
        grouped_cycles "Cycles" => run.map(|run| run.cycles),
            "Cycles of all its steps in the run, without syncs";
        grouped_number "Executions" => run.map(|run| run.executions);
        most_cycles "Transfer" => ran.map(ExchangeRun::mean_transfer), TRANSFER_HINT;
        most_cycles "Lower bound" => row.mean_least(), LOWER_BOUND_HINT;
        most_cycles "Arrival spread" => arrivals.map(|of| of.mean_spread()), ARRIVAL_SPREAD_HINT;
        unsummed "Last tile" => arrivals.and_then(|of| of.last), LAST_TILE_HINT;
        most_cycles "Start" => ran.and_then(ExchangeRun::mean_start), START_HINT;
        share "Tile balance" => row.balance(&list.machine), BALANCE;
        unsummed "Busiest sender" => sender.map(|of| of.tile),
            "The tile that sends the most bytes; the first if several are equal";
        most_bytes "Sends" => sender.map(|of| of.bytes), "Bytes of the busiest sender in one execution";
        unsummed "Busiest receiver" => receiver.map(|of| of.tile),
            "The tile that receives the most bytes; the first if several are equal";
        most_bytes "Receives" => receiver.map(|of| of.bytes),
            "Bytes of the busiest receiver in one execution";
    }
}

/// The tiles of one exchange.
pub fn exchange_tiles(rows: &[ExchangeTile]) -> DataTable {
    const ONCE: &str = "In one execution; a multicast counts once";
    let table = table! { rows, |of|
        text "Tile" => of.tile;
        unsummed_cycles "Minimum cycles" => of.least.map(|least| Cycles::from_f64(least.floor())),
            LOWER_BOUND_HINT;
        unsummed_cycles "Cycles" => of.cycles,
            "Cycles in which it sends or receives in one execution";
        bytes "Received" => of.traffic.bytes_in, "In one execution";
        bytes "Sent" => of.traffic.bytes_out, ONCE;
        number "Messages received" => of.traffic.messages_in, "In one execution";
        number "Messages sent" => of.traffic.messages_out, ONCE;
    };
    table.with_totals()
}
