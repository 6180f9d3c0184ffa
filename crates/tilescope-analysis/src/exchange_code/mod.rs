//! Exchanges: the code that every tile holds for them, the programs it belongs to, the data they
//! move, their senders and receivers, their cycles in the run and the lower bounds of these.

mod cycles;
mod flows;
mod ipu_pairs;
mod matrix;

pub use cycles::{
    ExchangeCycles, ExchangeCyclesList, ExchangeLine, ExchangeRun, ExchangeTile, TileArrivals,
    UnknownArrivals, exchange_cycles, exchange_tiles, explain_exchange,
};
pub use flows::{ExchangeFlow, ExchangeFlows, ExchangePattern};
pub use ipu_pairs::{IpuPair, ipu_pairs};
pub use matrix::{ExchangeMatrix, ExchangeMatrixKey, ExchangeMatrixPart, matrix};

use super::tile_curves::{
    TileAxisOrder, TileCurve, TileCurveLayer, TileCurveStack, TileCurveUnit, spread,
};
use serde::{Deserialize, Serialize};
use tilescope_report::units::{Bytes, OperationId, ProgramId, TileId};
use tilescope_report::{
    CategoryBytes, MemoryCategory, ProgramKind, Report, ReportError, TileTraffic,
};

/// The link that a piece of exchange code sends over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeLink {
    /// Between tiles of one IPU.
    Internal,
    /// Between the host with its memory and tiles.
    Host,
    Global,
}

impl ExchangeLink {
    /// Every link, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Internal, Self::Host, Self::Global];

    /// The name in the user interface.
    pub fn title(self) -> &'static str {
        match self {
            Self::Internal => "Internal",
            Self::Host => "Host",
            Self::Global => "Global",
        }
    }

    /// The memory category of its code.
    pub fn category(self) -> MemoryCategory {
        match self {
            Self::Internal => MemoryCategory::InternalExchangeCode,
            Self::Host => MemoryCategory::HostExchangeCode,
            Self::Global => MemoryCategory::GlobalExchangeCode,
        }
    }

    /// The link that a program uses.
    pub(crate) fn from_program_kind(kind: ProgramKind) -> Self {
        match kind {
            ProgramKind::GlobalExchange => Self::Global,
            ProgramKind::StreamCopyBegin
            | ProgramKind::StreamCopyMid
            | ProgramKind::StreamCopyEnd => Self::Host,
            _ => Self::Internal,
        }
    }
}

/// A measure of curves over tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeMeasure {
    /// Bytes of code by link.
    #[default]
    Code,
    /// Bytes received and sent.
    Traffic,
    /// Messages received and sent.
    Messages,
}

/// Curves of a measure over the tiles of the replica; layers without recorded data are empty.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn curves(
    report: &Report,
    measure: ExchangeMeasure,
    order: TileAxisOrder,
    per_ipu: bool,
) -> Result<TileCurveStack, ReportError> {
    let target = report.target()?;
    let tiles = target.tiles_per_replica() as usize;
    let (layers, unit) = match measure {
        ExchangeMeasure::Code => {
            let parts = report.tile_categories()?;
            let mut layers = Vec::new();
            for category in ExchangeLink::ALL.map(ExchangeLink::category) {
                layers.push(TileCurve {
                    layer: TileCurveLayer::Category(category),
                    values: spread(&parts, tiles, |parts| code_of(parts, category)),
                });
            }
            (layers, TileCurveUnit::Bytes)
        }
        ExchangeMeasure::Traffic => {
            let layers = [
                (TileCurveLayer::Received, TileTrafficCounter::BytesIn),
                (TileCurveLayer::Sent, TileTrafficCounter::BytesOut),
            ];
            (traffic(report, layers)?, TileCurveUnit::Bytes)
        }
        ExchangeMeasure::Messages => {
            let layers = [
                (TileCurveLayer::MessagesIn, TileTrafficCounter::MessagesIn),
                (TileCurveLayer::MessagesOut, TileTrafficCounter::MessagesOut),
            ];
            (traffic(report, layers)?, TileCurveUnit::Count)
        }
    };
    let mut curves = TileCurveStack::stacked(layers, unit);
    curves.layers.retain(|curve| curve.values.iter().any(|value| *value > 0));
    Ok(curves.arranged(&target, order, per_ipu))
}

fn code_of(parts: &[CategoryBytes], category: MemoryCategory) -> Bytes {
    parts.iter().filter(|part| part.category == category).map(|part| part.bytes).sum()
}

/// A counter of [`TileTraffic`].
#[derive(Clone, Copy)]
enum TileTrafficCounter {
    BytesIn,
    BytesOut,
    MessagesIn,
    MessagesOut,
}

impl TileTrafficCounter {
    fn value_in(self, traffic: &TileTraffic) -> u64 {
        match self {
            Self::BytesIn => traffic.bytes_in.0,
            Self::BytesOut => traffic.bytes_out.0,
            Self::MessagesIn => traffic.messages_in,
            Self::MessagesOut => traffic.messages_out,
        }
    }
}

