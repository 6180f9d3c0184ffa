//! Tables of exchanges: code and traffic by link, by program and by tile; cycles in the run.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::exchange_code::{
    ExchangeCodeOverview, ExchangeCycles, ExchangeCyclesList, ExchangeLink, ExchangeLinkTotals,
    ExchangeProgramRow, ExchangeRun, ExchangeTile, ExchangeTileRow, IpuPair,
};
use crate::limits::BusiestTile;
use tilescope_report::units::{Bytes, Cycles};

const SHARED_CODE_HINT: &str = "Code of the programs, each counted separately, minus code in memory: code that programs \
     share.";
const UNATTRIBUTED_CODE_HINT: &str =
    "Code in memory minus code of the programs: code that every tile holds, whatever it exchanges.";
const BYTES_MOVED_HINT: &str = "Each program counted once; loop iterations are not counted.";

/// Code by kind of link.
pub fn overview(overview: &ExchangeCodeOverview) -> DataTable {
    let columns = vec![
        TableColumn::text("Link"),
        TableColumn::bytes("Code in memory").about("Bytes over all tiles of a replica"),
        TableColumn::number("Share of memory").about("Bytes of code / bytes that tiles use"),
        TableColumn::bytes("Fullest tile").about("Most code of this kind on one tile"),
        TableColumn::bytes("Code of programs").about("Sum over programs, each counted separately"),
        TableColumn::bytes("Shared").about(SHARED_CODE_HINT),
        TableColumn::bytes("Unattributed").about(UNATTRIBUTED_CODE_HINT),
        TableColumn::number("Programs").about("Programs that move data over this link"),
        TableColumn::number("Messages").about(BYTES_MOVED_HINT),
        TableColumn::number("Bytes moved").about(BYTES_MOVED_HINT),
    ];
    let row = |of: &ExchangeLinkTotals| {
        let recorded = of.program_bytes.is_some();
        let known = |cell: TableCell| if recorded { cell } else { TableCell::Missing };
        vec![
            of.link.title().into(),
            TableCell::Bytes(of.stored),
            share(of.stored, overview.used),
            TableCell::Bytes(of.fullest),
            of.program_bytes.map(TableCell::Bytes).into(),
            of.shared().map(TableCell::Bytes).into(),
            of.unattributed().map(TableCell::Bytes).into(),
            known(TableCell::Count(of.programs)),
            known(TableCell::Count(of.messages)),
            known(TableCell::Bytes(of.bytes)),
        ]
    };
    DataTable::new(columns, overview.links.iter().map(row).collect())
}

/// A part of all; missing where there is nothing to be a part of.
pub fn share(part: Bytes, all: Bytes) -> TableCell {
    (!all.is_zero()).then(|| TableCell::Share(part.as_f64() / all.as_f64())).into()
}

/// Programs that move data.
pub fn programs(rows: &[ExchangeProgramRow]) -> DataTable {
    let columns = vec![
        TableColumn::text("Name"),
        TableColumn::text("Type"),
        TableColumn::short("Link"),
        TableColumn::short("Id"),
        TableColumn::bytes("Code").about("Code of this program, summed over tiles"),
        TableColumn::bytes("Received")
            .about("Bytes that arrive when it runs once, summed over tiles"),
        TableColumn::bytes("Sent")
            .about("Bytes that leave when it runs once; a multicast counts once"),
        TableColumn::number("Messages received").about("When it runs once, summed over tiles"),
        TableColumn::number("Messages sent").about("When it runs once; a multicast counts once"),
        TableColumn::number("Tiles").about("Tiles that take part"),
    ];
    let row = |row: &ExchangeProgramRow| {
        vec![
            row.name.as_str().into(),
            row.kind.name().into(),
            row.link.title().into(),
            TableCell::Id(row.program.0.into()),
            TableCell::Bytes(row.traffic.code_bytes),
            TableCell::Bytes(row.traffic.bytes_in),
            TableCell::Bytes(row.traffic.bytes_out),
            TableCell::Count(row.traffic.messages_in),
            TableCell::Count(row.traffic.messages_out),
            TableCell::Count(row.tiles),
        ]
    };
    DataTable::new(columns, rows.iter().map(row).collect()).with_totals()
}

