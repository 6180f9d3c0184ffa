//! Exchanges of a run: no lower bound exceeds the measurement, sums are those of the steps, tiles
//! arrive at the end of their previous step, and unknown values are absent.

use crate::common;
use crate::report_support::foreign::Foreign;
use std::collections::BTreeMap;
use tilescope_analysis::exchange_code::{
    ExchangeCycles, exchange_cycles, exchange_tiles, explain_exchange,
};
use tilescope_analysis::tables::named;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::trace::{Trace, TraceLane};
use tilescope_report::units::{
    Bytes, CycleRange, Cycles, IpuId, NumberFormat, ProgramId, TileId, TileRange, TileRuns,
};
use tilescope_report::{
    Bandwidth, ExchangeTraffic, MachineInterface, ProgramKind, Report, TileTraffic,
};

fn lanes(trace: &Trace) -> impl Iterator<Item = TraceLane<'_>> {
    (0..trace.lanes().len()).filter_map(|index| trace.lane(index))
}

fn moves_data(kind: ProgramKind) -> bool {
    use ProgramKind::{DoExchange, GlobalExchange, StreamCopyMid};
    matches!(kind, DoExchange | GlobalExchange | StreamCopyMid)
}

/// Checks the exchanges of any report from the simulator.
pub(crate) fn keep_their_laws(report: &Report, name: &str) {
    let found = exchange_cycles(report).expect("reads");
    let trace = report.trace().expect("reads").expect("a run");
    assert_eq!(found.unattributed, Cycles::ZERO, "{name}: every exchange is a program");
    for row in &found.rows {
        let what = format!("{name}: {} ({}) on IPU {}", row.name, row.kind.name(), row.ipu);
        keeps_its_laws(row, &what);
        let lines = explain_exchange(row, &found.machine, NumberFormat::default());
        assert!(lines.iter().all(|line| !line.sentence.is_empty()), "{what}");
        assert!(row.balance(&found.machine).is_none_or(|share| share <= 1.0 + 1e-9), "{what}");
    }
    let order: Vec<_> =
        found.rows.iter().map(|row| row.run.and_then(|run| run.avoidable())).collect();
    assert!(
        order.is_sorted_by(|one, next| one >= next),
        "{name}: those that waste most come first"
    );
    sums_are_those_of_the_steps(report, &trace, &found.rows, name);
    what_is_sent_arrives(report, name);
    tiles_arrive_when_they_are_done(report, &trace, &found.rows, name);
}

fn keeps_its_laws(row: &ExchangeCycles, what: &str) {
    let run = row.run.unwrap_or_else(|| panic!("{what}: a run"));
    let least = run.least.unwrap_or_else(|| panic!("{what}: a bound"));
    assert!(least <= run.transfer, "{what}: at least {least}, and {} are measured", run.transfer);
    assert!(run.transfer <= run.cycles, "{what}");
    assert_eq!(run.avoidable(), Some(run.transfer - least), "{what}");
    let internal = row.kind == ProgramKind::DoExchange;
    assert_eq!(run.mean_start().is_some(), internal, "{what}: starts of exchanges are known");
    if let Ok(of) = run.arrivals {
        assert_eq!(of.executions, run.executions, "{what}");
        assert!(of.mean_spread() <= of.widest, "{what}");
        assert_eq!(of.last.is_some(), !of.spread.is_zero(), "{what}: one of them is last");
    }
    let Some(traffic) = row.traffic else { panic!("{what}: traffic") };
    let of_tiles = [(traffic.sender, traffic.sent), (traffic.receiver, traffic.received)];
    for (busiest, all) in of_tiles {
        let most = busiest.map_or(Bytes::ZERO, |tile| tile.bytes);
        assert!(most <= all && most * u64::from(traffic.tiles) >= all, "{what}");
    }
}

