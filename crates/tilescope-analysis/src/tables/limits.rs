//! The tables of limits.

use super::operations::{OperationColumn, pass_title};
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::limits::{
    CycleClass, LimitsRow, Machine, Roofline, WaterfallCycles, engine_title, interface_title,
};
use tilescope_report::units::Cycles;

fn cycles(cycles: Option<Cycles>) -> TableCell {
    cycles.map(|cycles| TableCell::Count(cycles.0)).into()
}

fn share(share: Option<f64>) -> TableCell {
    share.map(TableCell::Share).into()
}

fn whole(number: f64) -> TableCell {
    TableCell::Count(Cycles::from_f64(number.round()).0)
}

const CYCLES: OperationColumn = OperationColumn::of_limits(
    "cycles",
    "Cycles",
    "Cycles of all its steps in the run, on all lanes; syncs are not among them",
    |limits| TableCell::Count(limits.total().0),
);
pub(super) const IDEAL: OperationColumn = OperationColumn::of_limits(
    "ideal",
    "Ideal cycles",
    "The largest of: FLOPs / (peak of its engine x tiles), bytes of exchanges that do more than \
     change a layout / (bytes per cycle of a tile x tiles), bytes over links, from and to the host \
     and remote buffers / bytes per cycle of the interface; over all executions in the run",
    |limits| cycles(limits.ideal.map(|ideal| ideal.cycles)),
);
pub(super) const WASTED: OperationColumn = OperationColumn::of_limits(
    "wasted",
    "Wasted cycles",
    "Cycles of all its steps in the run - ideal cycles",
    |limits| cycles(limits.wasted()),
);
pub(super) const BOUND: OperationColumn = OperationColumn::of_limits(
    "bound",
    "Bound",
    "What most of its cycles go into: compute, balance (tiles that wait in compute sets), \
     exchange, rearrangement, sync and start, host, remote buffers or links",
    |limits| TableCell::Text(limits.bound().map_or("", CycleClass::title).to_owned()),
);
pub(super) const ENGINE: OperationColumn = OperationColumn::of_limits(
    "engine",
    "Engine",
    "The fastest engine that its vertices compute on, by the names of their types: the matrix \
     engine (AMP) or vector units, and the type of its operands",
    |limits| {
        let title = limits.engine.map(|engine| engine_title(engine.rate));
        TableCell::Text(title.unwrap_or_default())
    },
);
pub(super) const OF_PEAK: OperationColumn = OperationColumn::of_limits(
    "of_peak",
    "Of peak",
    "FLOPs that its results need / (cycles of all its steps x peak of its engine x tiles of the \
     IPU)",
    |limits| share(limits.of_peak),
);
pub(super) const PADDED: OperationColumn = OperationColumn::of_limits(
    "padded",
    "Padded",
    "1 - FLOPs that its results need / FLOPs that its vertices do: channels are filled up to whole \
     groups. Counted for convolutions and products",
    |limits| share(limits.padded()),
);
pub(super) const TILES_IN_USE: OperationColumn = OperationColumn::of_limits(
    "tiles",
    "Tiles in use",
    "Tiles that take part in its compute sets, as a mean over their cycles; those that only copy \
     are left out",
    |limits| limits.tiles_in_use.map(whole).into(),
);
pub(super) const TILE_BALANCE: OperationColumn = OperationColumn::of_limits(
    "balance",
    "Tile balance",
    "Cycles in which tiles work / (cycles of the slowest tile x tiles of the IPU) in its compute \
     sets; those that only copy are left out",
    |limits| share(limits.tile_balance),
);
pub(super) const OF_FABRIC: OperationColumn = OperationColumn::of_limits(
    "of_fabric",
    "Exchange",
    "Bytes of its exchanges / (their cycles x bytes per cycle of a tile x tiles): bytes sent, or \
     received as far as two tiles on a bus can receive the same",
    |limits| share(limits.exchange.and_then(|of| of.of_fabric)),
);
pub(super) const OF_TILE: OperationColumn = OperationColumn::of_limits(
    "of_tile",
    "Busiest tile",
    "Bytes of the busiest tile of each of its exchanges / (their cycles x bytes per cycle of a \
     tile)",
    |limits| share(limits.exchange.and_then(|of| of.of_tile)),
);
pub(super) const OF_LINKS: OperationColumn = OperationColumn::of_limits(
    "of_links",
    "Links",
    "Bytes between IPUs / (cycles of GlobalExchange x bytes per cycle of all links of an IPU)",
    |limits| share(limits.links.and_then(|of| of.of_limit)),
);
pub(super) const OF_HOST: OperationColumn = OperationColumn::of_limits(
    "of_host",
    "Host",
    "Bytes from and to the host / (cycles of these copies x bytes per cycle of the host interface)",
    |limits| share(limits.host.and_then(|of| of.of_limit)),
);
pub(super) const OF_REMOTE_BUFFERS: OperationColumn = OperationColumn::of_limits(
    "of_remote_buffers",
    "Remote buffers",
    "Bytes from and to remote buffers / (cycles of these copies x bytes per cycle of streaming \
     memory)",
    |limits| share(limits.remote_buffers.and_then(|of| of.of_limit)),
);

