//! The machine, from the report or inferred from the report's tiles and lanes.

use super::{ProgramOutcome, Report, ReportPart};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_CYCLES, MAX_IPUS, MAX_MACHINE_AMOUNT, MAX_REPLICAS, MAX_TILES};
use crate::model::{
    ActionCost, ArithmeticType, Bandwidth, BatchingConfig, ComputeEngine, ComputeRate, CostBasis,
    ErrorBand, FactorBand, GS1, GS2, GraphCounts, MachineAction, MachineChange, MachineInterface,
    MachineLimits, MachineUnit, ProgramErrorBand, ProgramErrorSource, RunningCost,
    RunningCostBasis, RunningCostKind, SyncGroupMembers, Target, TargetKind,
};
use crate::row_cells::RowCells;
use crate::units::{Bytes, Hertz, IpuId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads two cells as the ends of a band. Invalid factors would lead to meaningless figures.
fn factor_band(cells: &RowCells<'_>, low: usize) -> Option<FactorBand> {
    let high = cells.real(low + 1)?;
    let low = cells.real(low)?;
    if low > 0.0 && low <= high && high.is_finite() { Some(FactorBand { low, high }) } else { None }
}

/// Data of a generation of chips, for files that do not record theirs.
struct ChipGeneration {
    architecture: &'static str,
    tiles: u32,
    tiles_per_column: u32,
    bytes_per_tile: Bytes,
    /// Floating point operations of a tile's matrix engine per cycle: half operands with half sums,
    /// half operands with float sums, and float operands.
    amp_flops: [u64; 3],
}

/// Tiles and memory of an IPU, from the data sheets of GC2 and GC200; Bow has those of GC200. Both
/// have columns of 64 tiles: 19 on GC2 (memory plots in hardware order dip every 64 tiles), 23 on
/// GC200 (topology notes of osmarks/ipu-stack). Matrix engines: 124.5 and 31.1 TFLOPS of GC2, 250 and
/// 62.5 TFLOPS of GC200 over tiles and clock; with float sums, units of poplibs
/// lib/poplin/ConvVertexType.cpp.
const GENERATIONS: [ChipGeneration; 2] = [
    ChipGeneration {
        architecture: "Mk2",
        tiles: 1472,
        tiles_per_column: 64,
        bytes_per_tile: Bytes(624 * 1024),
        amp_flops: [128, 64, 32],
    },
    ChipGeneration {
        architecture: "Mk1",
        tiles: 1216,
        tiles_per_column: 64,
        bytes_per_tile: Bytes(256 * 1024),
        amp_flops: [64, 64, 16],
    },
];

/// Floating point operations of a tile's vector units per cycle, of halves and floats: a
/// multiply-accumulate for each element of 64 bits (poplibs lib/poplin/ConvModel.cpp,
/// getMaxMACsPerCyclePerTile).
const VECTOR_FLOPS: [(ArithmeticType, u64); 2] =
    [(ArithmeticType::Half, 8), (ArithmeticType::Float, 4)];

/// The bytes that a tile of any generation sends per cycle, and receives if its neighbour on the
/// same bus receives the same data (poplibs lib/poplin/ExchangeEstimator.hpp).
const TILE_BYTES_PER_CYCLE: [(MachineInterface, f64); 2] =
    [(MachineInterface::TileSend, 4.0), (MachineInterface::Tile, 8.0)];

impl ChipGeneration {
    /// The generation of the architecture in a report. Bow is Mk2 on another wafer.
    fn of(architecture: &str) -> Option<&'static Self> {
        let known = if architecture == "Bow" { "Mk2" } else { architecture };
        GENERATIONS.iter().find(|generation| generation.architecture == known)
    }

    fn compute_rates(&self) -> Vec<ComputeRate> {
        use ArithmeticType::{Float, Half};
        let types = [(Half, Half), (Half, Float), (Float, Float)];
        let amp = types.into_iter().zip(self.amp_flops).map(|((input, partials), flops)| {
            let engine = ComputeEngine::Amp;
            ComputeRate { engine, input, partials, flops_per_cycle: flops }
        });
        let vector = VECTOR_FLOPS.into_iter().map(|(input, flops_per_cycle)| {
            let engine = ComputeEngine::Vector;
            ComputeRate { engine, input, partials: input, flops_per_cycle }
        });
        amp.chain(vector).collect()
    }
}

const COLUMNS: [&str; 14] = [
    "kind",
    "name",
    "architecture",
    "num_ipus",
    "tiles_per_ipu",
    "io_tiles_per_ipu",
    "bytes_per_tile",
    "clock_hz",
    "replicas",
    "ipus_per_replica",
    "memory_element_bytes",
    "interleaved_offset",
    "tiles_per_column",
    "physical_numbers",
];

