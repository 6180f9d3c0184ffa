"""Files that the command line writes, read by the libraries they are for."""

from __future__ import annotations

import gzip
import json
import unittest
from collections import Counter, defaultdict

import tilescope as ts
from tilescope import _program

from .support import SAMPLES, needs, sample, scratch

REPORT = SAMPLES / "mnist_pipeline"
ACTIVITIES = {"compute", "internal_exchange", "global_exchange", "host", "remote_buffer", "sync",
              "other"}


def exported(name: str, *options: str):
    """A file that `tilescope export` writes of the sample."""
    path = scratch() / name
    _program.run(["export", str(REPORT), *options, "-o", str(path)])
    return path


def cycles_by_ipu() -> dict[int, int]:
    steps = sample("mnist_pipeline").table("steps")
    sums: Counter[int] = Counter()
    for ipu, cycles in zip(steps["ipu"], steps["cycles"]):
        sums[ipu] += cycles
    return dict(sums)


class Tables(unittest.TestCase):
    @needs("pyarrow")
    def test_pyarrow_reads_parquet_and_arrow(self):
        import pyarrow.ipc
        import pyarrow.parquet

        own = sample("mnist_pipeline").table("steps")
        parquet = pyarrow.parquet.read_table(exported("steps.parquet", "--format", "parquet"))
        with pyarrow.ipc.open_file(exported("steps.arrow", "--format", "arrow")) as reader:
            arrow = reader.read_all()
        for table in [parquet, arrow]:
            self.assertEqual(table.num_rows, len(own))
            self.assertEqual(table.column("cycles").to_pylist(), own["cycles"])
            self.assertEqual(table.column("name").to_pylist(), own["name"])

    @needs("polars")
    def test_polars_reads_parquet_and_arrow(self):
        import polars

        steps = exported("steps.parquet", "--format", "parquet")
        arrow = exported("steps.arrow", "--format", "arrow")
        for frame in [polars.read_parquet(steps), polars.read_ipc(arrow)]:
            sums = frame.group_by("ipu").agg(polars.col("cycles").sum())
            self.assertEqual(dict(sums.iter_rows()), cycles_by_ipu())

    @needs("duckdb")
    def test_duckdb_reads_parquet(self):
        import duckdb

        steps = exported("steps.parquet", "--format", "parquet")
        rows = duckdb.sql(f"select ipu, sum(cycles) from '{steps}' group by ipu").fetchall()
        self.assertEqual({ipu: int(cycles) for ipu, cycles in rows}, cycles_by_ipu())


class Traces(unittest.TestCase):
    @needs("perfetto")
    def test_perfettos_own_classes_read_the_trace(self):
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

        trace = Trace()
        trace.ParseFromString(exported("t.perfetto-trace", "--format", "perfetto").read_bytes())
        names, defaults, tables = {}, {}, defaultdict(dict)
        open_slices, sums = defaultdict(list), Counter()
        for packet in trace.packet:
            sequence = packet.trusted_packet_sequence_id
            if packet.sequence_flags & 1:
                tables[sequence] = {}
            for kind in ["event_categories", "event_names", "debug_annotation_names"]:
                for entry in getattr(packet.interned_data, kind):
                    tables[sequence][kind, entry.iid] = entry.name
            if packet.HasField("trace_packet_defaults"):
                event = packet.trace_packet_defaults.track_event_defaults
                defaults[sequence] = event.track_uuid
            if packet.HasField("track_descriptor"):
                names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            track = event.track_uuid if event.HasField("track_uuid") else defaults[sequence]
            stack = open_slices[track]
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                if stack:
                    self.assertLessEqual(stack[-1][0], packet.timestamp)
                category = tables[sequence]["event_categories", event.category_iids[0]]
                notes = {tables[sequence]["debug_annotation_names", note.name_iid]: note
                         for note in event.debug_annotations}
                cycles = notes["cycles"].uint_value
                stack.append((packet.timestamp, category, cycles, []))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                start, category, cycles, ends = stack.pop()
                self.assertLessEqual(max([start, *ends]), packet.timestamp)
                if stack:
                    stack[-1][3].append(packet.timestamp)
                if category in ACTIVITIES:
                    sums[names[track]] += cycles
        self.assertFalse(any(open_slices.values()), "every begin has its end")
        self.assertEqual(dict(sums), {f"IPU {ipu}": of for ipu, of in cycles_by_ipu().items()})

    def test_json_reads_the_trace_for_chrome(self):
        path = exported("trace.json.gz", "--format", "chrome-trace")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events
                 if event["name"] == "thread_name"}
        sums: Counter[str] = Counter()
        for event in events:
            if event["ph"] == "X" and event["cat"] in ACTIVITIES:
                sums[names[event["tid"]]] += event["args"]["cycles"]
        self.assertEqual(dict(sums), {f"IPU {ipu}": of for ipu, of in cycles_by_ipu().items()})


class Slices(unittest.TestCase):
    def test_a_slice_is_a_report(self):
        report = sample("mnist_pipeline")
        end = report.summary()["execution"]["total_cycles"] // 2
        path = scratch() / "slice"
        _program.run(["slice", str(REPORT), "--range", f"0..{end}", "-o", str(path)])
        with_window = report.table("steps", cycles=(0, end))
        self.assertEqual(sum(ts.open(path).table("steps")["cycles"]), sum(with_window["cycles"]))


if __name__ == "__main__":
    unittest.main()