fn traffic(
    report: &Report,
    layers: [(TileCurveLayer, TileTrafficCounter); 2],
) -> Result<Vec<TileCurve>, ReportError> {
    let tiles = report.traffic_by_tile()?;
    let mut curves = Vec::new();
    for (layer, counter) in layers {
        let values = tiles.iter().map(|tile| counter.value_in(tile)).collect();
        curves.push(TileCurve { layer, values });
    }
    Ok(curves)
}

/// The code of one link over all tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLinkTotals {
    pub link: ExchangeLink,
    /// Bytes in the memory of the tiles.
    pub stored: Bytes,
    /// Bytes of the fullest tile.
    pub fullest: Bytes,
    /// Bytes of all programs, each counted separately; `None` if programs were not recorded.
    pub program_bytes: Option<Bytes>,
    pub programs: u64,
    /// Messages sent if each program runs once; a multicast counts once.
    pub messages: u64,
    /// Bytes received if each program runs once.
    pub bytes: Bytes,
}

impl ExchangeLinkTotals {
    /// Bytes that programs share with each other: those of all programs minus those stored.
    pub fn shared(&self) -> Option<Bytes> {
        self.program_bytes.map(|bytes| bytes.saturating_sub(self.stored))
    }

    /// Bytes in memory that belong to no program: those stored minus those of all programs.
    pub fn unattributed(&self) -> Option<Bytes> {
        self.program_bytes.map(|bytes| self.stored.saturating_sub(bytes))
    }
}

/// The code of all links.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeCodeOverview {
    pub links: Vec<ExchangeLinkTotals>,
    /// Copies of the program that run side by side.
    pub replicas: u32,
    /// Bytes of all used tile memory, as the base of the share of exchange code.
    pub used: Bytes,
}

/// Sums over tiles and programs.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn overview(report: &Report) -> Result<ExchangeCodeOverview, ReportError> {
    let parts = report.tile_categories()?;
    let programs = report.executed_program_nodes()?;
    let mut links: Vec<ExchangeLinkTotals> = ExchangeLink::ALL
        .into_iter()
        .map(|link| {
            let code = parts.map(|parts| code_of(parts, link.category()));
            ExchangeLinkTotals {
                link,
                stored: code.total(),
                fullest: code.max(),
                program_bytes: None,
                programs: 0,
                messages: 0,
                bytes: Bytes::ZERO,
            }
        })
        .collect();
    for (program, traffic) in report.exchange_totals()? {
        let link = programs.get(program).map_or(ExchangeLink::Internal, |program| {
            ExchangeLink::from_program_kind(program.kind)
        });
        if let Some(totals) = links.iter_mut().find(|totals| totals.link == link) {
            totals.program_bytes =
                Some(totals.program_bytes.unwrap_or(Bytes::ZERO) + traffic.code_bytes);
            totals.programs += 1;
            totals.messages += traffic.messages_out.max(host_messages(link, &traffic));
            totals.bytes += moved(link, &traffic);
        }
    }
    let used = report.tile_memory()?.map(|tile| tile.excluding_gaps()).total();
    Ok(ExchangeCodeOverview { links, replicas: report.target()?.replicas, used })
}

/// Bytes that a program moves: those that tiles receive, and those sent to the host.
fn moved(link: ExchangeLink, traffic: &TileTraffic) -> Bytes {
    match link {
        ExchangeLink::Host => traffic.bytes_in + traffic.bytes_out,
        ExchangeLink::Internal | ExchangeLink::Global => traffic.bytes_in,
    }
}

/// Messages sent by the host, which no tile counts as sent.
fn host_messages(link: ExchangeLink, traffic: &TileTraffic) -> u64 {
    if link == ExchangeLink::Host { traffic.messages_in } else { 0 }
}

/// One program that moves data.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeProgramRow {
    pub program: ProgramId,
    pub name: String,
    pub kind: ProgramKind,
    pub link: ExchangeLink,
    /// The operation that the program belongs to.
    pub operation: Option<OperationId>,
    /// Number of participating tiles.
    pub tiles: u64,
    /// Traffic summed over the requested tiles.
    pub traffic: TileTraffic,
}

