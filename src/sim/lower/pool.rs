//! Pooling: how outputs are dealt to tiles, and what that costs.
//!
//! The plan follows poplibs lib/popnn/PoolPlan.cpp: groups of channels, and splits of channel
//! groups, rows and columns that minimise vertex cycles plus input bytes; vertex cycles follow
//! lib/popnn/popnnCycleEstimators.cpp.

use super::context::Lowering;
use super::elementwise;
use super::exchange;
use super::layout::{Layout, Order};
use super::work::{Place, Temporary, Work};
use crate::report::Category;
use crate::sim::graph::DType;
use crate::units::{TileRange, TileRuns};

/// A pooling operation.
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    /// Samples.
    pub batch: u64,
    /// Channels.
    pub channels: u64,
    /// Height and width of the pooled side.
    pub output: [u64; 2],
    /// Height and width of the other side.
    pub input: [u64; 2],
    /// Side of a window.
    pub kernel: u64,
    /// Distance of windows.
    pub stride: u64,
    /// Element type.
    pub dtype: DType,
    /// Whether this is the gradient.
    pub backward: bool,
}

/// How one pooling is dealt to tiles: each tile makes a box of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    channels_per_group: u64,
    groups_per_tile: u64,
    rows_per_tile: u64,
    columns_per_tile: u64,
    cycles: u64,
}

impl Pooling {
    /// Height and width of the result.
    fn result(&self) -> [u64; 2] {
        if self.backward { self.input } else { self.output }
    }

    /// Positions of the window that touch one result element: all when pooling; going back, those
    /// of the windows that overlap it.
    fn positions(&self) -> u64 {
        let along = if self.backward { self.kernel.div_ceil(self.stride) } else { self.kernel };
        along * along
    }

    /// Tile cycles of a vertex that makes `rows` x `columns` x `channels` results per sample row.
    fn vertex_cycles(&self, rows: u64, columns: u64, channels: u64, groups: u64) -> u64 {
        let vectors = channels.div_ceil(elementwise::vector_width(self.dtype));
        let work_items = rows.div_ceil(6);
        let per_position = if self.backward { 7 + 5 * columns } else { 4 + 3 * columns };
        let worker = 17
            + (4 + columns * vectors)
            + work_items * (13 + self.positions() * (20 + vectors * (2 + per_position + 1)));
        7 + 6 * worker * groups + 6
    }

    /// Bytes a tile reads for its box of the result.
    fn input_bytes(&self, rows: u64, columns: u64, channels: u64) -> u64 {
        let halo = |size: u64| {
            if self.backward {
                size.div_ceil(self.stride) + self.kernel.div_ceil(self.stride) - 1
            } else {
                (size - 1) * self.stride + self.kernel
            }
        };
        let mut elements = halo(rows) * halo(columns) * channels;
        if self.backward {
            // The gradient and the forward output of the windows, and the forward input itself.
            elements = 2 * elements + rows * columns * channels;
        }
        elements * self.dtype.bytes()
    }

    /// The cheapest way to deal `batch` x `channels` x rows x columns to `tiles`.
    fn plan(&self, tiles: u64, bytes_per_cycle: u64) -> Plan {
        let [rows, columns] = self.result();
        let rows_all = rows * self.batch;
        let mut best: Option<Plan> = None;
        for channels_per_group in candidates(self.channels, elementwise::vector_width(self.dtype)) {
            let groups = self.channels.div_ceil(channels_per_group);
            for group_split in splits(groups) {
                let groups_per_tile = groups.div_ceil(group_split);
                for column_split in splits(columns) {
                    let columns_per_tile = columns.div_ceil(column_split);
                    let left = tiles / (group_split * column_split);
                    if left == 0 {
                        continue;
                    }
                    let rows_per_tile = rows_all.div_ceil(left.min(rows_all));
                    let channels = channels_per_group * groups_per_tile;
                    let cycles = self.vertex_cycles(
                        rows_per_tile,
                        columns_per_tile,
                        channels_per_group,
                        groups_per_tile,
                    ) + self
                        .input_bytes(rows_per_tile, columns_per_tile, channels)
                        .div_ceil(bytes_per_cycle);
                    let plan = Plan {
                        channels_per_group,
                        groups_per_tile,
                        rows_per_tile,
                        columns_per_tile,
                        cycles,
                    };
                    if best.is_none_or(|best| cycles < best.cycles) {
                        best = Some(plan);
                    }
                }
            }
        }
        best.unwrap_or(Plan {
            channels_per_group: self.channels,
            groups_per_tile: 1,
            rows_per_tile: rows_all,
            columns_per_tile: columns,
            cycles: u64::MAX,
        })
    }
}