/// An amount of a machine, if it lies in a range in which sums and products stay meaningful.
fn amount(number: f64) -> Option<f64> {
    if (0.0..=MAX_MACHINE_AMOUNT).contains(&number) { Some(number) } else { None }
}

impl Report {
    /// The machine. For foreign files it is inferred: unknown numbers, such as the clock, are 0.
    pub fn target(&self) -> Result<Arc<Target>, ReportError> {
        self.target.get(|| match self.recorded_target()? {
            Some(target) => Ok(target),
            None => self.inferred_target(),
        })
    }

    fn recorded_target(&self) -> Result<Option<Target>, ReportError> {
        let read = self.db.first(SelectQuery::all("target", &COLUMNS), |cells| {
            let read_bytes = |column| Some(Bytes(cells.count(column, MAX_COUNT)?));
            let kind = cells.text(0)?;
            let tiles_per_ipu = cells.small_up_to(4, MAX_TILES)?;
            let ipus_per_replica = cells.small_up_to(9, MAX_IPUS)?;
            // The product is the size of every table over tiles, so it is checked before any
            // allocation.
            if tiles_per_ipu.checked_mul(ipus_per_replica)? <= MAX_TILES {
                Some(Target {
                    kind: TargetKind::from_name(&kind)?,
                    name: cells.text(1)?,
                    architecture: cells.text(2)?,
                    num_ipus: cells.small(3)?,
                    tiles_per_ipu,
                    io_tiles_per_ipu: cells.small_up_to(5, tiles_per_ipu)?,
                    bytes_per_tile: read_bytes(6)?,
                    clock: Hertz(cells.count(7, MAX_COUNT)?),
                    replicas: cells.small_up_to(8, MAX_REPLICAS)?,
                    ipus_per_replica,
                    memory_element_bytes: read_bytes(10)?,
                    interleaved_offset: read_bytes(11)?,
                    tiles_per_column: cells.small(12)?,
                    physical_numbers: cells.int(13) == Some(1),
                    changes: Vec::new(),
                })
            } else {
                None
            }
        })?;
        if read == Some(None) {
            // Most views need only the number of tiles, so an unusable row is not an error.
            self.warnings.add("the target is incomplete: inferred from tiles and IPUs");
        }
        let Some(target) = read.flatten() else { return Ok(None) };
        Ok(Some(Target { changes: self.machine_changes()?, ..target }))
    }

    fn inferred_target(&self) -> Result<Target, ReportError> {
        let tiles = self.highest_tile()?;
        let seen = self.ipus_seen()?;
        // Both only fit multiples of 27,968 tiles, 19 IPUs of Mk2 or 23 of Mk1; no system has such
        // a size.
        let fits =
            |generation: &&ChipGeneration| tiles > 0 && tiles.is_multiple_of(generation.tiles);
        let generation = GENERATIONS.iter().find(fits);
        let (tiles_per_ipu, ipus) = match generation {
            Some(generation) => (generation.tiles, (tiles / generation.tiles).max(seen)),
            // An unknown chip: its tiles are distributed evenly over the IPUs that have steps.
            None => (tiles.div_ceil(seen.max(1)), seen.max(1)),
        };
        let ipus = ipus.clamp(1, MAX_IPUS.min(MAX_TILES / tiles_per_ipu.max(1)));
        Ok(Target {
            kind: TargetKind::Ipu,
            name: String::new(),
            architecture: generation.map_or("", |known| known.architecture).to_owned(),
            num_ipus: ipus,
            tiles_per_ipu,
            io_tiles_per_ipu: 0,
            bytes_per_tile: generation.map_or(Bytes::ZERO, |known| known.bytes_per_tile),
            clock: Hertz(0),
            replicas: 1,
            ipus_per_replica: ipus,
            memory_element_bytes: Bytes::ZERO,
            interleaved_offset: Bytes::ZERO,
            tiles_per_column: generation.map_or(0, |known| known.tiles_per_column),
            physical_numbers: false,
            changes: Vec::new(),
        })
    }

    /// Number of tiles, by the highest tile in the report.
    fn highest_tile(&self) -> Result<u32, ReportError> {
        for table in ["memory_by_tile", "vars_info"] {
            if self.db.has(table, "tile") {
                // A single wrong number must not hide the valid ones.
                let within = format!("tile BETWEEN 0 AND {}", MAX_TILES - 1);
                let highest =
                    self.db.worked_out(table, &format!("max(tile) FILTER (WHERE {within})"))?;
                if let Some(tile) = highest.and_then(|tile| u32::try_from(tile).ok()) {
                    return Ok(tile + 1);
                }
            }
        }
        // A table without tile numbers has its rows in the order of tiles.
        let rows = self.db.row_count("memory_by_tile")?.unwrap_or(0);
        Ok(u32::try_from(rows).unwrap_or(MAX_TILES).min(MAX_TILES))
    }

