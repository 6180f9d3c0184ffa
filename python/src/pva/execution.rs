//! The execution, step by step.

use super::not_recorded;
use super::program_vertices::ComputeSet;
use super::programs::{Program, exchange_cycles};
use super::report_data::{ReportData, StepBlock};
use super::sequences::{List, TileValues, object};
use crate::errors::report_error;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::sync::Arc;
use tilescope_report::units::{Cycles, IpuId, TileId, TileRange, TileRuns};
use tilescope_report::{ProgramKind, ReportPart, StepDetails};

/// The executed program.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct ExecutionReport {
    pub(super) data: Arc<ReportData>,
}

#[pymethods]
impl ExecutionReport {
    #[getter(totalCycles)]
    fn total_cycles(&self) -> PyResult<TotalCycles> {
        let trace = self.data.report.trace().map_err(report_error)?;
        let trace = trace.ok_or_else(|| not_recorded("execution"))?;
        Ok(TotalCycles { total: trace.range().end.0 })
    }

    #[getter]
    fn runs(&self) -> PyResult<List> {
        let data = self.data.clone();
        Ok(List::new(data.runs()?.len(), move |py, number| {
            object(py, Run { data: data.clone(), number })
        }))
    }

    #[getter]
    fn steps(&self) -> PyResult<List> {
        Ok(step_list(&self.data, 0, self.data.step_count()?))
    }
}

fn step_list(data: &Arc<ReportData>, first: u64, end: u64) -> List {
    let data = data.clone();
    List::new(end.saturating_sub(first) as usize, move |py, at| {
        let (block, place) = data.step_block(py, first + at as u64)?;
        object(py, Step { data: data.clone(), block, place })
    })
}

/// Cycles from the start of the trace to the end of its last step.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct TotalCycles {
    total: u64,
}

/// A host call.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct Run {
    data: Arc<ReportData>,
    number: usize,
}

impl Run {
    fn mark(&self) -> PyResult<tilescope_report::TraceMark> {
        let runs = self.data.runs()?;
        runs.get(self.number).cloned().ok_or_else(|| not_recorded("run"))
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.mark()?.label)
    }

    /// Its part of the steps of the execution.
    #[getter]
    fn steps(&self) -> PyResult<List> {
        let mark = self.mark()?;
        let end = mark.steps.end.0.min(self.data.step_count()?);
        Ok(step_list(&self.data, mark.steps.start.0, end))
    }

    /// Its start and end, in whole microseconds of the tile clock.
    #[getter]
    fn microseconds(&self) -> PyResult<Microseconds> {
        let cycles = self.mark()?.cycles;
        let clock = u128::from(self.data.target.clock.0.max(1));
        let convert = |cycles: Cycles| {
            u64::try_from(u128::from(cycles.0) * 1_000_000 / clock).unwrap_or(u64::MAX)
        };
        Ok(Microseconds { start: convert(cycles.start), end: convert(cycles.end) })
    }
}

/// Microseconds since the start of the trace.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct Microseconds {
    start: u64,
    end: u64,
}

/// One execution of a program.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct Step {
    data: Arc<ReportData>,
    block: StepBlock,
    place: usize,
}

impl Step {
    fn details(&self) -> PyResult<&StepDetails> {
        self.block.get(self.place).ok_or_else(|| PyIndexError::new_err("step index out of range"))
    }

    fn program_id(&self) -> PyResult<tilescope_report::units::ProgramId> {
        self.details()?.program.ok_or_else(|| not_recorded("program of a step"))
    }