/// Tiles that hold exchange code or take part in an exchange.
pub fn tiles(rows: &[ExchangeTileRow]) -> DataTable {
    let code = |link: ExchangeLink| {
        TableColumn::bytes(format!("{} code", link.title()))
            .about("Bytes in the memory of this tile")
    };
    let mut columns = vec![TableColumn::text("Tile")];
    columns.extend(ExchangeLink::ALL.map(code));
    columns.extend(
        ["Received", "Sent"].map(|title| TableColumn::bytes(title).about(BYTES_MOVED_HINT)),
    );
    let messages = ["Messages received", "Messages sent"];
    columns.extend(messages.map(|title| TableColumn::number(title).about(BYTES_MOVED_HINT)));
    let row = |row: &ExchangeTileRow| {
        let mut cells = vec![TableCell::Tile(row.tile)];
        cells.extend(row.code.map(TableCell::Bytes));
        cells.extend([row.traffic.bytes_in, row.traffic.bytes_out].map(TableCell::Bytes));
        cells.extend([row.traffic.messages_in, row.traffic.messages_out].map(TableCell::Count));
        cells
    };
    DataTable::new(columns, rows.iter().map(row).collect()).with_totals()
}

/// What IPUs send to each other in the run.
pub fn ipu_pairs(pairs: &[IpuPair]) -> DataTable {
    let columns = vec![
        TableColumn::text("From"),
        TableColumn::text("To").about("Not recorded: the report does not name who receives it."),
        TableColumn::number("Exchanges").about("Each as often as it ran"),
        TableColumn::bytes("Sent")
            .about("Bytes of an exchange from one IPU to the other x executions"),
    ];
    let row = |pair: &IpuPair| {
        let to = pair.to.map_or_else(|| "not recorded".to_owned(), |ipu| format!("IPU {ipu}"));
        vec![
            format!("IPU {}", pair.from).into(),
            to.into(),
            TableCell::Count(pair.executions),
            TableCell::Bytes(pair.bytes),
        ]
    };
    DataTable::new(columns, pairs.iter().map(row).collect()).with_totals()
}

const ARRIVAL_SPREAD_HINT: &str = "Cycles from the first to the last tile that is done with the step before, by its cycles of \
     tiles; mean over executions. Empty where the step before has none: it is no compute set and no \
     exchange between tiles, or the report does not record them";
const LAST_TILE_HINT: &str = "The tile that comes last where the spread is largest, the first of those that come last \
     together; empty where all tiles always come together, or nobody knows";
const START_HINT: &str = "Cycles of a step - cycles of its slowest tile: what an exchange takes before its tiles move \
     anything, sync left out; mean over executions";
const TRANSFER_HINT: &str = "Cycles of a step - its start, all behind the last arrival; mean over executions. Without a \
     start, all cycles of a step";
const LOWER_BOUND_HINT: &str = "Of exchanges between tiles, what the busiest tile needs: the larger of bytes sent / bytes per \
     cycle, and bytes received / bytes per cycle, twice as fast for what another tile on its bus \
     can receive too. Between IPUs, the larger of bytes sent and received / bytes per cycle of all \
     links of the IPU together, each way. Else bytes / bytes per cycle of the interface of the IPU";