    /// Number of IPUs with steps, from the first rows: all IPUs take part early on.
    fn ipus_seen(&self) -> Result<u32, ReportError> {
        let mut ipus = 0;
        let first = SelectQuery::all("steps_by_ipu", &["ipu"]).clauses("LIMIT 20000");
        self.db.list(first, |cells| {
            let ipu = cells.small_up_to(0, MAX_IPUS - 1).unwrap_or(0);
            ipus = ipus.max(ipu + 1);
        })?;
        Ok(ipus)
    }

    /// Sizes of the graph; counted if the file does not record them.
    pub fn graph(&self) -> Result<GraphCounts, ReportError> {
        let columns = ["num_compute_sets", "num_vertices", "num_edges", "num_vars"];
        let read = self.db.first(SelectQuery::all("graph", &columns), |cells| {
            let read_count = |column| cells.count(column, MAX_COUNT).unwrap_or(0);
            GraphCounts {
                compute_sets: read_count(0),
                vertices: read_count(1),
                edges: read_count(2),
                variables: read_count(3),
            }
        })?;
        if let Some(graph) = read {
            return Ok(graph);
        }
        let sets = self.db.row_count("compute_sets")?.unwrap_or(0);
        let variables = self.variable_count()?;
        Ok(GraphCounts { compute_sets: sets, variables, ..GraphCounts::default() })
    }

    /// The number of samples of one host call, if the model runs in batches.
    pub fn batching(&self) -> Result<Option<BatchingConfig>, ReportError> {
        let columns = ["micro_batch", "gradient_accumulation", "replicas", "device_iterations"];
        // Four factors of at most 15 bits each keep the product inside 64 bits.
        let read_count = |cells: &RowCells, column| cells.count(column, MAX_COUNT);
        let read = self.db.first(SelectQuery::all("batching", &columns), |cells| {
            Some(BatchingConfig {
                micro_batch: read_count(cells, 0)?,
                gradient_accumulation: read_count(cells, 1)?,
                replicas: read_count(cells, 2)?,
                device_iterations: read_count(cells, 3)?,
            })
        })?;
        Ok(read.flatten())
    }

