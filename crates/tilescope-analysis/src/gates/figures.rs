//! The figures that gates can name: those of `summary --json`, with their quantities.

use tilescope_report::units::{
    binary_bytes, grouped_real, seconds, short_count, short_cycles, with_prefix,
};
use tilescope_report::{MemoryCategory, MemoryRegion};

/// The quantity of a figure, which determines the units of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateQuantity {
    Bytes,
    Cycles,
    Seconds,
    Hertz,
    PerSecond,
    /// A share of one; 1 % is a hundredth.
    Share,
    Count,
}

/// The name of a unit, and its size in the figure's own unit.
type Unit = (&'static str, f64);

impl GateQuantity {
    /// Units of a limit; a limit without one is in the figure's own unit.
    pub fn units(self) -> &'static [Unit] {
        match self {
            Self::Bytes => &[
                ("B", 1.0),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
            ],
            Self::Cycles => &[("cycles", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)],
            Self::Seconds => &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)],
            Self::Hertz => &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
            Self::PerSecond => &[("/s", 1.0), ("k", 1e3), ("M", 1e6)],
            Self::Share => &[("%", 0.01)],
            Self::Count => &[("k", 1e3), ("M", 1e6), ("G", 1e9)],
        }
    }

    /// A value with its unit.
    pub fn text(self, value: f64) -> String {
        let whole = if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
            Some(value as u64)
        } else {
            None
        };
        match (self, whole) {
            (Self::Bytes, Some(bytes)) => binary_bytes(bytes),
            (Self::Cycles, Some(cycles)) => short_cycles(cycles),
            (Self::Cycles, None) => format!("{} cycles", grouped_real(value)),
            (Self::Seconds, _) => seconds(value),
            (Self::Share, _) => format!("{:.2} %", value * 100.0),
            (Self::PerSecond, _) => format!("{}/s", grouped_real(value)),
            (Self::Hertz, _) => with_prefix(value, "Hz"),
            (_, Some(count)) => short_count(count),
            (_, None) => grouped_real(value),
        }
    }

    /// The quantity as text: `bytes (B, KiB, …)`.
    pub fn words(self) -> String {
        let name = match self {
            Self::Bytes => "in bytes",
            Self::Cycles => "in cycles",
            Self::Seconds => "in seconds",
            Self::Hertz => "in hertz",
            Self::PerSecond => "per second",
            Self::Share => "a share of one",
            Self::Count => "a number",
        };
        let units: Vec<&str> = self.units().iter().map(|(unit, _)| *unit).collect();
        format!("{name} ({})", units.join(", "))
    }
}

/// A figure of a summary by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFigure {
    path: String,
    rank: usize,
    quantity: GateQuantity,
    of_run: bool,
}

impl NamedFigure {
    /// Its dotted path in `summary --json`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The pattern of the path, as in [`figure_paths`](super::figure_paths).
    pub fn pattern(&self) -> &'static str {
        FIGURES[self.rank].path
    }

    /// Index in the list of figures; figures of one pattern share it.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The quantity of the figure.
    pub fn quantity(&self) -> GateQuantity {
        self.quantity
    }

    /// True if it grows with the amount of work of a run.
    pub fn is_of_run(&self) -> bool {
        self.of_run
    }

    /// True for categories of memory, which a summary leaves out if they are zero.
    pub(crate) fn is_zero_where_absent(&self) -> bool {
        self.path.starts_with("memory.by_")
    }
}

/// A pattern of one or more similar figures: a part of the path may be a number or a name from a
/// list.
pub(super) struct FigurePattern {
    /// Dotted path; `*` is a number, `{category}` and `{region}` are names of memory.
    pub(super) path: &'static str,
    pub(super) quantity: GateQuantity,
    /// True if it grows with the amount of work of a run, so that changes are per unit of work.
    pub(super) of_run: bool,
}

const fn figure(path: &'static str, quantity: GateQuantity) -> FigurePattern {
    FigurePattern { path, quantity, of_run: false }
}

const fn of_run(path: &'static str, quantity: GateQuantity) -> FigurePattern {
    FigurePattern { path, quantity, of_run: true }
}

