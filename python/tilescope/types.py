"""Types of results that are dicts, such as that of `summary()`, key by key.

They exist only for annotations: at run time the results are plain dicts. Import it for annotations.

>>> from tilescope.types import Summary
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union


class Band(TypedDict):
    """A simulated figure with its 90 % interval."""

    value: float
    low: float
    high: float


class MachineChange(TypedDict):
    """A machine constant changed by a spec or a calibration."""

    key: str
    unit: str
    inherited: float
    value: float


class SummaryTarget(TypedDict):
    """The machine."""

    type: str
    machine: Optional[str]
    machine_changes: List[MachineChange]
    calibration: List[MachineChange]
    architecture: str
    num_ipus: int
    tiles_per_ipu: int
    replicas: int
    ipus_per_replica: int
    identical_ipus: int
    bytes_per_tile: int
    clock_hz: int


class SummaryGraph(TypedDict):
    """Sizes of the compiled graph."""

    compute_sets: Optional[int]
    vertices: Optional[int]
    edges: Optional[int]
    variables: Optional[int]


class SummaryMemory(TypedDict):
    """Memory over all tiles of a replica, in bytes."""

    total_excluding_gaps: int
    total_including_gaps: int
    max_tile_including_gaps: int
    by_region: Dict[str, int]
    by_category: Dict[str, int]
    always_live: int
    peak_not_always_live: int
    sum_of_tile_peaks: int
    out_of_memory_tiles: int
    fit: str
    fullest_tile: Optional[Band]


class Proportions(TypedDict):
    """Shares of the run by activity; they add up to 1."""

    compute: float
    internal_exchange: float
    global_exchange: float
    host: float
    remote_buffer: float
    sync: float
    other: float
    idle: float


class SummaryIpu(TypedDict):
    """The run on an IPU."""

    steps: int
    proportions: Proportions
    tile_balance: float


ReplicaIpu = TypedDict("ReplicaIpu", {"class": int, "ipu": int})
ReplicaIpu.__doc__ = """An IPU of a replica whose steps are those of a class other than the first."""


class ActivityExposure(TypedDict):
    """An activity on the critical path, and hidden behind others."""

    kind: str
    cycles: int
    on_path: int
    path_share: float
    exposed: int
    hidden: int


class LaneSlack(TypedDict):
    """Slack and lead of a lane."""

    ipu: Union[int, ReplicaIpu]
    sub_lane: int
    path_cycles: int
    path_share: float
    waits: int
    slack: float
    least_slack: int
    lead: int


class SummaryExecution(TypedDict):
    """The run."""

    total_cycles: int
    seconds: float
    samples: Optional[int]
    samples_per_second: Optional[float]
    ipus: List[SummaryIpu]
    critical_path: List[ActivityExposure]
    slack: List[LaneSlack]


class Peak(TypedDict):
    """The peak of a type of numbers."""

    type: str
    flops_per_cycle: float
    flops_per_second: float
    flops: int


class WaterfallStep(TypedDict):
    """A step from the peak down to the achieved FLOPs."""

    step: str
    cycles: int
    share: float


class SummaryLimits(TypedDict):
    """Utilisation of the peak by the run."""

    utilisation: Optional[float]
    unknown: Optional[str]
    flops: Optional[int]
    ipu_cycles: int
    peaks: List[Peak]
    waterfall: List[WaterfallStep]


class HostRate(TypedDict):
    """Throughput with a source of data."""

    source: str
    samples_per_second: float
    bottleneck: str


class HostCallPart(TypedDict):
    """A part of a host call."""

    part: str
    seconds: float
    share: float


class HostTensor(TypedDict):
    """A tensor that is copied from or to the host."""

    name: str
    direction: str
    shape: str
    bytes: int


class HostEpoch(TypedDict):
    """An epoch of the data."""

    epochs: int
    calls: int
    samples: int
    left_out: int
    seconds: float
    samples_per_second: float


class ReplicaWait(TypedDict):
    """Waits of replicas."""

    first_replica: int
    replicas: int
    instance: int
    loader_cycles: int
    host_cycles: int
    others_cycles: int
    behind_least: int
    behind_most: int


class SummaryHost(TypedDict):
    """Host activity of the run."""

    bottleneck: Optional[str]
    throughput: List[HostRate]
    call: List[HostCallPart]
    tensors: List[HostTensor]
    epochs: List[HostEpoch]
    replicas: List[ReplicaWait]


class ImportedModel(TypedDict):
    """The ONNX file that a model was imported from."""

    path: str
    digest: str
    opset: int
    producer: str
    nodes: int
    folded: Dict[str, int]
    fused: Dict[str, int]
    ignored: Dict[str, int]
    unknown: List[Dict[str, Any]]
    unmodelled: Optional[Dict[str, Any]]


class RunningPart(TypedDict):
    """A part of the power or the price of a machine."""

    part: str
    count: int
    each: float
    basis: str
    source: str


class SummaryEnergy(TypedDict):
    """Energy of the run."""

    watts: float
    joules: float
    joules_per_million_samples: Optional[float]
    assumed: bool
    parts: List[RunningPart]
    formula: str


class SummaryCost(TypedDict):
    """Cost of the run."""

    currency: str
    per_hour: float
    run: float
    per_million_samples: Optional[float]
    assumed: bool
    parts: List[RunningPart]
    formula: str


class ConfidenceShares(TypedDict):
    """Shares of the run by the basis of its figures; they add up to 1."""

    measured: float
    published_formulas: float
    host_and_links: float
    assumptions: float
    waiting: float


class SummaryConfidence(TypedDict):
    """Confidence in the figures of a simulated run."""

    shares: ConfidenceShares
    cycles: Optional[Band]
    seconds: Optional[Band]
    samples_per_second: Optional[Band]


class Summary(TypedDict):
    """Result of `report.summary()`; None for data that the report does not record."""

    target: SummaryTarget
    graph: SummaryGraph
    memory: Optional[SummaryMemory]
    execution: Optional[SummaryExecution]
    limits: Optional[SummaryLimits]
    host: Optional[SummaryHost]
    model: Optional[ImportedModel]
    energy: Optional[SummaryEnergy]
    cost: Optional[SummaryCost]
    confidence: Optional[SummaryConfidence]


class _GainOf(TypedDict):
    of: str


class Gain(_GainOf, total=False):
    """Upper bound of the gain of a finding: a share of the time of the run, or of memory, if
    known."""

    share: float


class _FoundAnyway(TypedDict):
    rule: str
    subject: str
    sentence: str
    advice: str
    formula: str
    gain: Gain
    place: Dict[str, Any]


class Finding(_FoundAnyway, total=False):
    """An element of `report.insights()`. `changes` and `cost` are present if keys of the spec can
    help, `measured` after a test."""

    changes: Dict[str, Any]
    cost: str
    measured: Dict[str, Any]


class PathRow(TypedDict):
    """A stretch of the critical path."""

    kind: str
    ipu: Union[int, ReplicaIpu]
    io_tiles: bool
    operation: Optional[str]
    program: Optional[str]
    cycles: int
    share: float


class WhyLink(TypedDict):
    """A link of a chain: a wait and its cause."""

    text: str
    detail: str
    cycles: int
    step: Optional[int]
    ipu: Optional[Union[int, ReplicaIpu]]


class WhyChain(TypedDict):
    """A chain from a part of the critical path down to the options that decide it."""

    links: List[WhyLink]
    options: List[str]


class Why(TypedDict):
    """Result of `report.why()`."""

    cycles: int
    path: List[PathRow]
    slack: List[LaneSlack]
    why: List[WhyChain]


class TopicAnswer(TypedDict):
    """Result of `report.topic(name)`."""

    topic: str
    title: str
    about: str
    facts: List[Dict[str, Any]]
    figures: List[Dict[str, Any]]
    tables: List[Dict[str, Any]]


class ChangeRange(TypedDict):
    """90 % interval of a change, as a share."""

    low: float
    high: float


class Distinction(TypedDict):
    """Whether the difference of two runs exceeds the errors of the model."""

    one_program: bool
    distinguishable: bool
    change: ChangeRange


class RunWork(TypedDict):
    """The amount of work of a run."""

    runs: int
    updates: Optional[int]
    samples: Optional[int]


class Normalization(TypedDict):
    """The unit of work of compared figures."""

    asked: str
    unit: str
    source: RunWork
    target: RunWork
    note: Optional[str]


class ComparisonSummary(TypedDict):
    """Result of `comparison.summary()`."""

    verdict: str
    distinction: Optional[Distinction]
    normalization: Normalization


class SchemaColumn(TypedDict):
    """A column of an SQL table."""

    name: str
    type: str
    unit: Optional[str]
    about: str


class TableSchema(TypedDict):
    """An SQL table; `about` is the meaning of a row."""

    about: str
    columns: List[SchemaColumn]


class ColumnSchema(TypedDict):
    """A column of a `Table`, with the type of its values in Python."""

    name: str
    type: str
    unit: Optional[str]
    about: Optional[str]
