//! All known facts about one executed step on one IPU, as rows of text.
//!
//! The definitions follow the Graph Analyser: a bar extends from the start of the last tile to the
//! end of the last one; the work of earlier tiles before that overlaps with the previous step;
//! balance is a share of the tiles' time between the first and last cycle.

use super::flow_arrows::InterIpuTransfers;
use super::micro_batch::{stage_at, stage_name};
use crate::critical_path::{ON_PATH, SLACK, step_on_path};
use crate::replica_classes::class_words;
use tilescope_report::units::{
    Bytes, CycleRange, Cycles, IpuId, NumberFormat, ProgramId, ReplicaIpu, StepId, grouped, percent,
};
use tilescope_report::{ProgramKind, Report, ReportError, ReportPart, StreamEndpoint};

const CYCLES: &str = "end of the last tile - start of the last tile; \
                      overlapped: start of the last tile - start of the first";
const TILE_BALANCE: &str = "active tile balance x active tiles / tiles of the IPU";
const ACTIVE_BALANCE: &str = "mean cycles of the active tiles / cycles of the longest";
const DATA: &str = "bytes received + bytes sent, over tiles; a multicast is sent once";
const DATA_BALANCE: &str = "mean bytes of all tiles of the IPU / bytes of the busiest tile";

/// A row of details: a title and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDetailRow {
    /// Title: `Tile balance`.
    pub name: &'static str,
    /// Value with its unit: `2.4 %`.
    pub value: String,
    /// Formula of derived figures; otherwise empty.
    pub formula: &'static str,
}

/// Vertices of one type in a compute set, on the tiles of one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexCount {
    pub name: String,
    pub count: u64,
}

/// The details of one step on one IPU.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetailReport {
    pub step: StepId,
    /// The program of the step, if it has one.
    pub program: Option<ProgramId>,
    pub kind: ProgramKind,
    /// The other end of a stream copy.
    pub stream: StreamEndpoint,
    /// `DoExchange (cs1_appendLatest/ExchangePre)`
    pub title: String,
    pub range: CycleRange,
    /// Rows of figures, without unknown ones.
    pub rows: Vec<StepDetailRow>,
    /// Vertices of a compute set, the most frequent first.
    pub vertices: Vec<VertexCount>,
}