/// What exchanges take in the run, and could take at least.
pub fn cycles(list: &ExchangeCyclesList) -> DataTable {
    let bytes = |title, about| TableColumn::bytes(title).about(about);
    let columns = vec![
        TableColumn::text("Name"),
        TableColumn::short("Link"),
        TableColumn::short("IPU").about("IPU of the replica"),
        TableColumn::short("Id"),
        TableColumn::number("Avoidable cycles").about("(Transfer - lower bound) x executions"),
        TableColumn::number("Cycles").about("Cycles of all its steps in the run, syncs left out"),
        TableColumn::number("Executions"),
        TableColumn::number("Transfer").about(TRANSFER_HINT),
        TableColumn::number("Lower bound").about(LOWER_BOUND_HINT),
        TableColumn::number("Arrival spread").about(ARRIVAL_SPREAD_HINT),
        TableColumn::number("Last tile").about(LAST_TILE_HINT),
        TableColumn::number("Start").about(START_HINT),
        TableColumn::number("Tile balance").about(
            "Cycles that tiles of the IPU need at least on average / those of the busiest one",
        ),
        TableColumn::number("Busiest sender")
            .about("The tile that sends most; the first of equals"),
        bytes("Sends", "Bytes of the busiest sender in one execution"),
        TableColumn::number("Busiest receiver")
            .about("The tile that receives most; the first of equals"),
        bytes("Receives", "Bytes of the busiest receiver in one execution"),
    ];
    let row = |row: &ExchangeCycles| {
        let [sender, sends] = busiest(row.traffic.and_then(|of| of.sender));
        let [receiver, receives] = busiest(row.traffic.and_then(|of| of.receiver));
        let [avoidable, all, executions, transfer, spread, last, start] = of_run(row.run.as_ref());
        vec![
            row.name.as_str().into(),
            row.link.title().into(),
            TableCell::Id(row.ipu.into()),
            TableCell::Id(row.program.0.into()),
            avoidable,
            all,
            executions,
            transfer,
            count(row.mean_least()),
            spread,
            last,
            start,
            row.balance(&list.machine).map(TableCell::Share).into(),
            sender,
            sends,
            receiver,
            receives,
        ]
    };
    // Cycles of IPUs that run at the same time add up to nothing, so there are no totals.
    DataTable::new(columns, list.rows.iter().map(row).collect())
}

fn count(cycles: Option<Cycles>) -> TableCell {
    cycles.map(|cycles| TableCell::Count(cycles.0)).into()
}

/// What was executed, in the order of the columns.
fn of_run(run: Option<&ExchangeRun>) -> [TableCell; 7] {
    let Some(run) = run else { return [const { TableCell::Missing }; 7] };
    // Of what never ran, nothing has a mean.
    let ran = run.executions > 0;
    let arrivals = run.arrivals.ok().filter(|_| ran);
    [
        count(run.avoidable()),
        TableCell::Count(run.cycles.0),
        TableCell::Count(run.executions),
        count(ran.then(|| run.mean_transfer())),
        count(arrivals.map(|of| of.mean_spread())),
        arrivals.and_then(|of| of.last).map(TableCell::Tile).into(),
        count(run.mean_start().filter(|_| ran)),
    ]
}

fn busiest(tile: Option<BusiestTile>) -> [TableCell; 2] {
    let cell = |of: fn(BusiestTile) -> TableCell| tile.map(of).into();
    [cell(|of| TableCell::Tile(of.tile)), cell(|of| TableCell::Bytes(of.bytes))]
}

/// The tiles of one exchange.
pub fn exchange_tiles(rows: &[ExchangeTile]) -> DataTable {
    let columns = vec![
        TableColumn::text("Tile"),
        TableColumn::number("Cycles at least").about(LOWER_BOUND_HINT).without_sum(),
        TableColumn::number("Cycles")
            .about("Cycles in which it sends or receives in one execution")
            .without_sum(),
        TableColumn::bytes("Received").about("In one execution"),
        TableColumn::bytes("Sent").about("In one execution; a multicast counts once"),
        TableColumn::number("Messages received").about("In one execution"),
        TableColumn::number("Messages sent").about("In one execution; a multicast counts once"),
    ];
    let row = |of: &ExchangeTile| {
        vec![
            TableCell::Tile(of.tile),
            count(of.least.map(|least| Cycles::from_f64(least.floor()))),
            count(of.cycles),
            TableCell::Bytes(of.traffic.bytes_in),
            TableCell::Bytes(of.traffic.bytes_out),
            TableCell::Count(of.traffic.messages_in),
            TableCell::Count(of.traffic.messages_out),
        ]
    };
    DataTable::new(columns, rows.iter().map(row).collect()).with_totals()
}
