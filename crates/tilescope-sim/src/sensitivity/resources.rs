//! The resources of a machine, one entry each.

use crate::specification::Spec;
use tilescope_report::MachineUnit;
use tilescope_report::units::seconds;

/// The change of a resource.
pub(super) enum ResourceChange {
    /// Keys of the spec and their values.
    Keys(Vec<(String, String)>),
    /// Shorter steps of the compiled program.
    ComputeSteps,
}

/// A resource that a machine could have more of.
pub(super) struct Resource {
    pub name: &'static str,
    /// The title, such as `exchange x2`.
    pub title: fn(f64) -> String,
    pub change: fn(&Spec, f64) -> ResourceChange,
    /// The change as text.
    pub detail: fn(&Spec, f64) -> String,
}

/// All resources, in the order in which they are listed.
pub(super) const RESOURCES: &[Resource] = &[
    Resource {
        name: "compute",
        title: |factor| times("tile compute", factor),
        change: |_, _| ResourceChange::ComputeSteps,
        detail: |_, factor| format!("compute sets take 1/{factor} of their cycles"),
    },
    Resource {
        name: "exchange",
        title: |factor| times("exchange", factor),
        change: |spec, factor| keys([("exchange_bytes_per_cycle", exchange(spec, factor))]),
        detail: |spec, factor| {
            let to = exchange(spec, factor) as f64;
            from_to(MachineUnit::BytesPerCycle, exchange(spec, 1.0) as f64, to)
        },
    },
    Resource {
        name: "clock",
        title: |factor| times("clock", factor),
        change: |spec, factor| keys([("clock_hz", clock(spec, factor))]),
        detail: |spec, factor| from_to(MachineUnit::Hertz, clock(spec, 1.0), clock(spec, factor)),
    },
    Resource {
        name: "memory",
        title: |factor| times("memory per tile", factor),
        change: |spec, factor| keys([("bytes_per_tile", memory(spec, factor))]),
        detail: |spec, factor| {
            from_to(MachineUnit::Bytes, memory(spec, 1.0) as f64, memory(spec, factor) as f64)
        },
    },
    Resource {
        name: "tiles",
        title: |factor| times("tiles", factor),
        change: |spec, factor| keys([("tiles", tiles(spec, factor))]),
        detail: |spec, factor| {
            from_to(MachineUnit::Count, tiles(spec, 1.0) as f64, tiles(spec, factor) as f64)
        },
    },
    Resource {
        name: "links",
        title: |factor| times("links between IPUs", factor),
        change: |spec, factor| {
            let machine = &spec.target.machine;
            keys([
                ("link_pair_bytes_per_second", machine.link_pair_bytes_per_second * factor),
                ("link_ladder_bytes_per_second", machine.link_ladder_bytes_per_second * factor),
                ("link_gateway_bytes_per_second", machine.link_gateway_bytes_per_second * factor),
            ])
        },
        detail: |spec, factor| {
            let pair = spec.target.machine.link_pair_bytes_per_second;
            format!("a pair {}", from_to(MachineUnit::BytesPerSecond, pair, pair * factor))
        },
    },
    Resource {
        name: "streaming_memory",
        title: |factor| times("streaming memory", factor),
        change: |spec, factor| {
            let rate = spec.target.machine.remote_bytes_per_second * factor;
            keys([("remote_bytes_per_second", rate)])
        },
        detail: |spec, factor| {
            let rate = spec.target.machine.remote_bytes_per_second;
            from_to(MachineUnit::BytesPerSecond, rate, rate * factor)
        },
    },
    Resource {
        name: "host_bandwidth",
        title: |factor| times("host bandwidth", factor),
        change: host_bandwidth,
        detail: |spec, factor| {
            let rate = spec.target.machine.host_bytes_per_second;
            format!("{} per IPU", from_to(MachineUnit::BytesPerSecond, rate, rate * factor))
        },
    },
    Resource {
        name: "host_handshake",
        title: |factor| format!("host handshake /{factor}"),
        change: |spec, factor| {
            let time = spec.target.machine.host_handshake_seconds / factor;
            keys([("host_handshake_seconds", time)])
        },
        detail: |spec, factor| {
            let time = spec.target.machine.host_handshake_seconds;
            from_to(MachineUnit::Seconds, time, time / factor)
        },
    },
    Resource {
        name: "host_work",
        title: |factor| times("host processors", factor),
        change: host_work,
        detail: |spec, factor| match spec.options.host.seconds_per_sample {
            0.0 => format!("time of loader, callbacks and framework: 1/{factor}"),
            time => format!("{} to {} per sample", seconds(time), seconds(time / factor)),
        },
    },
    Resource {
        name: "no_sync",
        title: |_| "no sync".to_owned(),
        change: |_, _| keys([("internal_sync_cycles", 0_u64), ("external_sync_cycles", 0)]),
        detail: |spec, _| {
            let machine = &spec.target.machine;
            let internal = machine.internal_sync_cycles;
            let external = machine.external_sync_cycles;
            format!("from {internal} cycles within an IPU and {external} between IPUs to 0")
        },
    },
];

