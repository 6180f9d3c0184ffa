//! The error of predicted cycles and bytes, by kind of operation.
//!
//! `residuals.csv` holds the results of `tilescope validate` on the measured operations: the
//! factors between which nine of ten true figures lie. [`crate::validate::residuals`] makes the
//! file, and `tests/headless/validate.rs` checks it against the model. A kind without measurements
//! has the band of the worst of all rows. A cost without a published formula has an assumed band.
//! Operations far from the measured shapes of their kind have the band of formulas as well.
//!
//! `published.csv` holds the results of `tilescope reproduce` on published programs. [`program`]
//! derives from it the additional error of figures of whole programs.

mod extent;
mod program;

pub(crate) use extent::{ExtentRange, OperationExtent};
pub use program::{PublishedResiduals, published_line};

use crate::cost_constants::UNMEASURED_ERROR_SHARE;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tilescope_report::{
    CostBasis, ErrorBand, FactorBand, ModelOperation, ProgramErrorBand, ProgramErrorSource,
};

/// Operators, without the suffixes of their gradients, and the measured group of each.
const MEASURED_OPERATORS: &[(&str, &str)] = &[
    ("matmul", "matmul"),
    ("conv1d", "conv"),
    ("conv2d", "conv"),
    ("conv3d", "conv"),
    ("max_pool", "pooling"),
    ("average_pool", "pooling"),
    ("sum_pool", "pooling"),
    ("reduce", "reduction"),
    ("embedding", "embedding"),
    ("multi_update_add", "embedding"),
    ("lstm", "lstm"),
    ("gru", "gru"),
];

/// Operators with their own codelets, whose instructions are counted but were never seen, and
/// operators of a file that are unknown.
const ASSUMED_OPERATORS: [&str; 3] = ["stencil", "mat_vec", "unknown"];

/// The group of a family of measured rows. Matrix products and the layers made of them form one
/// group.
pub(crate) fn group_of_family(family: &'static str) -> &'static str {
    match family {
        "gemm" | "fc" => "matmul",
        family => family,
    }
}

/// The group of all rows.
pub(crate) const ALL_ROWS: &str = "all";
/// The least and the greatest factor of all rows.
pub(crate) const WORST_ROWS: &str = "worst";

/// Groups with fewer rows than this do not determine tails. Their band is never narrower than that
/// of all rows.
const ENOUGH_ROWS: u64 = 20;

/// Columns of `residuals.csv`.
pub(crate) const HEAD: &str = "group,rows,cycles_low,cycles_high,bytes_low,bytes_high,\
                               tile_low,tile_high,elements_low,elements_high,reuse_low,reuse_high";

/// Measured figures divided by simulated ones, of a group of rows.
#[derive(Clone, Debug, PartialEq)]
struct GroupResiduals {
    group: &'static str,
    rows: u64,
    cycles: FactorBand,
    bytes: FactorBand,
    /// Bytes of the fullest tile.
    tile: FactorBand,
    /// The range of sizes that was measured.
    measured: ExtentRange,
}

impl GroupResiduals {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.split(',');
        let group = cells.next()?;
        let rows = cells.next()?.parse().ok()?;
        let mut band = || {
            let mut factor = || cells.next()?.parse().ok();
            Some(FactorBand { low: factor()?, high: factor()? })
        };
        let cycles = band()?;
        let bytes = band()?;
        let tile = band()?;
        Some(Self { group, rows, cycles, bytes, tile, measured: ExtentRange::parse(cells)? })
    }

    fn band(&self, kind: Option<&str>, basis: CostBasis) -> ErrorBand {
        let kind = kind.map(str::to_owned);
        let rows = self.rows;
        ErrorBand { kind, basis, rows, cycles: self.cycles, bytes: self.bytes }
    }
}

static RESIDUALS: LazyLock<Vec<GroupResiduals>> = LazyLock::new(|| {
    let text = include_str!("residuals.csv");
    text.lines().skip(1).filter_map(GroupResiduals::parse).collect()
});

fn residuals(group: &str) -> Option<&'static GroupResiduals> {
    RESIDUALS.iter().find(|residuals| residuals.group == group)
}

fn wider(a: FactorBand, b: FactorBand) -> FactorBand {
    FactorBand { low: a.low.min(b.low), high: a.high.max(b.high) }
}

/// The band of operations of a measured group.
fn measured(kind: &str, group: &str) -> Option<ErrorBand> {
    let own = residuals(group)?;
    let mut band = own.band(Some(kind), CostBasis::Measured);
    if own.rows < ENOUGH_ROWS {
        let all = residuals(ALL_ROWS)?;
        band.cycles = wider(band.cycles, all.cycles);
        band.bytes = wider(band.bytes, all.bytes);
    }
    Some(band)
}

