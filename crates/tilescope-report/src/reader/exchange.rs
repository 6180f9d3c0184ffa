//! Traffic of exchanges and copies.

use super::Report;
use super::tile_patterns::{ALL_IDS, TileRunSource};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_TILE_BYTES, MAX_TILE_CYCLES};
use crate::model::{ExchangeTraffic, TileTraffic};
use crate::units::{Bytes, Cycles, ProgramId, Quantity};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const EXCHANGE_TILES: TileRunSource<6> = TileRunSource {
    owners: "exchanges",
    id: "id",
    rows: "exchange_tiles",
    rows_id: "exchange",
    values: [
        ("bytes_in", MAX_TILE_BYTES.0),
        ("bytes_out", MAX_TILE_BYTES.0),
        ("bytes_delivered", MAX_TILE_BYTES.0),
        ("messages_in", MAX_TILE_BYTES.0),
        ("messages_out", MAX_TILE_BYTES.0),
        ("code_bytes", MAX_TILE_BYTES.0),
    ],
};

const EXCHANGE_CYCLES: TileRunSource<1> = TileRunSource {
    owners: "exchange_cycles",
    id: "exchange",
    rows: "exchange_cycles",
    rows_id: "exchange",
    values: [("cycles", MAX_TILE_CYCLES.0)],
};

impl Report {
    /// Traffic of one exchange or copy program; of outlined code, that of its function.
    pub fn exchange(&self, program: ProgramId) -> Result<Option<ExchangeTraffic>, ReportError> {
        if !self.db.has("exchanges", "program") {
            return Ok(None);
        }
        let program = self.programs()?.body(program);
        let params = [i64::from(program.0)];
        let select =
            SelectQuery::all("exchanges", &["id"]).clauses("WHERE program = ?1").params(&params);
        let Some(Some(id)) = self.db.first(select, |cells| cells.small(0))? else {
            return Ok(None);
        };
        Ok(self.exchanges_of(BTreeMap::from([(id, program)]), id..=id)?.pop())
    }

    /// Traffic of all exchanges and copies, of outlined code once.
    pub fn exchanges(&self) -> Result<Vec<ExchangeTraffic>, ReportError> {
        let programs = self.exchange_programs()?;
        self.exchanges_of(programs, ALL_IDS)
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
        ids: RangeInclusive<u32>,
    ) -> Result<Vec<ExchangeTraffic>, ReportError> {
        let mut traffics = self.tile_runs(&EXCHANGE_TILES, ids.clone(), traffic)?;
        let mut cycles = self.tile_runs(&EXCHANGE_CYCLES, ids, |[cycles]| Cycles(cycles))?;
        Ok(programs
            .into_iter()
            .map(|(id, program)| {
                let tiles = traffics.remove(&id).unwrap_or_default();
                ExchangeTraffic { program, tiles, cycles: cycles.remove(&id).unwrap_or_default() }
            })
            .collect())
    }

    /// Traffic of each exchange or copy, summed over tiles; each program counts once.
    pub fn exchange_totals(&self) -> Result<Vec<(ProgramId, TileTraffic)>, ReportError> {
        Ok(self
            .exchanges()?
            .iter()
            .map(|exchange| {
                let mut total = TileTraffic::default();
                for (tiles, traffic) in exchange.tiles.iter() {
                    add(&mut total, traffic, tiles.count().into());
                }
                (exchange.program, total)
            })
            .collect())
    }

    /// Traffic of each tile of the replica, summed over programs; each program counts once.
    pub fn traffic_by_tile(&self) -> Result<Vec<TileTraffic>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let mut sums = vec![TileTraffic::default(); tiles as usize];
        for exchange in self.exchanges()? {
            for (tiles, traffic) in exchange.tiles.iter() {
                let on_run = sums.get_mut(tiles.indices());
                on_run.into_iter().flatten().for_each(|sum| add(sum, traffic, 1));
            }
        }
        Ok(sums)
    }
}

fn traffic(
    [bytes_in, bytes_out, bytes_delivered, messages_in, messages_out, code]: [u64; 6],
) -> TileTraffic {
    TileTraffic {
        bytes_in: Bytes(bytes_in),
        bytes_out: Bytes(bytes_out),
        bytes_delivered: Bytes(bytes_delivered),
        messages_in,
        messages_out,
        code_bytes: Bytes(code),
    }
}

/// Adds the traffic of `times` tiles; sums of hostile files saturate.
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
