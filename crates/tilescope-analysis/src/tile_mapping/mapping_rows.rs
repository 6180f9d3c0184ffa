//! The parts of a mapping: regions, vertices, rearrangements, and their balance.

use tilescope_report::units::{
    Bytes, Cycles, OperationId, ProgramId, TileRange, TileRuns, grouped,
};
use tilescope_report::{ExchangeTraffic, ProgramKind, ProgramNode, Report, ReportError, Target};

/// A part of a variable on equal tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedVariableRegion {
    pub tiles: TileRange,
    /// Name of the variable.
    pub variable: String,
    /// Bytes on each tile.
    pub bytes: Bytes,
    /// Address on each tile.
    pub offset: Bytes,
    /// First byte of the variable in this region, counted in the order of its layout over tiles.
    pub start: Bytes,
    /// Bytes of an element, if the shape states the type.
    pub element: Option<Bytes>,
}

impl MappedVariableRegion {
    /// The part of the variable on all these tiles, in elements, or in bytes if the type is not
    /// known.
    pub fn part(&self) -> String {
        let bytes = self.bytes * u64::from(self.tiles.count());
        let (unit, name) = match self.element {
            Some(bytes) if bytes > Bytes::ZERO => (bytes, "elements"),
            _ => (Bytes(1), "bytes"),
        };
        let first = self.start / unit;
        let end = (self.start + bytes) / unit;
        format!("{name} {} - {}", grouped(first), grouped(end.saturating_sub(1).max(first)))
    }
}

/// Vertices of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedVertexRow {
    pub name: String,
    /// Number of instances over all tiles.
    pub count: u64,
    /// Number of tiles with instances.
    pub tiles: u64,
    /// The most instances on one tile.
    pub most: u64,
    /// True for a strided copy, which only moves data.
    pub strided_copy: bool,
}

/// The layout of data before and after a rearrangement: the bytes that each tile sends in the
/// exchange before it, and those that each tile receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRearrangement {
    /// Name of the arranging compute set, or of the exchange if no arrangement follows.
    pub name: String,
    pub exchange: ProgramId,
    /// Bytes that each tile sends.
    pub before: TileRuns<Bytes>,
    /// Bytes that each tile receives.
    pub after: TileRuns<Bytes>,
    /// Cycles of the slowest tile of the arrangement.
    pub cycles: Cycles,
}

/// Balance of a mapping: the largest part compared with the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TileMappingBalance {
    /// Number of tiles with a part.
    pub tiles: u64,
    pub total: u64,
    pub least: u64,
    pub most: u64,
    /// The largest number that divides every part.
    pub granularity: u64,
    /// Number of tiles of the IPUs with any part.
    pub tiles_of_used_ipus: u64,
}

impl TileMappingBalance {
    /// The balance of one value per tile.
    pub fn from_values(values: &[u64], target: &Target) -> Self {
        let mut balance = Self::default();
        let per_ipu = target.tiles_per_ipu.max(1) as usize;
        for ipu in values.chunks(per_ipu) {
            let parts = || ipu.iter().copied().filter(|value| *value > 0);
            if parts().next().is_some() {
                balance.tiles_of_used_ipus += ipu.len() as u64;
            }
            for value in parts() {
                balance.tiles += 1;
                balance.total += value;
                balance.least = if balance.tiles == 1 { value } else { balance.least.min(value) };
                balance.most = balance.most.max(value);
                balance.granularity = gcd(balance.granularity, value);
            }
        }
        balance
    }

    /// Largest part / mean part, over the tiles with a part.
    pub fn imbalance(&self) -> f64 {
        let mean = self.total as f64 / (self.tiles as f64).max(1.0);
        if mean > 0.0 { self.most as f64 / mean } else { 0.0 }
    }

    /// Share of the tiles of its IPUs with a part.
    pub fn used_share(&self) -> f64 {
        self.tiles as f64 / (self.tiles_of_used_ipus as f64).max(1.0)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// True for codelets that copy data in strides: `poplar_rt::DstStridedCopy64BitMultiAccess`,
/// `poplar_rt::DstLongStridedCopy`, …
pub fn is_strided_copy(vertex_type: &str) -> bool {
    vertex_type.contains("StridedCopy")
}

/// Bytes of an element of `float32[10,1,5,5]`; `None` if the shape does not begin with a type.
pub(super) fn element_bytes(shape: &str) -> Option<Bytes> {
    let (before, _) = shape.split_once('[')?;
    let name = before.rsplit(' ').next()?;
    let bits: String = name.chars().skip_while(|c| !c.is_ascii_digit()).collect();
    match (name, bits.parse::<u64>()) {
        ("bool", _) => Some(Bytes(1)),
        (_, Ok(bits)) => Some(Bytes(bits / 8)).filter(|bytes| !bytes.is_zero()),
        ("float" | "int" | "unsigned", _) => Some(Bytes(4)),
        ("half", _) => Some(Bytes(2)),
        _ => None,
    }
}

/// True if the name of a compute set indicates that it only arranges data.
fn arranges(name: &str) -> bool {
    ["PreArrange", "OnTileCopy", "preRegroup", "Transpose"].iter().any(|part| name.contains(part))
}

/// Exchanges of an operation, each with the arranging compute set that follows it.
pub(super) fn rearrangements(
    report: &Report,
    operation: OperationId,
) -> Result<Vec<MappedRearrangement>, ReportError> {
    let programs = report.programs()?;
    let mut found: Vec<MappedRearrangement> = Vec::new();
    let mut last: Option<(ProgramId, &ProgramNode)> = None;
    for (id, program) in programs.iter().filter(|(_, p)| p.operation == Some(operation)) {
        match program.kind {
            ProgramKind::DoExchange => last = Some((id, program)),
            ProgramKind::OnTileExecute if arranges(&program.name) => {
                let Some((exchange, _)) = last.take() else { continue };
                let Some(ExchangeTraffic { tiles, .. }) = report.exchange(exchange)? else {
                    continue;
                };
                let set = program.compute_set.map(|set| report.compute_set(set)).transpose()?;
                found.push(MappedRearrangement {
                    name: program.name.clone(),
                    exchange,
                    before: tiles.map(|tile| tile.bytes_out),
                    after: tiles.map(|tile| tile.bytes_in),
                    cycles: set.flatten().map_or(Cycles::ZERO, |set| set.cycles.max()),
                });
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_sizes() {
        for (shape, bytes) in [
            ("float32[1,2]", Some(4)),
            ("float16[3]", Some(2)),
            ("int32[]", Some(4)),
            ("4 x float32[8]", Some(4)),
            ("half[2]", Some(2)),
            ("", None),
            ("odd", None),
        ] {
            assert_eq!(element_bytes(shape), bytes.map(Bytes), "{shape}");
        }
    }

    #[test]
    fn strided_copies_are_known_by_their_names() {
        for name in ["poplar_rt::DstStridedCopyDA32", "poplar_rt::DstLongStridedCopy"] {
            assert!(is_strided_copy(name));
        }
        assert!(!is_strided_copy("poplar_rt::ShortMemcpy"));
    }
}
