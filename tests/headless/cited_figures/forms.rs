//! The forms of sentences of findings, and the queries that compute their figures again.

/// A form of the sentence of a rule, and the queries of its figures.
pub(super) struct CitedSentence {
    pub rule: &'static str,
    /// The beginning of the sentence; `{name}` is a figure or a name.
    pub form: &'static str,
    /// A query of each figure. `{name}` is a part of the sentence, `{program}`, `{operation}` and
    /// `{variable}` are those of the place of the finding, and names in capitals are [`PARTS`].
    pub figures: &'static [(&'static str, &'static str)],
}

/// Parts of queries.
pub(super) const PARTS: [(&str, &str); 14] = [
    ("OF_IPU", "SELECT sum(cycles) / RUN FROM program_cycles WHERE ipu = {ipu} AND"),
    ("OF_ACTIVITY", "SELECT sum(cycles) / RUN FROM activity_cycles WHERE ipu = {ipu} AND activity"),
    ("EXTERNAL", "type = 'Sync' AND name = 'External' AND sub_lane = 0"),
    ("FULLEST", "SELECT tile FROM memory_by_tile ORDER BY total_including_gaps DESC, tile LIMIT 1"),
    ("NEEDED", "(SELECT max(total_including_gaps) FROM memory_by_tile)"),
    ("USED", "(SELECT sum(total) + 0.0 FROM memory_by_tile)"),
    (
        "CODE",
        "SELECT sum(bytes * (end_tile - first_tile) * times) + 0.0 FROM category_bytes b
         JOIN var_categories c ON c.id = b.category WHERE c.name LIKE",
    ),
    (
        "UPDATES",
        "SELECT sum(last - first) / RUN FROM (
           SELECT min(first_cycle) first, max(end_cycle) last FROM (
             SELECT *, sum(is_new) OVER (ORDER BY first_cycle, end_cycle) part FROM (
               SELECT first_cycle, end_cycle, first_cycle > coalesce(max(end_cycle) OVER (
                 ORDER BY first_cycle, end_cycle
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) is_new
               FROM marks WHERE kind = 'update')) GROUP BY part)",
    ),
    (
        "REARRANGES",
        "(name GLOB '*PreArrange*' OR name GLOB '*OnTileCopy*' OR name GLOB '*Transpose*'
          OR name GLOB '*Regroup*' OR name GLOB '*actsRearranged*'
          OR name GLOB '*weightsRearranged*')",
    ),
    (
        "RAMPS",
        "SELECT ((SELECT sum(end_cycle - first_cycle) FROM marks WHERE kind = 'phase')
           - (SELECT gradient_accumulation * device_iterations FROM batching) * (
             SELECT min(pace) FROM (
               SELECT avg(end_cycle - first_cycle) pace FROM marks s WHERE kind = 'slot' AND EXISTS (
                 SELECT 1 FROM marks WHERE MAIN AND first_cycle < s.end_cycle
                 AND end_cycle > s.first_cycle)
               UNION ALL SELECT sum(last - first) * 1.0 / sum(slots - 1) FROM (
                 SELECT min(s.first_cycle) first, max(s.first_cycle) last, count(*) slots
                 FROM marks p JOIN marks s ON s.kind = 'slot' AND s.first_cycle >= p.first_cycle
                   AND s.first_cycle < p.end_cycle
                 WHERE p.kind = 'phase' AND p.label NOT LIKE 'ramp%' GROUP BY p.id)))) / RUN",
    ),
    (
        "JOINED",
        "WITH RECURSIVE behind(id, tensor) AS (
           SELECT operation, min(input) FROM operation_inputs GROUP BY operation HAVING count(*) = 1
           UNION ALL SELECT b.id, i.input FROM behind b JOIN operations o ON o.id = b.tensor
             JOIN operation_inputs i ON i.operation = o.id
           WHERE o.kind = 'reshape'),
         read AS (SELECT o.id, o.shapes, min(tensor) tensor FROM operations o JOIN behind USING (id)
           WHERE o.kind = 'matmul' AND o.source LIKE '%@%' GROUP BY o.id),
         joined AS (SELECT tensor, shapes, count(*) count FROM read GROUP BY tensor, shapes
           HAVING count(*) > 1)",
    ),
    (
        "TOGETHER",
        "WITH RECURSIVE counts(count) AS (
           SELECT 1 UNION ALL SELECT count + 1 FROM counts WHERE count < {ipus}),
         fullest AS (SELECT ipu, max(total_including_gaps) bytes
           FROM memory_by_tile JOIN tiles USING (tile) GROUP BY ipu),
         parts AS (SELECT count, sum(bytes) bytes FROM counts CROSS JOIN fullest
           WHERE {ipus} % count = 0 GROUP BY count, ipu / ({ipus} / count)),
         together AS (SELECT count, max(bytes) most FROM parts GROUP BY count)",
    ),
    ("MAIN", "kind = 'phase' AND label NOT LIKE 'ramp%'"),
    ("RUN", "(SELECT total + 0.0 FROM execution_cycle_totals)"),
];