    /// Number of tiles of an IPU on which a part of the step was active, if known.
    fn active_tiles(&self, on_ipu: &tilescope_report::StepOnIpu) -> PyResult<Option<Vec<TileId>>> {
        let target = &self.data.target;
        let all = target.tiles_of_ipu(on_ipu.ipu);
        let compute = target.compute_tiles_per_ipu();
        let of_compute = TileRange::new(all.first, all.first + compute);
        let of_io = TileRange::new(all.first + compute, all.end);
        let by_lane = if on_ipu.sub_lane == 0 { of_compute } else { of_io };
        for range in [all, by_lane] {
            if range.count() == on_ipu.active_tiles {
                return Ok(Some(range.iter().collect()));
            }
        }
        // Who moves data is active, and who has code of the program.
        let body = self.data.programs()?.body(self.program_id()?);
        let exchanges = self.data.exchanges()?;
        let moving = exchanges.get(&body).map(|exchange| tiles_in(&exchange.tiles, all));
        let code = self.data.control_code()?;
        let code = code.as_ref().as_ref().and_then(|code| code.get(&body)?.first());
        let running = code.map(|tiles| tiles_in(tiles, all));
        for tiles in [moving, running].into_iter().flatten() {
            if tiles.len() == on_ipu.active_tiles as usize {
                return Ok(Some(tiles));
            }
        }
        // What prepares a copy with the host keeps one tile busy, and nobody says which.
        Ok((on_ipu.active_tiles == 1).then(|| vec![all.first]))
    }

    /// Cycles of each tile, for a step that keeps its tiles busy for the same time.
    fn even_cycles(&self) -> PyResult<Option<Vec<u64>>> {
        let mut cycles = vec![0; self.data.tiles()];
        for on_ipu in &self.details()?.ipus {
            let is_even = on_ipu.from_min == on_ipu.from_max && on_ipu.to_min == on_ipu.to_max;
            let tiles = if is_even { self.active_tiles(on_ipu)? } else { None };
            let Some(tiles) = tiles else { return Ok(None) };
            let length = on_ipu.range().length().0;
            for tile in tiles {
                cycles.get_mut(tile.index()).into_iter().for_each(|sum| *sum = length);
            }
        }
        Ok(Some(cycles))
    }
}

/// Tiles of a range that runs name.
fn tiles_in<T>(runs: &TileRuns<T>, all: TileRange) -> Vec<TileId> {
    runs.iter().flat_map(|(tiles, _)| tiles.intersection(all).iter()).collect()
}

#[pymethods]
impl Step {
    #[getter]
    fn program(&self) -> PyResult<Program> {
        Program::of_step(&self.data, self.program_id()?)
    }

    /// The compute set of an `OnTileExecute`; empty for other steps.
    #[getter(computeSets)]
    fn compute_sets(&self) -> PyResult<List> {
        let data = self.data.clone();
        let ids = self.details()?.compute_set.into_iter().collect();
        Ok(List::of_ids(ids, move |py, set| object(py, ComputeSet { data: data.clone(), set })))
    }

    /// Cycles of each tile of the replica; 0 on idle tiles.
    #[getter(cyclesByTile)]
    fn cycles_by_tile(&self) -> PyResult<TileValues> {
        let details = self.details()?;
        let cycles = match (details.kind, details.compute_set) {
            (_, Some(set)) => Some(ComputeSet { data: self.data.clone(), set }.cycles()?),
            (ProgramKind::DoExchange, _) => exchange_cycles(&self.data, self.program_id()?)?,
            _ => self.even_cycles()?,
        };
        cycles.map(TileValues::new).ok_or_else(|| not_recorded("cycles of a step by tile"))
    }

    /// Its parts on each IPU of the replica. On an IPU that does not take part, it has no cycles,
    /// at its start.
    #[getter]
    fn ipus(&self) -> List {
        let data = self.data.clone();
        let block = self.block.clone();
        let place = self.place;
        List::new(self.data.target.ipus_per_replica as usize, move |py, at| {
            let step = block.get(place);
            let step = step.ok_or_else(|| PyIndexError::new_err("step index out of range"))?;
            object(py, StepOnIpu::new(&data, step, IpuId(at as u32)))
        })
    }
}

/// The part of a step on one IPU.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct StepOnIpu {
    active: CycleBounds,
    active_tiles: u32,
    active_tile_balance: f64,
    tiles: u32,
    bytes_in: u64,
    bytes_out: u64,
    has_bytes: bool,
    has_balance: bool,
}

/// Start and end of the tiles of an IPU, of the first and the last.
#[derive(Clone, Copy)]
struct CycleBounds {
    from: CycleInterval,
    to: CycleInterval,
}