/// Looks up a step, with figures in the format `numbers`; `None` if it did not run on that IPU of
/// that class of replicas.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn step_view(
    report: &Report,
    step: StepId,
    at: ReplicaIpu,
    sub_lane: u8,
    numbers: NumberFormat,
) -> Result<Option<StepDetailReport>, ReportError> {
    let ReplicaIpu { class, ipu } = at;
    let Some(details) = report.step_of_class(class, step)? else { return Ok(None) };
    let here = details.ipus.iter().find(|on| (on.ipu, on.sub_lane) == (ipu, sub_lane));
    let Some(here) = here.or_else(|| details.ipus.iter().find(|on| on.ipu == ipu)) else {
        return Ok(None);
    };
    let tiles = u64::from(report.target()?.tiles_per_ipu);
    let programs = report.programs()?;
    let program = details.program.and_then(|id| programs.get(id));
    let name = program.map_or("", |program| program.name.as_str());
    let title = if name.is_empty() {
        details.kind_name.clone()
    } else {
        format!("{} ({name})", details.kind_name)
    };
    let mut rows = StepDetailRows { numbers, rows: Vec::new() };
    let range = here.range();
    let overlap = here.from_max.saturating_sub(here.from_min);
    rows.derived("Cycles", cycles_row(range, overlap), CYCLES);
    path_rows(report, step, (at, here.sub_lane), &mut rows)?;
    if here.active_tiles > 0 {
        rows.push("Active tiles", grouped(u64::from(here.active_tiles)));
    }
    let active_share = u64::from(here.active_tiles) as f64 / tiles.max(1) as f64;
    if report.has(ReportPart::TileBalance) {
        let balance = f64::from(here.active_tile_balance);
        rows.derived("Tile balance", percent(balance * active_share), TILE_BALANCE);
        rows.derived("Active tile balance", percent(balance), ACTIVE_BALANCE);
    } else if here.active_tiles > 0 && tiles > 0 {
        rows.derived("Active tile share", percent(active_share), "active tiles / tiles of the IPU");
    }
    if report.has(ReportPart::StepBytes) && here.bytes_in + here.bytes_out > Bytes::ZERO {
        rows.derived(
            "Data total : (Rx/Tx)",
            data_row(here.bytes_in, here.bytes_out, numbers),
            DATA,
        );
    }
    if let Some(program) = details.program {
        exchange_rows(report, program, ipu, &mut rows)?;
    }
    if let Some(program) = details.program.filter(|_| details.kind == ProgramKind::GlobalExchange) {
        route_rows(report, program, ipu, &mut rows)?;
    }
    if let Some(program) = program
        && matches!(
            details.kind,
            ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyMid | ProgramKind::StreamCopyEnd
        )
    {
        let end = match program.stream {
            StreamEndpoint::Host => "Host",
            StreamEndpoint::RemoteBuffer => "Remote buffer",
        };
        rows.push("Other end", end.to_owned());
    }
    if let Some(operation) = program.and_then(|program| program.operation)
        && let Some(operation) = report.operations()?.get(operation.index())
    {
        rows.push("Operation", format!("{} ({})", operation.name, operation.kind));
    }
    // Tiles other than the compute tiles work for the next micro-batch, or for the previous one.
    if here.sub_lane == 0
        && let Some(mark) = stage_at(report, at, range)?
    {
        rows.push("Stage", stage_name(&mark.label, mark.pass).to_owned());
        if let Some(pass) = mark.pass {
            rows.push("Pass", pass.name().to_owned());
        }
        rows.push("Micro-batch", grouped(mark.index));
    }
    if let Some(words) = class_words(&report.replica_classes()?, class) {
        rows.push("Replicas", words);
    }
    if report.has(ReportPart::TileBalance) && here.active_tiles > 0 {
        for (name, min, max) in [
            ("Active tiles start", here.from_min, here.from_max),
            ("Active tiles end", here.to_min, here.to_max),
        ] {
            rows.push(name, format!("{} - {}", grouped(min.0), grouped(max.0)));
        }
    }
    let vertices = match details.compute_set {
        Some(id) if report.has(ReportPart::Vertices) => vertices(report, id, ipu)?,
        _ => Vec::new(),
    };
    Ok(Some(StepDetailReport {
        program: details.program,
        step,
        kind: details.kind,
        stream: program.map_or(StreamEndpoint::Host, |program| program.stream),
        title,
        range,
        rows: rows.rows,
        vertices,
    }))
}

/// Adds the step's position relative to the critical path, its slack, and the lane that it waits
/// for, if the path is known.
fn path_rows(
    report: &Report,
    step: StepId,
    (at, sub_lane): (ReplicaIpu, u8),
    rows: &mut StepDetailRows,
) -> Result<(), ReportError> {
    let Some(known) = step_on_path(report, step, at, sub_lane)? else { return Ok(()) };
    let words = if known.is_on_path { "on it" } else { "not on it" };
    rows.derived("Critical path", words.to_owned(), ON_PATH);
    if let Some(slack) = known.slack {
        rows.derived("Slack", format!("{slack} cycles"), SLACK);
    }
    Ok(())
}

struct StepDetailRows {
    /// The number format of values.
    numbers: NumberFormat,
    rows: Vec<StepDetailRow>,
}

impl StepDetailRows {
    fn push(&mut self, name: &'static str, value: String) {
        self.derived(name, value, "");
    }

    fn derived(&mut self, name: &'static str, value: String, formula: &'static str) {
        self.rows.push(StepDetailRow { name, value, formula });
    }
}

/// `88 : 173,493 - 173,581 (14 overlapped with previous)`
fn cycles_row(range: CycleRange, overlap: Cycles) -> String {
    let length = range.length();
    let start = range.start;
    let end = range.end;
    let mut text = format!("{length} : {start} - {end}");
    if overlap > Cycles::ZERO {
        text.push_str(&format!(" ({} overlapped with previous)", overlap));
    }
    text
}

