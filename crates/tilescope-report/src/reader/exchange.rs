//! Traffic of exchanges and copies.

use super::Report;
use super::tile_run_collector::{TileRunCollector, strided_runs_at};
use crate::database::{RowCells, SelectQuery};
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES};
use crate::model::{ExchangeRoute, ExchangeTraffic, TileTraffic};
use crate::strided_tile_runs::StridedTileRuns;
use crate::units::{Bytes, ProgramId, Quantity, TileId, TileRange};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const TABLE: &str = "exchange_tiles";
const COLUMNS: [&str; 11] = [
    "exchange",
    "first_tile",
    "end_tile",
    "every",
    "times",
    "bytes_in",
    "bytes_out",
    "bytes_delivered",
    "messages_in",
    "messages_out",
    "code_bytes",
];

impl Report {
    /// Traffic of one exchange or copy program.
    pub fn exchange(&self, program: ProgramId) -> Result<Option<ExchangeTraffic>, ReportError> {
        if !self.db.has("exchanges", "program") {
            return Ok(None);
        }
        let params = [i64::from(program.0)];
        let select =
            SelectQuery::all("exchanges", &["id"]).clauses("WHERE program = ?1").params(&params);
        let Some(Some(id)) = self.db.first(select, |cells| cells.small(0))? else {
            return Ok(None);
        };
        let within = (id.into(), id.into());
        Ok(self.exchanges_of(BTreeMap::from([(id, program)]), within)?.pop())
    }

    /// Traffic of all exchanges and copies.
    pub fn exchanges(&self) -> Result<Vec<ExchangeTraffic>, ReportError> {
        let programs = self.exchange_programs()?;
        self.exchanges_of(programs, (0, u32::MAX.into()))
    }

    /// Who sends to whom, where that was recorded.
    pub fn routes(&self) -> Result<Vec<ExchangeRoute>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let columns =
            ["program", "first_sender", "end_sender", "first_receiver", "end_receiver", "bytes"];
        let routes = self.db.list(SelectQuery::all("exchange_routes", &columns), |cells| {
            let range = |first, end| {
                let (first, end) = (TileId(cells.small(first)?), TileId(cells.small(end)?));
                (first < end && end <= TileId(tiles)).then(|| TileRange::new(first, end))
            };
            Some(ExchangeRoute {
                program: ProgramId(cells.small(0)?),
                from: range(1, 2)?,
                to: range(3, 4)?,
                bytes: Bytes(cells.count(5, MAX_COUNT)?),
            })
        })?;
        let all = routes.len();
        let routes: Vec<ExchangeRoute> = routes.into_iter().flatten().collect();
        if routes.len() < all {
            self.warnings
                .add("exchange_routes names tiles that do not exist; they are left out".to_owned());
        }
        Ok(routes)
    }

    fn exchange_programs(&self) -> Result<BTreeMap<u32, ProgramId>, ReportError> {
        let programs =
            self.db.list(SelectQuery::all("exchanges", &["id", "program"]), |cells| {
                Some((cells.small(0)?, ProgramId(cells.small(1)?)))
            })?;
        Ok(programs.into_iter().flatten().collect())
    }

    fn exchanges_of(
        &self,
        programs: BTreeMap<u32, ProgramId>,
        ids: (i64, i64),
    ) -> Result<Vec<ExchangeTraffic>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let mut traffics: BTreeMap<u32, TileRunCollector<TileTraffic>> = BTreeMap::new();
        self.read_traffic(ids, |exchange, cells| {
            let runs = traffics.entry(exchange).or_default();
            runs.push(strided_runs_at(cells, 1, tiles), traffic(cells));
        })?;
        let exchange = |(id, program)| {
            let tiles = traffics.remove(&id).unwrap_or_default().finish(&self.db, TABLE);
            ExchangeTraffic { program, tiles }
        };
        Ok(programs.into_iter().map(exchange).collect())
    }

    fn read_traffic(
        &self,
        ids: (i64, i64),
        mut each: impl FnMut(u32, &RowCells),
    ) -> Result<(), ReportError> {
        if !self.db.has(TABLE, "exchange") || !self.db.has(TABLE, "first_tile") {
            return Ok(());
        }
        let select = SelectQuery::all(TABLE, &COLUMNS).keys(ids.0, ids.1);
        self.db.read(select, |cells| {
            cells.small(0).into_iter().for_each(|exchange| each(exchange, cells));
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Traffic of each exchange or copy, summed over tiles; each program counts once.
    pub fn exchange_totals(&self) -> Result<Vec<(ProgramId, TileTraffic)>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let mut totals: BTreeMap<u32, TileTraffic> = BTreeMap::new();
        self.read_traffic((0, u32::MAX.into()), |exchange, cells| {
            if let Some(strided) = strided_runs_at(cells, 1, tiles) {
                let total = totals.entry(exchange).or_default();
                add(total, &traffic(cells), strided.count());
            }
        })?;
        let total = |(id, program)| (program, totals.remove(&id).unwrap_or_default());
        Ok(self.exchange_programs()?.into_iter().map(total).collect())
    }

    /// Traffic of each tile of the replica, summed over programs; each program counts once.
    pub fn traffic_by_tile(&self) -> Result<Vec<TileTraffic>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let mut sums = vec![TileTraffic::default(); tiles as usize];
        self.read_traffic((0, u32::MAX.into()), |_, cells| {
            let traffic = traffic(cells);
            for run in strided_runs_at(cells, 1, tiles).iter().flat_map(StridedTileRuns::ranges) {
                let on_run = sums.get_mut(run.indices());
                on_run.into_iter().flatten().for_each(|sum| add(sum, &traffic, 1));
            }
        })?;
        Ok(sums)
    }
}

fn traffic(cells: &RowCells) -> TileTraffic {
    let bytes = |column| cells.count(column, MAX_TILE_BYTES).unwrap_or_default();
    let count = |column| cells.count(column, MAX_TILE_BYTES.0).unwrap_or(0);
    TileTraffic {
        bytes_in: bytes(5),
        bytes_out: bytes(6),
        bytes_delivered: bytes(7),
        messages_in: count(8),
        messages_out: count(9),
        code_bytes: bytes(10),
    }
}

/// Adds `times` tiles' traffic; sums of hostile files stop at the largest number.
fn add(sum: &mut TileTraffic, traffic: &TileTraffic, times: u64) {
    fn add<Q: Quantity>(sum: &mut Q, value: Q, times: u64) {
        *sum = sum.saturating_add(value.saturating_mul(times));
    }
    add(&mut sum.bytes_in, traffic.bytes_in, times);
    add(&mut sum.bytes_out, traffic.bytes_out, times);
    add(&mut sum.bytes_delivered, traffic.bytes_delivered, times);
    add(&mut sum.messages_in, traffic.messages_in, times);
    add(&mut sum.messages_out, traffic.messages_out, times);
    add(&mut sum.code_bytes, traffic.code_bytes, times);
}
