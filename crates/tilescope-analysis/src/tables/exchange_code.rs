//! Tables of exchange code: by link, by program, by tile.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::exchange_code::{
    ExchangeCodeOverview, ExchangeLink, ExchangeLinkTotals, ExchangeProgramRow, ExchangeTileRow,
};
use tilescope_report::units::Bytes;

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