/// `120 B : (116 B/4 B)`
fn data_row(received: Bytes, sent: Bytes, numbers: NumberFormat) -> String {
    let [all, received, sent] =
        [received + sent, received, sent].map(|moved| numbers.bytes(moved.0));
    format!("{all} : ({received}/{sent})")
}

fn exchange_rows(
    report: &Report,
    program: ProgramId,
    ipu: IpuId,
    rows: &mut StepDetailRows,
) -> Result<(), ReportError> {
    if !report.has(ReportPart::Exchanges) {
        return Ok(());
    }
    let Some(exchange) = report.exchange(program)? else { return Ok(()) };
    let on_ipu = report.target()?.tiles_of_ipu(ipu);
    let mut total = Bytes::ZERO;
    let mut busiest = Bytes::ZERO;
    let mut code = Bytes::ZERO;
    for (tiles, traffic) in exchange.tiles.iter() {
        let count = u64::from(tiles.intersection(on_ipu).count());
        if count > 0 {
            let moved = traffic.bytes_in + traffic.bytes_out;
            total += moved * count;
            code += traffic.code_bytes * count;
            busiest = busiest.max(moved);
        }
    }
    if !busiest.is_zero() {
        let mean = total.as_f64() / f64::from(on_ipu.count().max(1));
        rows.derived("Data balance", percent(mean / busiest.as_f64()), DATA_BALANCE);
    }
    if !code.is_zero() {
        rows.derived("Exchange code", rows.numbers.bytes(code.0), "sum over the tiles of the IPU");
    }
    Ok(())
}

/// Adds the other IPUs that an exchange sends to or receives from.
fn route_rows(
    report: &Report,
    program: ProgramId,
    ipu: IpuId,
    rows: &mut StepDetailRows,
) -> Result<(), ReportError> {
    let links = InterIpuTransfers::read(report)?;
    let mut sends = Vec::new();
    let mut receives = Vec::new();
    for link in links.transfers_of_program(program) {
        let bytes = link
            .bytes
            .map_or_else(String::new, |bytes| format!(" ({})", rows.numbers.bytes(bytes.0)));
        if link.from == ipu {
            sends.push(format!("IPU {}{bytes}", link.to));
        }
        if link.to == ipu {
            receives.push(format!("IPU {}{bytes}", link.from));
        }
    }
    for (name, ends) in [("Sends to", sends), ("Receives from", receives)] {
        if !ends.is_empty() {
            rows.push(name, ends.join(", "));
        }
    }
    Ok(())
}

fn vertices(
    report: &Report,
    id: tilescope_report::units::ComputeSetId,
    ipu: IpuId,
) -> Result<Vec<VertexCount>, ReportError> {
    let Some(set) = report.compute_set(id)? else { return Ok(Vec::new()) };
    let types = report.vertex_types()?;
    let on_ipu = report.target()?.tiles_of_ipu(ipu);
    let mut counts: Vec<VertexCount> = Vec::new();
    for group in &set.vertices {
        let inside = group.count.iter();
        let inside = inside.map(|(run, count)| u64::from(run.intersection(on_ipu).count()) * count);
        let count = inside.sum();
        let name = types
            .get(group.vertex_type.index())
            .map_or_else(|| "unknown".to_owned(), |kind| kind.name.clone());
        match counts.iter_mut().find(|known| known.name == name) {
            Some(known) => known.count += count,
            None => counts.push(VertexCount { name, count }),
        }
    }
    counts.retain(|vertex| vertex.count > 0);
    counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_read_as_the_graph_analyser_prints_them() {
        let row = cycles_row(CycleRange::new(Cycles(173_493), Cycles(173_581)), Cycles(14));
        assert_eq!(row, "88 : 173,493 - 173,581 (14 overlapped with previous)");
        assert_eq!(cycles_row(CycleRange::new(Cycles(5), Cycles(9)), Cycles::ZERO), "4 : 5 - 9");
    }

    #[test]
    fn data_totals_are_split_by_direction() {
        assert_eq!(data_row(Bytes(116), Bytes(4), NumberFormat::default()), "120 B : (116 B/4 B)");
    }
}