/// Cycles of a stage per micro-batch.
const STAGES: &str = "SELECT sum(mean) FROM (SELECT avg(end_cycle - first_cycle) mean FROM marks
    WHERE kind = 'stage' AND label LIKE replace('{stage}', '…', '%') || ' %'
    GROUP BY pass)";

const FULLEST_USE: &[(&str, &str)] =
    &[("tile", "FULLEST"), ("share", "SELECT {bytes} * 1.0 / NEEDED")];

pub(super) const CITED: &[CitedSentence] = &[
    CitedSentence {
        rule: "overlap_io",
        form: "IPU {ipu} copies data from and to the host for {share} of the run",
        figures: &[("share", "OF_ACTIVITY = 'host'")],
    },
    CitedSentence {
        rule: "input_type",
        form: "IPU {ipu} receives samples over the host link for {share} of the run",
        figures: &[(
            "share",
            "OF_IPU activity = 'host' AND type = 'StreamCopyMid' AND name NOT LIKE '%copyToHost%'",
        )],
    },
    CitedSentence {
        rule: "output_mode",
        form: "IPU {ipu} spends {share} of the run returning",
        figures: &[("share", "OF_IPU activity = 'host' AND name LIKE '%copyToHost%'")],
    },
    CitedSentence {
        rule: "sync_pattern",
        form: "IPU {ipu} spends {share} of the run in external syncs",
        figures: &[("share", "OF_IPU EXTERNAL")],
    },
    CitedSentence {
        rule: "schedule",
        form: "IPU {ipu} spends {share} of the run in external syncs",
        figures: &[("share", "OF_IPU EXTERNAL")],
    },
    CitedSentence {
        rule: "waiting",
        form: "IPU {ipu} spends {share} of the run in external syncs (mean of all IPUs: {mean})",
        figures: &[
            ("share", "OF_IPU EXTERNAL"),
            (
                "mean",
                "SELECT sum(cycles) / RUN / (SELECT count(DISTINCT ipu) FROM activity_cycles)
                 FROM program_cycles WHERE EXTERNAL",
            ),
        ],
    },
    CitedSentence {
        rule: "waiting",
        form: "{before} IPU {ipu} spends least ({share}): ",
        figures: &[("share", "SELECT coalesce((OF_IPU EXTERNAL), 0.0)")],
    },
    CitedSentence {
        rule: "recomputed_passes",
        form: "IPU {ipu} spends {share} of the run recomputing",
        figures: &[("share", "OF_IPU name || '/' LIKE '%/recompute/%'")],
    },
    CitedSentence {
        rule: "precision",
        form: "IPU {ipu} spends {share} of the run on float32 data",
        figures: &[(
            "share",
            "OF_IPU (type IN ('OnTileExecute', 'DoExchange', 'GlobalExchange')
               OR type = 'StreamCopyMid' AND activity = 'host')
             AND (operation IS NULL OR operation IN (SELECT id FROM operations
               WHERE element_type = 'float' AND pass IS NOT 'update'))",
        )],
    },
    CitedSentence {
        rule: "partials",
        form: "IPU {ipu} spends {share} of the run on matmuls and convolutions",
        figures: &[(
            "share",
            "OF_IPU type IN ('OnTileExecute', 'DoExchange')
             AND (name LIKE '%/Conv%' OR name LIKE '%/Reduce%')",
        )],
    },
    CitedSentence {
        rule: "memory_proportion",
        form: "IPU {ipu} spends {share} of the run on matmuls and convolutions",
        figures: &[(
            "share",
            "OF_IPU operation IN (SELECT id FROM operations
               WHERE json_extract(plan, '$.memoryBoundBytes') IS NOT NULL
               AND json_extract(plan, '$.estimate.serialSplits') > 1)",
        )],
    },
    CitedSentence {
        rule: "remote_buffers",
        form: "IPU {ipu} reads and writes remote buffers for {share} of the run",
        figures: &[("share", "OF_ACTIVITY = 'remote_buffer'")],
    },
    CitedSentence {
        rule: "collectives",
        form: "IPU {ipu} exchanges gradients or weights with other replicas for {share} of the run",
        figures: &[("share", "OF_IPU name LIKE '%/crossReplicaCopy'")],
    },
    CitedSentence {
        rule: "host_wait",
        form: "IPU {ipu} waits for the host in StreamCopyBegin for {share} of the run",
        figures: &[(
            "share",
            "SELECT sum(max(cycles - steps * (SELECT min(cycles * 1.0 / steps) FROM program_cycles
               WHERE type = 'StreamCopyBegin' AND activity = 'host' AND steps > 0), 0)) / RUN
             FROM program_cycles
             WHERE type = 'StreamCopyBegin' AND activity = 'host' AND ipu = {ipu}",
        )],
    },
    CitedSentence {
        rule: "host_wait",
        form: "{instances} host process{es} the samples of {replicas} replicas",
        figures: &[],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the data loader for {share} of the run",
        figures: &[(
            "share",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
             WHERE name = 'hostCall/loader' GROUP BY ipu)",
        )],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the host call for {all} of the run: {most} ",
        figures: &[
            (
                "all",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE name LIKE 'hostCall/%' AND name <> 'hostCall/loader' GROUP BY ipu)",
            ),
            (
                "most",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE name LIKE 'hostCall/%' AND name <> 'hostCall/loader' GROUP BY ipu, name)",
            ),
        ],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the {what} for {all} of the run.",
        figures: &[(
            "all",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
             WHERE name LIKE 'hostCall/%' GROUP BY ipu, name)",
        )],
    },
    CitedSentence {
        rule: "rearrangement",
        form: "IPU {ipu} spends {share} of the run rearranging data",
        figures: &[("share", "OF_IPU REARRANGES")],
    },
    CitedSentence {
        rule: "rearrangement",
        form: "IPU {ipu} {before}; {operation_name} takes the most ({share} of it)",
        figures: &[
            (
                "share",
                "SELECT sum(cycles) FILTER (WHERE operation = {operation}) * 1.0 / sum(cycles)
                 FROM program_cycles WHERE ipu = {ipu} AND REARRANGES",
            ),
            ("operation_name", "SELECT name FROM operations WHERE id = {operation}"),
        ],
    },
    CitedSentence {
        rule: "strided_copies",
        form: "{name} runs {count} strided copy vertices, which take {share} of the run",
        figures: &[
            ("name", "SELECT name FROM programs WHERE id = {program}"),
            (
                "share",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE program = {program} GROUP BY ipu)",
            ),
        ],
    },
    CitedSentence {
        rule: "low_balance",
        form: "{name} keeps its tiles busy for only {share} of its time",
        figures: &[
            ("name", "SELECT name FROM programs WHERE id = {program}"),
            (
                "share",
                "SELECT mean_cycles * tiles / max_cycles
                   / (SELECT count(*) / (SELECT count(DISTINCT ipu) FROM tiles) FROM tiles)
                 FROM compute_set_totals WHERE compute_set =
                   (SELECT compute_set FROM programs WHERE id = {program})",
            ),
        ],
    },
    CitedSentence {
        rule: "stage_balance",
        form: "Stage {stage} on IPU {ipu} takes {cycles} cycles per micro-batch",
        figures: &[("cycles", STAGES)],
    },
    CitedSentence {
        rule: "accumulation",
        form: "Weight updates take {share} of the run",
        figures: &[("share", "UPDATES")],
    },
    CitedSentence {
        rule: "accumulation",
        form: "{before}illing and draining the pipeline {share}, once",
        figures: &[("share", "RAMPS")],
    },
    CitedSentence {
        rule: "accumulation",
        form: "The pipeline takes {share} of the run to fill and drain",
        figures: &[("share", "RAMPS")],
    },
    CitedSentence {
        rule: "update_schedule",
        form: "The weight updates of {ipus} IPUs run one after another and take {share} of the run",
        figures: &[
            ("ipus", "SELECT count(DISTINCT ipu) FROM marks WHERE kind = 'update'"),
            ("share", "UPDATES"),
        ],
    },
    CitedSentence {
        rule: "sharded_optimizer",
        form: "Each of the {replicas} replicas updates all weights, which takes {share} of the run",
        figures: &[("share", "UPDATES")],
    },
    CitedSentence {
        rule: "exported_form",
        form: "GELU computed with erf takes {share} of the run, in {count} operations",
        figures: &[
            (
                "share",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE operation IN (SELECT id FROM operations WHERE kind LIKE 'gelu_erf%')
                 GROUP BY ipu)",
            ),
            ("count", "SELECT count(*) FROM operations WHERE kind LIKE 'gelu_erf%'"),
        ],
    },
    CitedSentence {
        rule: "exported_form",
        form: "{products} matrix products of {tensors} tensors take {share} of the run",
        figures: &[
            ("products", "JOINED SELECT sum(count) FROM joined"),
            ("tensors", "JOINED SELECT count(*) FROM joined"),
            (
                "share",
                "JOINED SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE operation IN (SELECT r.id FROM read r JOIN joined USING (tensor, shapes))
                 GROUP BY ipu)",
            ),
        ],
    },
    CitedSentence {
        rule: "exchange_code",
        form: "Exchange code takes {share} of the memory in use",
        figures: &[("share", "SELECT (CODE '%ExchangeCode') / USED")],
    },
    CitedSentence {
        rule: "exchange_code",
        form: "{before}: {internal} internal",
        figures: &[("internal", "CODE 'internalExchangeCode'")],
    },
    CitedSentence {
        rule: "replication",
        form: "With {replicas} replicas, global exchange code takes {bytes} per replica ({share} of",
        figures: &[
            ("bytes", "CODE 'globalExchangeCode'"),
            ("share", "SELECT (CODE 'globalExchangeCode') / USED"),
        ],
    },
    CitedSentence {
        rule: "replication",
        form: "{before}, and exchange between IPUs {share} of the run",
        figures: &[(
            "share",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM activity_cycles
             WHERE activity = 'global_exchange' GROUP BY ipu)",
        )],
    },
    CitedSentence {
        rule: "unused_tiles",
        form: "{count} tile{s} ({share} of all tiles) never run a vertex",
        figures: &[("share", "SELECT {count} * 1.0 / count(*) FROM tiles")],
    },
    CitedSentence {
        rule: "full_tiles",
        form: "The fullest tile, {tile}, is {share} full: {bytes} of {room}",
        figures: &[
            ("tile", "FULLEST"),
            ("bytes", "SELECT NEEDED"),
            ("share", "SELECT {bytes} * 1.0 / {room}"),
        ],
    },
    CitedSentence {
        rule: "peak",
        form: "Tile {tile} reaches its peak at step {step} of the program with {bytes} live. {name} \
               takes {share} of that ({own})",
        figures: &[
            (
                "bytes",
                "SELECT always_live + peak_not_always_live FROM memory_by_tile WHERE tile = {tile}",
            ),
            ("bytes", "SELECT max(always_live + peak_not_always_live) FROM memory_by_tile"),
            ("share", "SELECT {own} * 1.0 / {bytes}"),
            ("name", "SELECT name FROM variables WHERE id = {variable}"),
        ],
    },
    CitedSentence {
        rule: "worst_tiles",
        form: "The five fullest tiles ({first}, {others}) hold {held}, {times} times the mean of \
               {mean}",
        figures: &[
            ("first", "FULLEST"),
            ("mean", "SELECT avg(total_including_gaps) FROM memory_by_tile"),
        ],
    },
    CitedSentence {
        rule: "float32",
        form: "float32 variables take {share} of tile {tile} at its peak: {name} ({bytes})",
        figures: &[("name", "SELECT name FROM variables WHERE id = {variable}")],
    },
    CitedSentence {
        rule: "float32",
        form: "Activations, gradients and temporaries use {share} of tile {tile}, the fullest \
               ({bytes})",
        figures: FULLEST_USE,
    },
    CitedSentence {
        rule: "float32",
        form: "Tensors and temporaries use {share} of tile {tile}, the fullest ({bytes})",
        figures: FULLEST_USE,
    },
    CitedSentence {
        rule: "recomputation",
        form: "{count} stash{es} hold{s} {bytes} ({share} of the memory in use); the largest is \
               {name} with {most}",
        figures: &[
            ("count", "SELECT count(*) FROM variables WHERE name LIKE '%/stash'"),
            ("bytes", "SELECT sum(bytes) FROM variables WHERE name LIKE '%/stash'"),
            ("share", "SELECT sum(bytes) / USED FROM variables WHERE name LIKE '%/stash'"),
            ("most", "SELECT max(bytes) FROM variables WHERE name LIKE '%/stash'"),
            ("name", "SELECT name FROM variables WHERE id = {variable}"),
        ],
    },
    CitedSentence {
        rule: "out_of_memory",
        form: "{count} tile{s} more than the {room} of a tile. Tile {tile} needs the most: {more} more",
        figures: &[
            ("count", "SELECT count(*) FROM memory_by_tile WHERE total_including_gaps > {room}"),
            ("tile", "FULLEST"),
            ("more", "SELECT NEEDED - {room}"),
        ],
    },
    CitedSentence {
        rule: "more_replicas",
        form: "A replica of {ipus} IPU{s} fits on {fewer} IPU{s}: the fullest tiles need {bytes} of \
               {room} together",
        figures: &[
            ("ipus", "SELECT count(DISTINCT ipu) FROM tiles"),
            ("bytes", "TOGETHER SELECT most FROM together WHERE count = {fewer}"),
            ("fewer", "TOGETHER SELECT min(count) FROM together WHERE most <= {room}"),
        ],
    },
    CitedSentence { rule: "unmodelled", form: "{words}", figures: &[] },
];

/// Rules whose sentence has the form `… use 8.1 % of tile 7, the fullest (49.2 KiB).`
pub(super) const RULES_OF_FULLEST: [&str; 8] = [
    "dithering",
    "memory_proportion",
    "offloading",
    "outlining",
    "recomputation",
    "schedule",
    "smaller_micro_batch",
    "tensor_sharding",
];

pub(super) const USE_OF_FULLEST: CitedSentence = CitedSentence {
    rule: "",
    form: "{what} use {share} of tile {tile}, the fullest ({bytes}).",
    figures: FULLEST_USE,
};