/// The band of costs from published formulas.
fn formula(kind: Option<&str>) -> Option<ErrorBand> {
    let worst = residuals(WORST_ROWS)?;
    Some(ErrorBand { rows: 0, ..worst.band(kind, CostBasis::Formula) })
}

/// The band of costs that rest on assumptions, or on few published rates.
fn unmeasured(kind: Option<&str>, basis: CostBasis) -> ErrorBand {
    let most = 1.0 + UNMEASURED_ERROR_SHARE.ratio();
    let band = FactorBand { low: 1.0 / most, high: most };
    ErrorBand { kind: kind.map(str::to_owned), basis, rows: 0, cycles: band, bytes: band }
}

/// The measured group of an operator, if any.
pub(crate) fn group_of_kind(kind: &str) -> Option<&'static str> {
    let operator = operator_of(kind);
    MEASURED_OPERATORS.iter().find(|(name, _)| *name == operator).map(|(_, group)| *group)
}

/// The name of an operator without the suffixes of its gradients.
fn operator_of(kind: &str) -> &str {
    kind.split("_grad").next().unwrap_or(kind)
}

/// The basis of the cost of an operation if it differs from that of its kind, because the operation
/// is far from everything that was measured of the kind.
pub(crate) fn own_basis(kind: &str, extent: OperationExtent) -> Option<CostBasis> {
    let measured = residuals(group_of_kind(kind)?)?.measured;
    if measured.is_near(extent) {
        return None;
    }
    Some(CostBasis::Formula)
}

/// The band of an operator.
fn of_kind(kind: &str) -> Option<ErrorBand> {
    match group_of_kind(kind) {
        Some(group) => measured(kind, group),
        None if ASSUMED_OPERATORS.contains(&operator_of(kind)) => {
            Some(unmeasured(Some(kind), CostBasis::Assumed))
        }
        None => formula(Some(kind)),
    }
}

/// Returns the bands of the kinds of `operations`, and of programs of no operation: those that move
/// data over links, and all others. If a kind has operations far from what was measured, their band
/// comes first.
pub(crate) fn bands(operations: &[ModelOperation]) -> Vec<ErrorBand> {
    let kinds: BTreeSet<(&str, bool)> = operations
        .iter()
        .map(|operation| (operation.kind.as_str(), operation.cost_basis.is_none()))
        .collect();
    let of_kinds = kinds
        .into_iter()
        .map(|(kind, is_as_kind)| if is_as_kind { of_kind(kind) } else { formula(Some(kind)) });
    let of_none = [formula(None), Some(unmeasured(None, CostBasis::Links))];
    of_kinds.chain(of_none).flatten().collect()
}

/// The additional error of figures of a whole program of `replicas` replicas. The error of
/// `host_calls` depends on how well their framework is known.
pub(crate) fn program_errors(host_calls: ProgramErrorBand, replicas: u32) -> Vec<ProgramErrorBand> {
    residuals(WORST_ROWS).zip(residuals(ALL_ROWS)).map_or(Vec::new(), |(worst, all)| {
        let of_tiles = (all.rows, all.tile);
        let published = PublishedResiduals::kept();
        let mut errors = program::errors(published, worst.cycles, of_tiles, host_calls);
        let is_replicated = replicas > 1;
        errors.retain(|error| is_replicated || error.source != ProgramErrorSource::ReplicaCode);
        errors
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_group_that_is_used() {
        let groups = MEASURED_OPERATORS.iter().map(|(_, group)| *group);
        for group in groups.chain([ALL_ROWS, WORST_ROWS]) {
            let found = residuals(group).expect(group);
            for FactorBand { low, high } in [found.cycles, found.bytes] {
                assert!(0.5 < low && low < high && high < 2.0, "{group}: {low} {high}");
            }
        }
        assert_eq!(RESIDUALS.len() + 1, include_str!("residuals.csv").lines().count());
    }

    #[test]
    fn gradients_have_the_bands_of_their_operators_and_few_rows_have_no_narrower_band_than_all() {
        let band = |kind| of_kind(kind).expect(kind);
        assert_eq!(band("conv2d_grad_weight").cycles, band("conv2d").cycles);
        assert_eq!(band("gelu").basis, CostBasis::Formula);
        assert_eq!(band("bias_grad").basis, CostBasis::Formula);
        assert_eq!(band("stencil").basis, CostBasis::Assumed);
        let few = band("embedding");
        let all = residuals(ALL_ROWS).expect("all");
        assert!(few.rows < ENOUGH_ROWS && few.cycles.low <= all.cycles.low);
        assert!(few.cycles.high >= all.cycles.high);
    }
}