fn times(name: &str, factor: f64) -> String {
    format!("{name} x{factor}")
}

fn from_to(unit: MachineUnit, from: f64, to: f64) -> String {
    format!("{} to {}", unit.text(from), unit.text(to))
}

/// Changes keys of the table `[target.machine]`.
fn keys<V: SpecNumber, const N: usize>(changes: [(&str, V); N]) -> ResourceChange {
    ResourceChange::Keys(
        changes
            .into_iter()
            .map(|(key, value)| (format!("target.machine.{key}"), value.toml()))
            .collect(),
    )
}

/// A number in the form of a spec.
trait SpecNumber {
    fn toml(self) -> String;
}

impl SpecNumber for u64 {
    fn toml(self) -> String {
        self.to_string()
    }
}

impl SpecNumber for f64 {
    fn toml(self) -> String {
        format!("{self:?}")
    }
}

/// The multiple of `step` nearest to `factor` times a number, at least one step.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^53")]
fn whole_steps(number: u64, factor: f64, step: u64) -> u64 {
    ((number as f64 * factor / step as f64).round() as u64).max(1) * step
}

fn exchange(spec: &Spec, factor: f64) -> u64 {
    whole_steps(spec.target.machine.exchange_bytes_per_cycle, factor, 1)
}

fn memory(spec: &Spec, factor: f64) -> u64 {
    let element = spec.target.chip.memory_element_bytes.0;
    whole_steps(spec.target.machine.bytes_per_tile, factor, element)
}

fn tiles(spec: &Spec, factor: f64) -> u64 {
    let column = spec.target.chip.tiles_per_column.into();
    whole_steps(spec.target.machine.tiles.into(), factor, column)
}

fn clock(spec: &Spec, factor: f64) -> f64 {
    spec.target.machine.clock_hz * factor
}

/// Changes the rate of an IPU's own link, in the key that the spec uses, and that of the links of
/// the host.
fn host_bandwidth(spec: &Spec, factor: f64) -> ResourceChange {
    let host = &spec.options.host;
    let own = match host.bytes_per_second {
        Some(rate) => ("options.host.bytes_per_second", rate),
        None => {
            let rate = spec.target.machine.host_bytes_per_second;
            ("target.machine.host_bytes_per_second", rate)
        }
    };
    let shared = ("options.host.shared_bytes_per_second", host.shared_bytes_per_second);
    ResourceChange::Keys(
        [own, shared].map(|(key, rate)| (key.to_owned(), (rate * factor).toml())).to_vec(),
    )
}

/// Changes all work of the host's processors.
fn host_work(spec: &Spec, factor: f64) -> ResourceChange {
    let host = &spec.options.host;
    let times = [
        ("seconds_per_sample", host.seconds_per_sample / factor),
        ("seconds_per_normalisation", host.seconds_per_normalisation / factor),
        ("seconds_per_call", host.seconds_per_call / factor),
        ("seconds_per_micro_batch", host.seconds_per_micro_batch / factor),
        ("seconds_per_framework_call", host.seconds_per_framework_call / factor),
        ("seconds_per_launch", host.seconds_per_launch / factor),
        ("seconds_per_return", host.seconds_per_return / factor),
        ("copy_bytes_per_second", host.copy_bytes_per_second * factor),
    ];
    ResourceChange::Keys(
        times.map(|(key, value)| (format!("options.host.{key}"), value.toml())).to_vec(),
    )
}