/// Figures of the table of limits, in its order; wasted cycles come first, by which it is ordered.
static COLUMNS: [OperationColumn; 14] = [
    WASTED,
    CYCLES,
    IDEAL,
    BOUND,
    ENGINE,
    OF_PEAK,
    PADDED,
    TILES_IN_USE,
    TILE_BALANCE,
    OF_FABRIC,
    OF_TILE,
    OF_LINKS,
    OF_HOST,
    OF_REMOTE_BUFFERS,
];

/// What a row is, in the first columns of every table of rows.
fn named_columns() -> Vec<TableColumn> {
    vec![
        TableColumn::text("Operation"),
        TableColumn::text("Operator").about("Operator, or what programs do that belong to none"),
        TableColumn::short("Pass").about("Forward, backward or update"),
        TableColumn::short("IPU").about("IPU of the replica"),
    ]
}

fn named_cells(row: &LimitsRow) -> Vec<TableCell> {
    vec![
        row.name.as_str().into(),
        row.kind.as_str().into(),
        pass_title(row.pass).into(),
        row.ipu.map_or_else(|| "".into(), |ipu| TableCell::Id(ipu.into())),
    ]
}

/// What rows could cost at least, and what they use of what the machine can do.
pub fn operations(rows: &[LimitsRow]) -> DataTable {
    let figures = COLUMNS.iter().map(OperationColumn::column);
    let columns = named_columns().into_iter().chain(figures).collect();
    let cells = |row: &LimitsRow| {
        let figures = COLUMNS.iter().map(|column| column.limit(&row.limits));
        named_cells(row).into_iter().chain(figures).collect()
    };
    DataTable::new(columns, rows.iter().map(cells).collect())
}

/// Where the cycles of rows go.
pub fn classes(rows: &[LimitsRow]) -> DataTable {
    let class = |class: CycleClass| TableColumn::number(class.title()).about(class.about());
    let figures = std::iter::once(CYCLES.column()).chain(CycleClass::ALL.into_iter().map(class));
    let columns = named_columns().into_iter().chain(figures).collect();
    let cells = |row: &LimitsRow| {
        let classes = row.limits.cycles.iter().map(|(_, cycles)| TableCell::Count(cycles.0));
        let figures = std::iter::once(CYCLES.limit(&row.limits)).chain(classes);
        named_cells(row).into_iter().chain(figures).collect()
    };
    DataTable::new(columns, rows.iter().map(cells).collect())
}

/// Where the cycles of a run go, from the peak down.
pub fn waterfall(cycles: &WaterfallCycles) -> DataTable {
    let row = |(step, amount): (crate::limits::WaterfallStep, Cycles)| {
        let share = TableCell::Share(cycles.share(step));
        vec![step.title().into(), TableCell::Count(amount.0), share, step.about().into()]
    };
    let columns = vec![
        TableColumn::text("Step"),
        TableColumn::number("Cycles").about("Cycles of the compute tiles of all IPUs of a replica"),
        TableColumn::number("Share").about("Of the cycles of the run x IPUs"),
        TableColumn::text("What goes into it"),
    ];
    let rows = cycles.iter().filter(|(_, cycles)| !cycles.is_zero()).map(row).collect();
    DataTable::new(columns, rows).with_totals()
}

/// Points and roofs of a roofline.
pub fn roofline(roofline: &Roofline, rows: &[LimitsRow], machine: &Machine) -> DataTable {
    let per_second = |per_cycle: f64| -> TableCell {
        machine.clock.map(|clock| TableCell::Real(per_cycle * clock.0 as f64)).into()
    };
    let points = roofline.points.iter().filter_map(|point| {
        let row = rows.get(point.row)?;
        let flops_per_byte = Some(point.flops_per_byte).filter(|value| value.is_finite());
        Some(vec![
            row.name.as_str().into(),
            row.limits.engine.map(|engine| engine_title(engine.rate).into()).into(),
            point.interface.map(|interface| interface_title(interface).into()).into(),
            flops_per_byte.map(TableCell::Real).into(),
            TableCell::Real(point.flops_per_cycle),
            per_second(point.flops_per_cycle),
        ])
    });
    let columns = vec![
        TableColumn::text("Operation"),
        TableColumn::text("Engine"),
        TableColumn::text("Interface").about(
            "The interface that its bytes would take longest over; none if it moves nothing",
        ),
        TableColumn::number("FLOPs per byte")
            .about("FLOPs that its results need / bytes over that interface")
            .without_sum(),
        TableColumn::number("FLOPs per cycle")
            .about("FLOPs that its results need / cycles of all its steps, exchanges included")
            .without_sum(),
        TableColumn::number("FLOPs per second").without_sum(),
    ];
    DataTable::new(columns, points.collect())
}
