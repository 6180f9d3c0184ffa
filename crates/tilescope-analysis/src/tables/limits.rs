//! Tables of limits: bounds, classes of cycles, the waterfall and the roofline.

use super::operations::{OperationColumn, pass_title};
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::limits::{
    CycleClass, LimitsRow, Machine, OperationLimits, Roofline, WaterfallCycles, engine_title,
    interface_title,
};
use crate::table;
use tilescope_report::units::Cycles;

fn share(share: Option<f64>) -> TableCell {
    share.map(TableCell::Share).into()
}

fn whole(number: f64) -> TableCell {
    TableCell::Count(Cycles::from_f64(number.round()).0)
}

const CYCLES: OperationColumn = OperationColumn::of_limits(
    "cycles",
    "Cycles",
    "Cycles of all its steps in the run on all lanes, without syncs",
    |limits| limits.total().into(),
)
.sum_of_group();

/// Columns of limits: key, title, cell, and description.
macro_rules! limit_columns {
    ($($key:ident $title:literal |$limits:ident| $cell:expr, $about:expr $(=> $special:ident)?;)*) => {
        [$(OperationColumn::of_limits(
            stringify!($key),
            $title,
            $about,
            |$limits| TableCell::from($cell),
        )$(.$special())?),*]
    };
}

/// Columns that the table of operations has too.
pub(super) static OF_OPERATIONS: [OperationColumn; 13] = limit_columns! {
    ideal "Ideal cycles" |limits| limits.ideal.map(|ideal| ideal.cycles),
        "The largest of: FLOPs / (peak of its engine x tiles), bytes of exchanges that do more than \
         change a layout / (bytes per cycle of a tile x tiles), bytes over links, from and to the host \
         and remote buffers / bytes per cycle of the interface; over all executions in the run"
        => sum_of_group;
    wasted "Wasted cycles" |limits| limits.wasted(),
        "Cycles of all its steps in the run - ideal cycles" => sum_of_group;
    bound "Bound" |limits| limits.bound().map_or("", CycleClass::title),
        "The class with most of its cycles: compute, balance (tiles that wait in compute sets), \
         exchange, rearrangement, sync and start, host, remote buffers or links";
    engine "Engine" |limits| limits.engine.map_or_else(String::new, |of| engine_title(of.rate)),
        "The fastest engine that its vertices compute on, by the names of their types: the matrix \
         engine (AMP) or vector units, and the type of its operands";
    of_peak "Of peak" |limits| share(limits.of_peak),
        "FLOPs that its results need / (cycles of all its steps x peak of its engine x tiles of the \
         IPU)";
    padded "Padded" |limits| share(limits.padded()),
        "1 - FLOPs that its results need / FLOPs that its vertices do: channels are filled up to whole \
         groups. Counted for convolutions and products";
    tiles "Tiles in use" |limits| limits.tiles_in_use.map(whole),
        "Tiles used by its compute sets, as a mean over their cycles; without compute sets that \
         only copy" => most;
    balance "Tile balance" |limits| share(limits.tile_balance),
        "Cycles in which tiles work / (cycles of the slowest tile x tiles of the IPU) in its \
         compute sets; without those that only copy";
    of_fabric "Exchange" |limits| share(limits.exchange.and_then(|of| of.of_fabric)),
        "Bytes of its exchanges / (their cycles x bytes per cycle of a tile x tiles): bytes sent, or \
         received as far as two tiles on a bus can receive the same";
    of_tile "Busiest tile" |limits| share(limits.exchange.and_then(|of| of.of_tile)),
        "Bytes of the busiest tile of each of its exchanges / (their cycles x bytes per cycle of a \
         tile)";
    of_links "Links" |limits| share(limits.links.and_then(|of| of.of_limit)),
        "Bytes between IPUs / (cycles of GlobalExchange x bytes per cycle of all links of an IPU)";
    of_host "Host" |limits| share(limits.host.and_then(|of| of.of_limit)),
        "Bytes from and to the host / (cycles of these copies x bytes per cycle of the host interface)";
    of_remote_buffers "Remote buffers" |limits| share(limits.remote_buffers.and_then(|of| of.of_limit)),
        "Bytes from and to remote buffers / (cycles of these copies x bytes per cycle of streaming \
         memory)";
};