/// Checks that cycles and bytes of all rows are those of the steps.
fn sums_are_those_of_the_steps(
    report: &Report,
    trace: &Trace,
    rows: &[ExchangeCycles],
    name: &str,
) {
    type Sums = BTreeMap<(ProgramId, IpuId), (u64, Cycles, Bytes, Bytes)>;
    let mut steps = Sums::new();
    for lane in lanes(trace) {
        let all = lane.program_totals(0..lane.info().steps).expect("reads");
        for of in all.iter().filter(|of| moves_data(of.kind())) {
            let at = (of.program.expect("a program"), lane.info().ipu);
            let sum = steps.entry(at).or_default();
            sum.0 += of.steps;
            sum.1 += of.cycles;
            (sum.2, sum.3) = (sum.2 + of.bytes_in, sum.3 + of.bytes_out);
        }
    }
    for row in rows {
        let run = row.run.expect("a run");
        let (executions, cycles, received, sent) =
            steps.remove(&(row.program, row.ipu)).unwrap_or_default();
        assert_eq!((run.executions, run.cycles), (executions, cycles), "{name}: {}", row.name);
        if row.kind == ProgramKind::DoExchange {
            let traffic = row.traffic.expect("recorded");
            let all = [traffic.received * executions, traffic.sent * executions];
            assert_eq!(all, [received, sent], "{name}: {} moves what its tiles do", row.name);
        }
    }
    assert!(steps.is_empty(), "{name}: steps without a row: {steps:?}");
    let table = (named("exchange-code", Some("cycles")).expect("a table").read)(report);
    assert_eq!(table.expect("reads").rows.len(), rows.len(), "{name}");
}

/// Checks that between tiles of an IPU, bytes sent are bytes received, once per receiver.
fn what_is_sent_arrives(report: &Report, name: &str) {
    let programs = report.programs().expect("reads");
    let target = report.target().expect("reads");
    let is_internal = |of: &ExchangeTraffic| {
        programs.get(of.program).is_some_and(|of| of.kind == ProgramKind::DoExchange)
    };
    for of in report.exchanges().expect("reads").iter().filter(|of| is_internal(of)) {
        for ipu in (0..target.ipus_per_replica).map(IpuId) {
            let tiles = target.tiles_of_ipu(ipu);
            let sum = |bytes: fn(&TileTraffic) -> Bytes| -> Bytes {
                let own = of.tiles.iter().map(|(run, of)| (run.intersection(tiles), of));
                own.map(|(run, of)| bytes(of) * u64::from(run.count())).sum()
            };
            let (received, delivered) = (sum(|of| of.bytes_in), sum(|of| of.bytes_delivered));
            assert_eq!(received, delivered, "{name}: {:?} on IPU {ipu}", of.program);
            assert!(sum(|of| of.bytes_out) <= received, "{name}: {:?}", of.program);
        }
        let found = exchange_tiles(report, of.program).expect("reads");
        let received: Bytes = found.iter().map(|of| of.traffic.bytes_in).sum();
        assert_eq!(received, of.tiles.map(|of| of.bytes_in).total(), "{name}");
        let least: Vec<f64> = found.iter().map(|of| of.least.expect("known")).collect();
        assert!(least.is_sorted_by(|one, next| one >= next), "{name}: the busiest come first");
        let fits = |(of, least): (_, &f64)| -> bool {
            let of: &tilescope_analysis::exchange_code::ExchangeTile = of;
            // Cost models let some tiles deliver data without sending any.
            of.cycles.map_or(0.0, |cycles| cycles.as_f64()) >= *least
        };
        assert!(
            found.iter().zip(&least).all(fits),
            "{name}: {:?}: no tile is too fast",
            of.program
        );
    }
}

/// Checks that spreads agree with the steps: from the first to the last end of the previous busy
/// step.
fn tiles_arrive_when_they_are_done(
    report: &Report,
    trace: &Trace,
    rows: &[ExchangeCycles],
    name: &str,
) {
    /// More steps would take long to look up one by one.
    const STEPS: u64 = 20_000;
    if trace.bars() > STEPS {
        return;
    }
    let mut spreads: BTreeMap<(ProgramId, IpuId), Cycles> = BTreeMap::new();
    for lane in lanes(trace) {
        let ipu = lane.info().ipu;
        let mut before = None;
        let whole = CycleRange::new(Cycles::ZERO, trace.range().end + Cycles(1));
        for step in lane.steps_in(whole, usize::MAX).expect("reads") {
            if matches!(step.kind, ProgramKind::Sync | ProgramKind::WriteUndef) {
                continue;
            }
            if let (true, Some(before)) = (moves_data(step.kind), before.replace(step.step)) {
                let details = report.step(before).expect("reads").expect("there");
                let on = |of: &&tilescope_report::StepOnIpu| {
                    (of.ipu, of.sub_lane) == (ipu, lane.info().sub_lane)
                };
                let before = details.ipus.iter().find(on).expect("there");
                let at = (step.program.expect("a program"), ipu);
                *spreads.entry(at).or_default() += before.to_max - before.to_min;
            }
            before = Some(step.step);
        }
    }
    for row in rows {
        if let Some(arrivals) = row.run.and_then(|run| run.arrivals.ok()) {
            let listed = spreads.get(&(row.program, row.ipu)).copied().unwrap_or_default();
            assert_eq!(arrivals.spread, listed, "{name}: {} on IPU {}", row.name, row.ipu);
        }
    }
}