impl StepOnIpu {
    /// All parts of a step on one IPU: its I/O tiles are a part beside the compute tiles.
    fn new(data: &ReportData, step: &StepDetails, ipu: IpuId) -> Self {
        let iter_parts = || step.ipus.iter().filter(|part| part.ipu == ipu);
        let start = step.ipus.iter().map(|part| part.from_min).min().unwrap_or_default().0;
        let find_bounds = |cycles: fn(&tilescope_report::StepOnIpu) -> Cycles| CycleInterval {
            min: iter_parts().map(cycles).min().map_or(start, |cycles| cycles.0),
            max: iter_parts().map(cycles).max().map_or(start, |cycles| cycles.0),
        };
        let first = find_bounds(|part| part.from_min);
        let last = find_bounds(|part| part.from_max);
        let from = CycleInterval { min: first.min, max: last.max };
        let first = find_bounds(|part| part.to_min);
        let last = find_bounds(|part| part.to_max);
        let to = CycleInterval { min: first.min, max: last.max };
        let add_up = |count: fn(&tilescope_report::StepOnIpu) -> u64| {
            iter_parts().map(count).fold(0, u64::saturating_add)
        };
        let active_tiles = iter_parts().map(|part| part.active_tiles).fold(0, u32::saturating_add);
        let longest = iter_parts().map(|part| part.range().length()).max().unwrap_or_default();
        let busy = iter_parts().map(|part| {
            f64::from(part.active_tile_balance)
                * f64::from(part.active_tiles)
                * part.range().length().as_f64()
        });
        let available = f64::from(active_tiles) * longest.as_f64();
        let alone = iter_parts().count() == 1;
        let active_tile_balance = match iter_parts().next() {
            Some(part) if alone => f64::from(part.active_tile_balance),
            _ if available > 0.0 => busy.sum::<f64>() / available,
            _ => 0.0,
        };
        Self {
            active: CycleBounds { from, to },
            active_tiles,
            active_tile_balance,
            tiles: data.target.tiles_per_ipu,
            bytes_in: add_up(|part| part.bytes_in.0),
            bytes_out: add_up(|part| part.bytes_out.0),
            has_bytes: data.report.has(ReportPart::StepBytes),
            has_balance: data.report.has(ReportPart::TileBalance),
        }
    }
}

#[pymethods]
impl StepOnIpu {
    #[getter]
    fn cycles(&self) -> u64 {
        self.active.to.max.saturating_sub(self.active.from.max)
    }

    #[getter(activeCycles)]
    fn active_cycles(&self) -> ActiveCycles {
        ActiveCycles { cycles_from: self.active.from, cycles_to: self.active.to }
    }

    /// The same over all tiles; known if all of them are active.
    #[getter(allCycles)]
    fn all_cycles(&self) -> PyResult<ActiveCycles> {
        if self.active_tiles < self.tiles {
            return Err(not_recorded("cycles of tiles that idle"));
        }
        Ok(self.active_cycles())
    }

    /// Mean active cycles of the active tiles / longest.
    #[getter(activeTileBalance)]
    fn active_tile_balance(&self) -> PyResult<f64> {
        self.has_balance.then_some(self.active_tile_balance).ok_or_else(|| not_recorded("balance"))
    }

    /// The same over all tiles.
    #[getter(tileBalance)]
    fn tile_balance(&self) -> PyResult<f64> {
        let share = f64::from(self.active_tiles) / f64::from(self.tiles.max(1));
        Ok(self.active_tile_balance()? * share)
    }

    /// Bytes received by the tiles of the IPU.
    #[getter(dataIn)]
    fn data_in(&self) -> PyResult<u64> {
        self.has_bytes.then_some(self.bytes_in).ok_or_else(|| not_recorded("bytes of steps"))
    }

    /// Bytes sent by the tiles of the IPU.
    #[getter(dataOut)]
    fn data_out(&self) -> PyResult<u64> {
        self.has_bytes.then_some(self.bytes_out).ok_or_else(|| not_recorded("bytes of steps"))
    }
}

/// Start and end of tiles, in cycles since the start of the trace.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct ActiveCycles {
    #[pyo3(name = "cyclesFrom")]
    cycles_from: CycleInterval,
    #[pyo3(name = "cyclesTo")]
    cycles_to: CycleInterval,
}

/// The first and the last of some cycles.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
#[derive(Clone, Copy)]
pub(crate) struct CycleInterval {
    min: u64,
    max: u64,
}