/// Every figure of a summary.
pub(super) static FIGURES: &[FigurePattern] = &[
    of_run("execution.total_cycles", GateQuantity::Cycles),
    of_run("execution.seconds", GateQuantity::Seconds),
    figure("execution.samples", GateQuantity::Count),
    figure("execution.samples_per_second", GateQuantity::PerSecond),
    of_run("execution.ipus.*.steps", GateQuantity::Count),
    figure("execution.ipus.*.proportions.compute", GateQuantity::Share),
    figure("execution.ipus.*.proportions.internal_exchange", GateQuantity::Share),
    figure("execution.ipus.*.proportions.global_exchange", GateQuantity::Share),
    figure("execution.ipus.*.proportions.host", GateQuantity::Share),
    figure("execution.ipus.*.proportions.remote_buffer", GateQuantity::Share),
    figure("execution.ipus.*.proportions.sync", GateQuantity::Share),
    figure("execution.ipus.*.proportions.other", GateQuantity::Share),
    figure("execution.ipus.*.proportions.idle", GateQuantity::Share),
    figure("execution.ipus.*.tile_balance", GateQuantity::Share),
    of_run("execution.critical_path.*.cycles", GateQuantity::Cycles),
    of_run("execution.critical_path.*.on_path", GateQuantity::Cycles),
    figure("execution.critical_path.*.path_share", GateQuantity::Share),
    of_run("execution.critical_path.*.exposed", GateQuantity::Cycles),
    of_run("execution.critical_path.*.hidden", GateQuantity::Cycles),
    // A number, or an object if replicas differ.
    figure("execution.slack.*.ipu", GateQuantity::Count),
    figure("execution.slack.*.ipu.ipu", GateQuantity::Count),
    figure("execution.slack.*.ipu.class", GateQuantity::Count),
    figure("execution.slack.*.sub_lane", GateQuantity::Count),
    of_run("execution.slack.*.path_cycles", GateQuantity::Cycles),
    figure("execution.slack.*.path_share", GateQuantity::Share),
    of_run("execution.slack.*.waits", GateQuantity::Cycles),
    figure("execution.slack.*.slack", GateQuantity::Cycles),
    figure("execution.slack.*.least_slack", GateQuantity::Cycles),
    of_run("execution.slack.*.lead", GateQuantity::Cycles),
    figure("limits.utilisation", GateQuantity::Share),
    of_run("limits.flops", GateQuantity::Count),
    of_run("limits.ipu_cycles", GateQuantity::Cycles),
    figure("limits.peaks.*.flops_per_cycle", GateQuantity::Count),
    figure("limits.peaks.*.flops_per_second", GateQuantity::PerSecond),
    of_run("limits.peaks.*.flops", GateQuantity::Count),
    of_run("limits.waterfall.*.cycles", GateQuantity::Cycles),
    figure("limits.waterfall.*.share", GateQuantity::Share),
    figure("memory.max_tile_including_gaps", GateQuantity::Bytes),
    figure("memory.total_excluding_gaps", GateQuantity::Bytes),
    figure("memory.total_including_gaps", GateQuantity::Bytes),
    figure("memory.always_live", GateQuantity::Bytes),
    figure("memory.peak_not_always_live", GateQuantity::Bytes),
    figure("memory.sum_of_tile_peaks", GateQuantity::Bytes),
    figure("memory.out_of_memory_tiles", GateQuantity::Count),
    figure("memory.fullest_tile.value", GateQuantity::Bytes),
    figure("memory.fullest_tile.low", GateQuantity::Bytes),
    figure("memory.fullest_tile.high", GateQuantity::Bytes),
    figure("memory.by_region.{region}", GateQuantity::Bytes),
    figure("memory.by_category.{category}", GateQuantity::Bytes),
    figure("graph.compute_sets", GateQuantity::Count),
    figure("graph.vertices", GateQuantity::Count),
    figure("graph.edges", GateQuantity::Count),
    figure("graph.variables", GateQuantity::Count),
    figure("target.num_ipus", GateQuantity::Count),
    figure("target.tiles_per_ipu", GateQuantity::Count),
    figure("target.replicas", GateQuantity::Count),
    figure("target.ipus_per_replica", GateQuantity::Count),
    figure("target.identical_ipus", GateQuantity::Count),
    figure("target.bytes_per_tile", GateQuantity::Bytes),
    figure("target.clock_hz", GateQuantity::Hertz),
    figure("host.throughput.*.samples_per_second", GateQuantity::PerSecond),
    figure("host.call.*.seconds", GateQuantity::Seconds),
    figure("host.call.*.share", GateQuantity::Share),
    figure("host.tensors.*.bytes", GateQuantity::Bytes),
    figure("host.epochs.*.epochs", GateQuantity::Count),
    figure("host.epochs.*.calls", GateQuantity::Count),
    figure("host.epochs.*.samples", GateQuantity::Count),
    figure("host.epochs.*.left_out", GateQuantity::Count),
    figure("host.epochs.*.seconds", GateQuantity::Seconds),
    figure("host.epochs.*.samples_per_second", GateQuantity::PerSecond),
    figure("host.replicas.*.first_replica", GateQuantity::Count),
    figure("host.replicas.*.replicas", GateQuantity::Count),
    figure("host.replicas.*.instance", GateQuantity::Count),
    of_run("host.replicas.*.loader_cycles", GateQuantity::Cycles),
    of_run("host.replicas.*.host_cycles", GateQuantity::Cycles),
    of_run("host.replicas.*.others_cycles", GateQuantity::Cycles),
    figure("host.replicas.*.behind_least", GateQuantity::Cycles),
    figure("host.replicas.*.behind_most", GateQuantity::Cycles),
    figure("energy.watts", GateQuantity::Count),
    of_run("energy.joules", GateQuantity::Count),
    figure("energy.joules_per_million_samples", GateQuantity::Count),
    figure("energy.parts.*.count", GateQuantity::Count),
    figure("energy.parts.*.each", GateQuantity::Count),
    figure("cost.per_hour", GateQuantity::Count),
    of_run("cost.run", GateQuantity::Count),
    figure("cost.per_million_samples", GateQuantity::Count),
    figure("cost.parts.*.count", GateQuantity::Count),
    figure("cost.parts.*.each", GateQuantity::Count),
    figure("confidence.shares.measured", GateQuantity::Share),
    figure("confidence.shares.published_formulas", GateQuantity::Share),
    figure("confidence.shares.host_and_links", GateQuantity::Share),
    figure("confidence.shares.assumptions", GateQuantity::Share),
    figure("confidence.shares.waiting", GateQuantity::Share),
    of_run("confidence.cycles.value", GateQuantity::Cycles),
    of_run("confidence.cycles.low", GateQuantity::Cycles),
    of_run("confidence.cycles.high", GateQuantity::Cycles),
    of_run("confidence.seconds.value", GateQuantity::Seconds),
    of_run("confidence.seconds.low", GateQuantity::Seconds),
    of_run("confidence.seconds.high", GateQuantity::Seconds),
    figure("confidence.samples_per_second.value", GateQuantity::PerSecond),
    figure("confidence.samples_per_second.low", GateQuantity::PerSecond),
    figure("confidence.samples_per_second.high", GateQuantity::PerSecond),
];