/// Columns of the table of limits, in its order; wasted cycles come first, since the table is
/// sorted by them.
pub(crate) fn columns() -> impl Iterator<Item = &'static OperationColumn> {
    static ALL_CYCLES: OperationColumn = CYCLES;
    let [ideal, wasted, rest @ ..] = &OF_OPERATIONS;
    [wasted, &ALL_CYCLES, ideal].into_iter().chain(rest)
}

/// Lower bounds of rows, and their use of the machine.
pub fn operations(rows: &[LimitsRow]) -> DataTable {
    let titles = columns().map(OperationColumn::column).collect();
    limits_table(rows, titles, |of| columns().map(|column| column.limit(of)).collect())
}

/// Cycles of rows by class.
pub fn classes(rows: &[LimitsRow]) -> DataTable {
    let mut columns = vec![CYCLES.column()];
    for class in CycleClass::ALL {
        columns.push(TableColumn::grouped_cycles(class.title()).about(class.about()));
    }
    limits_table(rows, columns, |of| {
        let classes = of.cycles.iter().map(|(_, cycles)| TableCell::from(cycles));
        [CYCLES.limit(of)].into_iter().chain(classes).collect()
    })
}

/// A table of rows with figures of their limits.
fn limits_table(
    rows: &[LimitsRow],
    columns: Vec<TableColumn>,
    figures: impl Fn(&OperationLimits) -> Vec<TableCell>,
) -> DataTable {
    table! { rows, |row|
        operation "Operation" => &row.name;
        operator "Operator" => &row.kind, "Operator, or the kind of programs without an operation";
        pass "Pass" => pass_title(row.pass), "Forward, backward or update";
        ipu "IPU" => row.ipu.map_or_else(|| "".into(), TableCell::from), "IPU of the replica";
        all columns => figures(&row.limits);
    }
}

/// Cycles of a run by waterfall step, from the peak down.
pub fn waterfall(cycles: &WaterfallCycles) -> DataTable {
    let table = table! { cycles.iter().filter(|(_, cycles)| !cycles.is_zero()), |(step, amount)|
        text "Step" => step.title();
        cycles "Cycles" => amount, "Cycles of the compute tiles of all IPUs of a replica";
        share "Share" => cycles.share(step), "Of the cycles of the run x IPUs";
        text "Components of this class" => step.about();
    };
    table.with_totals()
}

/// Points and roofs of a roofline.
pub fn roofline(roofline: &Roofline, rows: &[LimitsRow], machine: &Machine) -> DataTable {
    const INTERFACE: &str = "The interface that limits its bytes; none if it moves no data";
    const PER_CYCLE: &str =
        "FLOPs that its results need / cycles of all its steps, including exchanges";
    let points = roofline.points.iter().filter_map(|point| Some((point, rows.get(point.row)?)));
    table! { points, |(point, row)|
        operation "Operation" => &row.name;
        text "Engine" => row.limits.engine.map(|engine| engine_title(engine.rate));
        text "Interface" => point.interface.map(interface_title), INTERFACE;
        unsummed "FLOPs per byte" => Some(TableCell::Real(point.flops_per_byte)).filter(|_| point.flops_per_byte.is_finite()),
            "FLOPs that its results need / bytes over that interface";
        unsummed "FLOPs per cycle" => TableCell::Real(point.flops_per_cycle), PER_CYCLE;
        unsummed "FLOPs per second" => machine.clock.map(|clock| TableCell::Real(point.flops_per_cycle * clock.0 as f64));
    }
}