/// Programs that move data, summed over `tiles`, or over all tiles if that is empty. Programs in
/// which none of the tiles takes part are left out.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn programs(report: &Report, tiles: &[TileId]) -> Result<Vec<ExchangeProgramRow>, ReportError> {
    let programs = report.executed_program_nodes()?;
    let mut rows = Vec::new();
    for exchange in report.exchanges()? {
        let mut sum = TileTraffic::default();
        let mut count = 0;
        for (range, traffic) in exchange.tiles.iter() {
            let times = if tiles.is_empty() {
                u64::from(range.count())
            } else {
                tiles.iter().filter(|tile| range.contains(**tile)).count() as u64
            };
            count += times;
            sum.bytes_in += traffic.bytes_in * times;
            sum.bytes_out += traffic.bytes_out * times;
            sum.bytes_delivered += traffic.bytes_delivered * times;
            sum.messages_in += traffic.messages_in * times;
            sum.messages_out += traffic.messages_out * times;
            sum.code_bytes += traffic.code_bytes * times;
        }
        if count == 0 {
            continue;
        }
        let program = programs.get(exchange.program);
        let kind = program.map_or(ProgramKind::Unknown, |program| program.kind);
        rows.push(ExchangeProgramRow {
            program: exchange.program,
            name: program.map_or_else(|| "unknown".to_owned(), |program| program.name.clone()),
            kind,
            link: ExchangeLink::from_program_kind(kind),
            operation: program.and_then(|program| program.operation),
            tiles: count,
            traffic: sum,
        });
    }
    Ok(rows)
}

/// A row of the table of tiles: code and traffic of one tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeTileRow {
    pub tile: TileId,
    /// Bytes of code, by link.
    pub code: [Bytes; 3],
    /// Figures summed over programs.
    pub traffic: TileTraffic,
}

/// Every tile of the replica that holds exchange code or takes part in an exchange.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn tiles(report: &Report) -> Result<Vec<ExchangeTileRow>, ReportError> {
    let parts = report.tile_categories()?;
    let traffic = report.traffic_by_tile()?;
    let mut rows = Vec::new();
    for (tile, traffic) in TileId(0).onwards().zip(&traffic) {
        let parts = parts.get(tile).map_or(&[][..], Vec::as_slice);
        let code = ExchangeLink::ALL.map(|link| code_of(parts, link.category()));
        if code != [Bytes::ZERO; 3] || *traffic != TileTraffic::default() {
            rows.push(ExchangeTileRow { tile, code, traffic: *traffic });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::TileRange;

    fn opened(builder: &ReportBuilder) -> Report {
        let directory = tempfile::tempdir().unwrap();
        Report::open(builder.write(directory.path()).unwrap()).unwrap()
    }

    #[test]
    fn sums_over_tiles_programs_and_links_agree() {
        let mut builder = ReportBuilder::new(2, 8);
        builder.exchange("a/ExchangePre", 24);
        builder.exchange("b/ExchangePre", 100);
        let code = 2 * 16;
        builder.variable("code", MemoryCategory::InternalExchangeCode, 0..16, code, None);
        let report = opened(&builder);
        let overview = overview(&report).unwrap();
        let internal = overview.links[0];
        let programs = programs(&report, &[]).unwrap();
        let tiles = tiles(&report).unwrap();
        assert_eq!(internal.programs as usize, programs.len());
        let of = |value: fn(&TileTraffic) -> u64| -> [u64; 2] {
            [
                programs.iter().map(|row| value(&row.traffic)).sum(),
                tiles.iter().map(|row| value(&row.traffic)).sum(),
            ]
        };
        assert_eq!(of(|traffic| traffic.bytes_in.0), [internal.bytes.0; 2]);
        assert_eq!(of(|traffic| traffic.messages_out), [internal.messages; 2]);
        assert_eq!(of(|traffic| traffic.code_bytes.0), [internal.program_bytes.unwrap().0; 2]);
        assert_eq!(internal.stored, tiles.iter().map(|row| row.code[0]).sum());
        assert_eq!(
            (internal.shared(), internal.unattributed()),
            (Some(Bytes::ZERO), Some(Bytes::ZERO))
        );
        let curves =
            curves(&report, ExchangeMeasure::Code, TileAxisOrder::Software, false).unwrap();
        assert_eq!((0..16).map(|tile| curves.total(tile)).sum::<u64>(), internal.stored.0);
    }

    #[test]
    fn programs_of_all_tiles_are_the_sum_of_those_of_each() {
        let mut builder = ReportBuilder::new(1, 8);
        builder.exchange("a/ExchangePre", 24);
        let report = opened(&builder);
        let every: Vec<TileId> = TileRange::first_tiles(8).iter().collect();
        assert_eq!(programs(&report, &[]).unwrap(), programs(&report, &every).unwrap());
        assert_eq!(programs(&report, &[TileId(3)]).unwrap()[0].traffic.bytes_in, Bytes(24));
    }

    #[test]
    fn every_kind_of_program_has_a_link_and_every_link_a_category() {
        let links: Vec<ExchangeLink> =
            ProgramKind::ALL.into_iter().map(ExchangeLink::from_program_kind).collect();
        assert!(ExchangeLink::ALL.iter().all(|link| links.contains(link)));
        let mut categories = ExchangeLink::ALL.map(ExchangeLink::category).to_vec();
        categories.dedup();
        assert_eq!(categories.len(), 3);
    }
}