    /// Bandwidths of the machine; empty if they were not recorded.
    pub fn bandwidths(&self) -> Result<Vec<Bandwidth>, ReportError> {
        let columns = ["interface", "bytes_per_cycle"];
        let all = SelectQuery::all("bandwidths", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let interface = cells.named(0, MachineInterface::from_name)?;
            Some(Bandwidth { interface, bytes_per_cycle: cells.real(1)? })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// The peak rates of the machine: as recorded or, failing that, as known for the generation of
    /// the chip.
    pub fn machine_limits(&self) -> Result<MachineLimits, ReportError> {
        let target = self.target()?;
        let generation = ChipGeneration::of(&target.architecture);
        let mut rates = self.compute_rates()?;
        // Other tools record no rates, but those of known chips are published.
        if rates.is_empty() {
            rates = generation.map(ChipGeneration::compute_rates).unwrap_or_default();
        }
        let mut bandwidths = self.bandwidths()?;
        for (interface, bytes_per_cycle) in TILE_BYTES_PER_CYCLE {
            let is_known = bandwidths.iter().any(|known| known.interface == interface);
            if !is_known && generation.is_some() {
                bandwidths.push(Bandwidth { interface, bytes_per_cycle });
            }
        }
        Ok(MachineLimits { rates, bandwidths })
    }

    /// Rates of the engines of a tile; empty if they were not recorded.
    pub fn compute_rates(&self) -> Result<Vec<ComputeRate>, ReportError> {
        let columns = ["engine", "input", "partials", "flops_per_cycle"];
        let all = SelectQuery::all("compute_rates", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(ComputeRate {
                engine: cells.named(0, ComputeEngine::from_name)?,
                input: cells.named(1, ArithmeticType::from_name)?,
                partials: cells.named(2, ArithmeticType::from_name)?,
                // Used as a divisor.
                flops_per_cycle: cells.count(3, MAX_COUNT).filter(|flops| *flops > 0)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Costs of actions that always take the same time; empty if they were not recorded.
    pub fn action_costs(&self) -> Result<Vec<ActionCost>, ReportError> {
        let all = SelectQuery::all("action_costs", &["action", "cycles"]).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let action = cells.named(0, MachineAction::from_name)?;
            Some(ActionCost { action, cycles: cells.count(1, MAX_CYCLES)? })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// IPUs of a replica that wait for each other; `None` if they were not recorded, or a replica
    /// is one IPU. A single unreadable row makes the whole answer `None`.
    pub fn sync_groups(&self) -> Result<Option<SyncGroupMembers>, ReportError> {
        let last = self.target()?.ipus_per_replica.saturating_sub(1);
        let columns = ["sync_group", "part", "ipu"];
        let all = SelectQuery::all("sync_groups", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let is_gs1 = cells.named(0, |name| match name {
                GS1 => Some(true),
                GS2 => Some(false),
                _ => None,
            })?;
            Some((is_gs1, cells.small_up_to(1, last)?, IpuId(cells.small_up_to(2, last)?)))
        })?;
        let rows: Option<Vec<(bool, u32, IpuId)>> = read.into_iter().collect();
        let Some(rows) = rows.filter(|rows| !rows.is_empty()) else { return Ok(None) };
        let iter_group = |wanted: bool| rows.iter().filter(move |(is_gs1, ..)| *is_gs1 == wanted);
        let parts: BTreeSet<u32> = iter_group(false).map(|(_, part, _)| *part).collect();
        let collect_members = |part: u32| {
            iter_group(false).filter(move |(_, of, _)| *of == part).map(|(.., ipu)| *ipu).collect()
        };
        Ok(Some(SyncGroupMembers {
            gs1: iter_group(true).map(|(.., ipu)| *ipu).collect(),
            gs2: parts.into_iter().map(collect_members).collect(),
        }))
    }

    /// Differences of the machine from the one of its name.
    fn machine_changes(&self) -> Result<Vec<MachineChange>, ReportError> {
        let columns = ["key", "title", "unit", "inherited", "value"];
        let all = SelectQuery::all("machine_changes", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(MachineChange {
                key: cells.text(0)?,
                title: cells.text(1)?,
                unit: cells.named(2, MachineUnit::from_name)?,
                inherited: amount(cells.real(3)?)?,
                value: amount(cells.real(4)?)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Power and price of the machine, part by part; empty if they are not known. A kind with an
    /// unreadable row is left out: a sum over some parts is not a figure of the machine.
    pub fn running_costs(&self) -> Result<Vec<RunningCost>, ReportError> {
        let columns = ["kind", "part", "count", "each", "currency", "basis", "source"];
        let all = SelectQuery::all("running_costs", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            let kind = cells.named(0, RunningCostKind::from_name);
            let read_cost = || {
                Some(RunningCost {
                    kind: kind?,
                    part: cells.text(1)?,
                    count: cells.count(2, MAX_COUNT)?,
                    each: amount(cells.real(3)?)?,
                    currency: cells.text(4).unwrap_or_default(),
                    basis: cells.named(5, RunningCostBasis::from_name)?,
                    source: cells.text(6)?,
                })
            };
            (kind, read_cost())
        })?;
        let is_broken = |kind| read.iter().any(|(of, cost)| *of == Some(kind) && cost.is_none());
        Ok(read
            .iter()
            .filter_map(|(_, cost)| cost.clone())
            .filter(|cost| !is_broken(cost.kind))
            .collect())
    }

    /// Errors of predictions, by kind of operation; empty if they were not recorded.
    pub fn error_bands(&self) -> Result<Vec<ErrorBand>, ReportError> {
        let columns =
            ["kind", "basis", "rows", "cycles_low", "cycles_high", "bytes_low", "bytes_high"];
        let all = SelectQuery::all("error_bands", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(ErrorBand {
                kind: cells.text(0),
                basis: cells.named(1, CostBasis::from_name)?,
                rows: cells.count(2, MAX_COUNT)?,
                cycles: factor_band(cells, 3)?,
                bytes: factor_band(cells, 5)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Errors of figures of the whole program; empty if they were not recorded.
    pub fn program_errors(&self) -> Result<Vec<ProgramErrorBand>, ReportError> {
        let columns = ["source", "rows", "low", "high"];
        let all = SelectQuery::all("program_errors", &columns).clauses("ORDER BY id");
        let read = self.db.list(all, |cells| {
            Some(ProgramErrorBand {
                source: cells.named(0, ProgramErrorSource::from_name)?,
                rows: cells.count(1, MAX_COUNT)?,
                factors: factor_band(cells, 2)?,
            })
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Outcome of the program: executed, compiled only, or out of memory.
    pub fn outcome(&self) -> Result<ProgramOutcome, ReportError> {
        if self.has(ReportPart::Execution) {
            return Ok(ProgramOutcome::Executed);
        }
        let room = self.target()?.bytes_per_tile;
        let memory = self.tile_memory()?;
        let is_too_full = |memory: &crate::model::TileMemory| {
            !memory.overflowed.is_zero() || (!room.is_zero() && memory.excluding_gaps() > room)
        };
        let tiles = memory.iter().filter(|(_, memory)| is_too_full(memory));
        match tiles.map(|(tiles, _)| u64::from(tiles.count())).sum() {
            0 => Ok(ProgramOutcome::CompiledOnly),
            tiles => Ok(ProgramOutcome::OutOfMemory { tiles }),
        }
    }
}