/// Two IPUs of four tiles: a compute set and an exchange, twice, on the first of them.
fn small() -> (ReportBuilder, ProgramId) {
    let mut report = ReportBuilder::new(2, 4);
    let bandwidth = |interface, bytes_per_cycle| Bandwidth { interface, bytes_per_cycle };
    report.parts.bandwidths =
        vec![bandwidth(MachineInterface::Tile, 8.0), bandwidth(MachineInterface::TileSend, 4.0)];
    let work = report.compute("a/Convolve", 0);
    let sync = report.program(ProgramKind::Sync, "Internal");
    let exchange = report.exchange("b/ExchangePre", 0);
    let tile = |bytes_in, bytes_out| TileTraffic {
        bytes_in: Bytes(bytes_in),
        bytes_out: Bytes(bytes_out),
        bytes_delivered: Bytes(bytes_out),
        ..TileTraffic::default()
    };
    // Tile 3 sends 240 bytes, at least 60 cycles; tile 0 takes part in nothing.
    let tiles = [(1, tile(100, 0)), (2, tile(140, 0)), (3, tile(0, 240))];
    let traffic = &mut report.parts.exchanges[0];
    traffic.tiles = TileRuns::empty();
    for (at, of) in tiles {
        traffic.tiles.push(TileRange::single(TileId(at)), of);
        traffic.cycles.push(TileRange::single(TileId(at)), Cycles(20 + 10 * u64::from(at)));
    }
    traffic.cycles = traffic.cycles.map(|cycles| *cycles + Cycles(20));
    let mut cycles = TileRuns::empty();
    for (at, length) in [(0, 100), (1, 130), (2, 130), (3, 90)] {
        cycles.push(TileRange::single(TileId(at)), Cycles(length));
    }
    report.parts.compute_sets[0].cycles = cycles;
    for start in [0, 1000] {
        report.run_on(work, IpuId(0), start..start + 150);
        report.run_on(sync, IpuId(0), start + 150..start + 200);
        report.run_on(exchange, IpuId(0), start + 200..start + 290);
    }
    (report, exchange)
}

fn opened(report: &ReportBuilder) -> (Report, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let report = Report::open_with_cache(report.write(directory.path()).unwrap(), None).unwrap();
    (report, directory)
}

#[test]
fn figures_of_a_small_exchange_agree_with_manual_ones() {
    let (report, _directory) = opened(&small().0);
    let found = exchange_cycles(&report).unwrap();
    let [row] = &found.rows[..] else { panic!("{found:?}") };
    let run = row.run.unwrap();
    // Each step takes 90 cycles, its slowest tile 70 of them; the busiest one needs 60.
    assert_eq!((run.executions, run.cycles), (2, Cycles(180)));
    assert_eq!((run.mean_start(), run.mean_transfer()), (Some(Cycles(20)), Cycles(70)));
    assert_eq!((row.mean_least(), run.avoidable()), (Some(Cycles(60)), Some(Cycles(20))));
    // Tile 3 is done after 90 cycles, tiles 1 and 2 after 130.
    let arrivals = run.arrivals.unwrap();
    assert_eq!((arrivals.mean_spread(), arrivals.widest), (Cycles(40), Cycles(40)));
    assert_eq!((arrivals.last, arrivals.last_tiles), (Some(TileId(1)), 2));
    // 25 + 35 + 60 cycles of 4 x 60.
    assert_eq!(row.balance(&found.machine), Some(0.5));
    let words: Vec<String> = explain_exchange(row, &found.machine, NumberFormat::default())
        .into_iter()
        .map(|line| format!("{} {}: {}", line.title, line.value.unwrap(), line.sentence))
        .collect();
    let expected = [
        "Arrival spread 40: Mean cycles between the first and the last tile to finish the previous \
         step; 40 at most, when tile 1 and 1 more come last.",
        "Start 20: Cycles of a step before its tiles move data, without syncs.",
        "Transfer 70: Cycles of its slowest tile, after the last tile has arrived; mean over 2 \
         executions on IPU 0.",
        "Lower bound 60: Of its tiles, tile 3 sends 240 B and tile 2 receives 140 B, at 4 B per \
         cycle.",
        "Avoidable 20: (Transfer - lower bound) x executions, in the whole run.",
        "Tile balance 50.0 %: Mean cycles of the tiles of the IPU / cycles of the busiest tile, \
         which the others wait for.",
    ];
    assert_eq!(words, expected);
}