/// Short names of the most common figures.
pub(super) const SHORT_NAMES: [(&str, &str); 4] = [
    ("cycles", "execution.total_cycles"),
    ("throughput", "execution.samples_per_second"),
    ("memory", "memory.total_excluding_gaps"),
    ("max_tile", "memory.max_tile_including_gaps"),
];

/// Earlier beginnings of paths, which gates of existing pipelines may still use.
const RENAMED: [(&str, &str); 2] =
    [("target.ipus_alike", "target.identical_ipus"), ("host.rates.", "host.throughput.")];

/// The names that a part of a path can take; `None` if it is literal.
fn names_of(part: &str) -> Option<Vec<&'static str>> {
    match part {
        "{category}" => Some(MemoryCategory::ALL.map(MemoryCategory::name).to_vec()),
        "{region}" => Some(MemoryRegion::ALL.map(MemoryRegion::name).to_vec()),
        _ => None,
    }
}

impl FigurePattern {
    fn matches(&self, path: &str) -> bool {
        let mut given = path.split('.');
        let all = self.path.split('.').all(|part| {
            let Some(given) = given.next() else { return false };
            match names_of(part) {
                Some(names) => names.contains(&given),
                None if part == "*" => given.parse::<u32>().is_ok(),
                None => part == given,
            }
        });
        all && given.next().is_none()
    }

    /// The paths that match the pattern, with the numbers of the path that was typed.
    fn paths(&self, written: &str) -> Vec<String> {
        let number = written.split('.').find(|part| part.parse::<u32>().is_ok()).unwrap_or("0");
        let mut paths = vec![String::new()];
        for part in self.path.split('.') {
            let names =
                names_of(part).unwrap_or_else(|| vec![if part == "*" { number } else { part }]);
            let longer = paths.iter().flat_map(|path| {
                let separator = if path.is_empty() { "" } else { "." };
                names.iter().map(move |name| format!("{path}{separator}{name}"))
            });
            paths = longer.collect();
        }
        paths
    }
}

/// The figure with a given path, earlier path or short name.
pub fn named_figure(name: &str) -> Option<NamedFigure> {
    let path = current_path(name);
    let rank = FIGURES.iter().position(|figure| figure.matches(&path))?;
    let FigurePattern { quantity, of_run, .. } = FIGURES[rank];
    Some(NamedFigure { path, rank, quantity, of_run })
}

/// The path for a short name or an earlier path; any other name is returned unchanged.
fn current_path(name: &str) -> String {
    if let Some((_, path)) = SHORT_NAMES.iter().find(|(short, _)| *short == name) {
        return (*path).to_owned();
    }
    for (earlier, path) in RENAMED {
        if let Some(rest) = name.strip_prefix(earlier) {
            return format!("{path}{rest}");
        }
    }
    name.to_owned()
}

/// The known name most similar to an unknown one.
pub fn nearest_figure(name: &str) -> String {
    let own_last = name.rsplit('.').next().unwrap_or(name);
    let likeness = |path: &str| {
        let whole = strsim::normalized_damerau_levenshtein(name, path);
        let last = path.rsplit('.').next().unwrap_or(path);
        // Users may remember only the end of a path.
        whole.max(strsim::normalized_damerau_levenshtein(own_last, last) * 0.9)
    };
    let short = SHORT_NAMES.iter().map(|(short, _)| (*short).to_owned());
    let all = short.chain(FIGURES.iter().flat_map(|figure| figure.paths(name)));
    all.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default()
}