/// Sizes of channel groups: multiples of four up to 32 that are not wasteful, or all channels.
fn candidates(channels: u64, width: u64) -> impl Iterator<Item = u64> {
    (1..=8)
        .map(|i| i * 4)
        .filter(move |size| *size <= channels.next_multiple_of(width))
        .chain([channels.min(4)])
}

/// Split counts with different largest parts.
fn splits(size: u64) -> Vec<u64> {
    let mut counts: Vec<u64> =
        (1..=size.min(64)).map(|parts| size.div_ceil(size.div_ceil(parts))).collect();
    counts.push(size);
    counts.dedup();
    counts
}

/// Lowers a pooling; `sources` are the bytes per tile of its operands. Returns the result's layout.
pub fn lower(lowering: &Lowering, pooling: &Pooling, sources: &[TileRuns<u64>]) -> (Work, Layout) {
    let plan = pooling.plan(u64::from(lowering.tiles), lowering.exchange_speed());
    let boxes = boxes(pooling, &plan);
    let name = if pooling.backward { "maxPoolBwd" } else { "maxPool" };
    let mut work = Work::default();
    let received = boxes.map(|tile| pooling.input_bytes(tile[0], tile[1], tile[2]));
    let sent = sources
        .iter()
        .fold(TileRuns::empty(), |sum, source| add_runs(&sum, source, lowering.tiles));
    work.push_some(exchange::phase(
        name,
        &received,
        &sent,
        (4, 4),
        lowering.tiles,
        lowering.exchange_speed(),
    ));
    let ty = pooling.dtype.poplar_name();
    let vertex = if pooling.backward {
        format!("popnn::MaxPoolingGrad<{ty}>")
    } else {
        format!("popnn::MaxPooling<{ty}>")
    };
    let cycles = |tile: &[u64; 3]| {
        pooling.vertex_cycles(
            tile[0],
            tile[1],
            plan.channels_per_group,
            tile[2].div_ceil(plan.channels_per_group),
        )
    };
    work.push(elementwise::compute(name, vertex, 3, boxes.map(cycles)));
    work.temporaries.push(Temporary {
        name: format!("{name}/message"),
        category: Category::Message,
        bytes: received,
        place: Place::Any,
        live: 0..work.items.len(),
    });
    let elements = boxes.map(|tile| tile[0] * tile[1] * tile[2]);
    (work, Layout { elements, order: Order::Grouped { axis: 1, group: plan.channels_per_group } })
}

/// Rows, columns and channels of the result that each tile makes.
fn boxes(pooling: &Pooling, plan: &Plan) -> TileRuns<[u64; 3]> {
    let [rows, columns] = pooling.result();
    let part = |size: u64, share: u64, index: u64| share.min(size - (index * share).min(size));
    let rows_all = rows * pooling.batch;
    let channels_per_tile = plan.channels_per_group * plan.groups_per_tile;
    let mut boxes = TileRuns::empty();
    let mut tile = 0u32;
    for row in 0..rows_all.div_ceil(plan.rows_per_tile) {
        for column in 0..columns.div_ceil(plan.columns_per_tile) {
            for channel in 0..pooling.channels.div_ceil(channels_per_tile) {
                let shape = [
                    part(rows_all, plan.rows_per_tile, row),
                    part(columns, plan.columns_per_tile, column),
                    part(pooling.channels, channels_per_tile, channel),
                ];
                boxes.push(TileRange::new(tile, tile + 1), shape);
                tile += 1;
            }
        }
    }
    boxes
}

/// Sum of two values per tile.
pub fn add_runs(a: &TileRuns<u64>, b: &TileRuns<u64>, tiles: u32) -> TileRuns<u64> {
    TileRuns::from_tiles(
        0,
        (0..tiles)
            .map(|tile| {
                let sum = a.get(tile).copied().unwrap_or(0) + b.get(tile).copied().unwrap_or(0);
                (sum > 0).then_some(sum)
            })
            .collect::<Vec<_>>(),
    )
}