#[test]
fn without_cycles_of_tiles_arrivals_are_unknown() {
    let (mut builder, exchange) = small();
    builder.parts.compute_sets[0].cycles = TileRuns::empty();
    builder.parts.exchanges[0].cycles = TileRuns::empty();
    builder.run_on(exchange, IpuId(1), 0..100);
    let (report, _directory) = opened(&builder);
    let found = exchange_cycles(&report).unwrap();
    let row = found.rows.iter().find(|row| row.ipu == IpuId(0)).unwrap();
    let run = row.run.unwrap();
    assert_eq!((run.mean_start(), run.mean_transfer()), (None, Cycles(90)));
    assert_eq!(row.mean_least(), Some(Cycles(60)));
    let why = run.arrivals.unwrap_err();
    assert_eq!(
        why.sentence(run.executions),
        "Its executions follow OnTileExecute, whose cycles by tile are not recorded."
    );
    // The first step of an IPU has no predecessor.
    let row = found.rows.iter().find(|row| row.ipu == IpuId(1)).unwrap();
    let why = row.run.unwrap().arrivals.unwrap_err();
    assert_eq!(why.sentence(1), "Its executions have no step before them.");
}

#[test]
fn a_compiled_program_has_bounds_and_no_cycles() {
    let (mut builder, exchange) = small();
    builder.steps.clear();
    let (report, _directory) = opened(&builder);
    let found = exchange_cycles(&report).unwrap();
    let [row] = &found.rows[..] else { panic!("{found:?}") };
    assert_eq!((row.program, row.run, row.mean_least()), (exchange, None, Some(Cycles(60))));
    let lines = explain_exchange(row, &found.machine, NumberFormat::default());
    let known: Vec<&str> =
        lines.iter().filter(|line| line.value.is_some()).map(|line| line.title).collect();
    assert_eq!(known, ["Lower bound", "Tile balance"]);
    assert_eq!(lines[0].sentence, "Its executions were not recorded.");
}

#[test]
fn files_of_other_tools_have_what_their_steps_tell() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("foreign.pop");
    Foreign::default().write(&path);
    let report = Report::open_with_cache(&path, None).unwrap();
    let found = exchange_cycles(&report).unwrap();
    let kinds = [ProgramKind::DoExchange, ProgramKind::GlobalExchange, ProgramKind::StreamCopyMid];
    for kind in kinds {
        let row = found.rows.iter().find(|row| row.kind == kind);
        let row = row.unwrap_or_else(|| panic!("{}", kind.name()));
        let run = row.run.unwrap();
        assert!(run.executions > 0 && run.transfer == run.cycles, "{row:?}");
        assert!(row.traffic.is_none() && run.least.is_none() && run.arrivals.is_err(), "{row:?}");
        let lines = explain_exchange(row, &found.machine, NumberFormat::default());
        assert!(lines.iter().all(|line| line.value.is_some() == (line.title == "Transfer")));
    }
}

#[test]
fn exchanges_of_a_pipeline_keep_their_laws() {
    let (report, _directory) = common::report("mnist_pipeline", &["options.device_iterations=1"]);
    keep_their_laws(&report, "mnist_pipeline");
    let found = exchange_cycles(&report).unwrap();
    let known = |row: &&ExchangeCycles| row.run.is_some_and(|run| run.arrivals.is_ok());
    assert!(found.rows.iter().filter(known).count() * 2 > found.rows.len(), "most arrivals");
}
