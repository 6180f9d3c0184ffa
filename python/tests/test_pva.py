"""`tilescope.pva` as clients of libpva use it, on the reports that the repository keeps."""

import ast
import json
import math
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import tilescope
from tilescope import ReportError, pva
from tilescope._tilescope import _pva

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "sample_reports" / "mnist_pipeline"
MATMUL = ROOT / "sample_reports" / "matmul_chain"
TOO_LARGE = ROOT / "sample_reports" / "too_large"
# A small report made by hand, with a row in every table.
WHOLE = ROOT / "tests" / "data" / "versions" / "2.3"


class Opening(unittest.TestCase):
    def test_a_file_a_directory_and_debug_information_that_is_not_there(self):
        for path in (MNIST, str(MNIST), MNIST / "profile.pop"):
            report = pva.openReport(path)
            self.assertEqual(report.compilation.target.numIPUs, 4)
        self.assertIsInstance(pva.openReport(MNIST, "no/debug.cbor"), pva.Report)
        self.assertGreater(report.version.major, 0)
        self.assertTrue(report.poplarVersion.string.startswith("tilescope "))

    def test_what_cannot_be_opened_says_so(self):
        with self.assertRaisesRegex(ReportError, "nowhere"):
            pva.openReport("nowhere/profile.pop")
        with self.assertRaisesRegex(NotImplementedError, "System Analyser"):
            pva.openTrace("reports/trace.pvti")
        for wrong in (None, 3, b"\0"):
            with self.assertRaises((TypeError, ReportError, ValueError)):
                pva.openReport(wrong)

    def test_a_script_that_imports_pva_runs_unchanged(self):
        script = textwrap.dedent(
            """
            import sys
            import pva
            from pva import openReport, ProgramVisitor
            assert __name__ == "__main__" and pva.pva_core is pva
            report = openReport(sys.argv[1])
            assert report.compilation.target.architecture == pva.IPU.Architecture.Ipu2
            print(report.compilation.graph.numComputeSets, sys.argv[2:])
            """
        )
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "script.py"
            path.write_text(script)
            command = [sys.executable, "-m", "tilescope.pva", str(path), str(MATMUL), "--more"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        sets = pva.openReport(MATMUL).compilation.graph.numComputeSets
        self.assertEqual(done.stdout, f"{sets} ['--more']\n")


class Sequences(unittest.TestCase):
    def setUp(self):
        self.compilation = pva.openReport(MNIST).compilation

    def test_they_are_like_lists(self):
        tiles = self.compilation.tiles
        whole = list(tiles)
        self.assertEqual(len(tiles), 4 * 1472)
        self.assertEqual(tiles[-1], whole[-1])
        self.assertEqual(list(tiles[10:4:-2]), whole[10:4:-2])
        self.assertEqual(list(tiles[2:][:3]), whole[2:5])
        self.assertIn(tiles[7], tiles)
        for index in (len(whole), -len(whole) - 1):
            with self.assertRaises(IndexError):
                tiles[index]
        with self.assertRaises(TypeError):
            tiles["first"]

    def test_values_by_tile_are_integers_of_python_and_arrays_of_numpy(self):
        cycles = self.compilation.computeSets[0].cyclesByTile
        self.assertEqual(len(cycles), 4 * 1472)
        self.assertTrue(all(type(value) is int for value in cycles))
        self.assertEqual(cycles, list(cycles))
        self.assertEqual(cycles[-3:], list(cycles)[-3:])
        self.assertEqual(sum(cycles), sum(cycles[i] for i in range(len(cycles))))
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        array = numpy.array(cycles, dtype=numpy.uint64)
        self.assertEqual(array.tolist(), list(cycles))
        self.assertFalse(numpy.asarray(cycles).flags.writeable)

    def test_handles_are_equal_by_id(self):
        programs = self.compilation.programs
        self.assertEqual(len({programs[3], programs[3], programs[4]}), 2)
        self.assertNotEqual(programs[3], pva.openReport(MNIST).compilation.programs[3])

    def test_an_unknown_attribute_is_none(self):
        for handle in (self.compilation, self.compilation.tiles[0].memory.category):
            with self.assertRaises(AttributeError):
                handle.used


class Memory(unittest.TestCase):
    def test_figures_of_the_machine_and_of_a_replica(self):
        target = pva.openReport(MNIST).compilation.target
        self.assertEqual(target.type, pva.Target.Type.Ipu)
        self.assertEqual(target.bytesPerIPU, target.tilesPerIpu * target.bytesPerTile)
        self.assertEqual(target.numTiles, target.numIPUs * target.tilesPerIpu)
        self.assertEqual(target.totalMemory, target.numIPUs * target.bytesPerIPU)
        self.assertEqual(target.tilesPerReplica, target.ipusPerReplica * target.tilesPerIpu)

    def test_regions_and_categories_add_up(self):
        for path in (MNIST, TOO_LARGE):
            compilation = pva.openReport(path).compilation
            for tile in compilation.tiles[::97]:
                memory = tile.memory
                regions = (memory.nonInterleaved, memory.interleaved, memory.overflowed)
                for gaps in ("includingGaps", "excludingGaps"):
                    parts = sum(getattr(region, gaps) for region in regions)
                    self.assertEqual(getattr(memory.total, gaps), parts)
                names = dir(memory.category)
                held = sum(getattr(memory.category, name).total for name in names)
                self.assertEqual(held, memory.total.excludingGaps)
                code = memory.category.internalExchangeCode
                self.assertEqual(
                    code.total,
                    sum(
                        getattr(code, region).nonOverlapped + getattr(code, region).overlapped
                        for region in ("nonInterleaved", "interleaved", "overflowed")
                    ),
                )
            ipus = [tile for ipu in compilation.ipus for tile in ipu.tiles]
            self.assertEqual(ipus, list(compilation.tiles))

    def test_liveness_adds_up_on_a_tile(self):
        compilation = pva.openReport(MATMUL).compilation
        tile = 5
        steps = compilation.livenessProgramSteps
        here = [step.notAlwaysLiveMemoryForTile(tile) for step in steps]
        memory = compilation.tiles[tile].memory
        self.assertEqual(max(of.bytes for of in here), memory.notAlwaysLiveBytes)
        for of in here:
            self.assertEqual(of.bytes, sum(variable.size for variable in of.variables))
        always = compilation.alwaysLiveVariablesForTile(tile)
        self.assertEqual(sum(variable.size for variable in always), memory.alwaysLiveBytes)
        for step in steps:
            ipu = step.notAlwaysLiveMemoryForIpu(0)
            self.assertEqual(ipu.bytes, step.notAlwaysLiveMemory.bytes)
        for wrong in (-1, 10**6):
            with self.assertRaises((IndexError, OverflowError)):
                steps[0].notAlwaysLiveMemoryForTile(wrong)

    def test_lowered_variables_are_those_of_tiles(self):
        compilation = pva.openReport(MATMUL).compilation
        lowered = compilation.loweredVariables
        self.assertEqual(len(lowered.allBriefVars), compilation.graph.numVars)
        own = [var for var in lowered.allBriefVars if var.tileId == 3]
        here = lowered.forTile(3)
        self.assertEqual([var.id for var in own], [var._id for var in here])
        self.assertEqual([var.bytes for var in own], [var.bytes for var in here])
        steps = len(compilation.livenessProgramSteps)
        for var in here:
            (interval,) = var.equivalenceClass.steps
            self.assertTrue(0 <= interval.start < interval.end <= steps)
            if var.alwaysLive:
                self.assertEqual((interval.start, interval.end), (0, steps))
            self.assertEqual(var.unloweredVar.size, var.bytes)


class Execution(unittest.TestCase):
    def setUp(self):
        self.report = pva.openReport(MNIST)

    def test_steps_of_runs_are_the_steps(self):
        execution = self.report.execution
        runs = [step for run in execution.runs for step in run.steps]
        self.assertEqual(len(runs), len(execution.steps))
        last = max(
            ipu.activeCycles.cyclesTo.max for step in execution.steps for ipu in step.ipus
        )
        self.assertEqual(execution.totalCycles.total, last)
        clock = self.report.compilation.target.clockFrequency
        run = execution.runs[0].microseconds
        self.assertLessEqual(run.end - run.start, math.ceil(last / clock * 1e6))

    def test_every_step_has_every_ipu(self):
        for step in self.report.execution.steps[:2000]:
            self.assertEqual(len(step.ipus), 4)
            for ipu in step.ipus:
                active = ipu.activeCycles
                self.assertEqual(ipu.cycles, active.cyclesTo.max - active.cyclesFrom.max)
                self.assertLessEqual(active.cyclesFrom.min, active.cyclesFrom.max)
                self.assertLessEqual(ipu.tileBalance, ipu.activeTileBalance + 1e-6)
                self.assertGreaterEqual(ipu.dataIn + ipu.dataOut, 0)

    def test_a_visitor_visits_one_program(self):
        class Counter(pva.ProgramVisitor):
            def __init__(self):
                super().__init__()
                self.seen = []

            def visitOnTileExecute(self, program):
                self.seen.append(program)

            def visitRepeat(self, program):
                self.seen.append(program)

        counter, kinds = Counter(), (pva.Program.Type.OnTileExecute, pva.Program.Type.Repeat)
        programs = self.report.compilation.programs
        for program in programs:
            program.accept(counter)
        expected = [program for program in programs if program.type in kinds]
        self.assertEqual(counter.seen, expected)
        with self.assertRaises(AttributeError):
            programs[0].accept(object())

    def test_a_report_without_execution_has_no_runs(self):
        execution = pva.openReport(TOO_LARGE).execution
        self.assertEqual((len(execution.runs), len(execution.steps)), (0, 0))
        self.assertFalse(hasattr(execution, "totalCycles"))


class Operations(unittest.TestCase):
    def test_programs_and_contexts(self):
        report = pva.openReport(MNIST)
        operations = pva.OperationAnalysis(report).operations
        names = {operation.name for operation in operations}
        steps = report.compilation.livenessProgramSteps
        for operation in operations:
            context = json.loads(operation.debugContext.json)
            self.assertEqual(context["opName"], operation.name)
            self.assertLessEqual(set(context["inputs"]), names)
            if len(operation.programs()) > 0:
                first, last = operation.firstStepIndex, operation.lastStepIndex
                self.assertTrue(0 <= first <= last < len(steps))
        self.assertEqual(len({op.debugContext.id for op in operations}), len(operations))


class Outlining(unittest.TestCase):
    """Code that is there once and called several times, as clients of Poplar's reports count it."""

    @classmethod
    def setUpClass(cls):
        # Equal layers, which share their code.
        spec = {
            "model": {"name": "matmul_chain", "m": 64, "k": 64, "n": 64, "p": 64, "training": False},
            "target": {"name": "mk2", "type": "ipu"},
        }
        cls.directory = tempfile.TemporaryDirectory()
        tilescope.simulate(spec, output=cls.directory.name, progress=False)
        cls.reports = [pva.openReport(cls.directory.name), pva.openReport(MNIST)]

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_every_exchange_has_code_of_its_own(self):
        exchanges = 0
        for report in self.reports:
            for program in report.compilation.programs:
                if program.type == pva.Program.Type.DoExchange:
                    exchanges += 1
                    self.assertGreater(sum(program.codeBytesByTile), 0, program)
        self.assertGreater(exchanges, 20)

    def test_steps_run_programs_that_are_listed(self):
        calls = 0
        for report in self.reports:
            listed = set(report.compilation.programs)
            self.assertLessEqual({step.program for step in report.execution.steps}, listed)
            live = [step.program for step in report.compilation.livenessProgramSteps]
            self.assertLessEqual(set(live), listed)
            calls += len(live) - len(set(live))
        self.assertGreater(calls, 0)

    def test_operations_miss_no_program(self):
        """What popliner's `check_programs` asks for."""
        kinds = (pva.Program.Type.OnTileExecute, pva.Program.Type.DoExchange)
        for report in self.reports:
            listed = {program for program in report.compilation.programs if program.type in kinds}
            operations = pva.OperationAnalysis(report).operations
            found = {program for of in operations for program in of.programs()}
            # The switch between programs is of no operation.
            missing = {program.name.split("/")[1] for program in listed - found}
            self.assertLessEqual(missing, {"switchControlBroadcast"})

    def test_control_code_is_with_programs_that_have_none_below(self):
        """Of what the program adds to that of an empty one, as in Poplar's reports."""
        for report in self.reports:
            programs = report.compilation.programs
            every = sum(sum(program.controlCodeByTile) for program in programs if not program.children)
            roots = set(programs) - {child for program in programs for child in program.children}
            whole = sum(sum(program.controlCodeByTile) for program in roots)
            self.assertGreater(every, 0)
            self.assertGreaterEqual(every, 0.95 * whole)

    def test_variables_of_a_program_are_those_of_all_its_calls(self):
        compilation = self.reports[1].compilation
        of_steps = {}
        for step in compilation.livenessProgramSteps:
            of_steps.setdefault(step.program._id, set()).update(var._id for var in step.program.vars)
        for program in compilation.programs:
            own = {var._id for var in program.vars}
            self.assertEqual(own, of_steps.get(program._id, set()), program)

    def test_cycles_of_steps_are_known_by_tile(self):
        # A report may not say which tiles prepare and end a copy with the host.
        unsure = {pva.Program.Type.StreamCopyBegin, pva.Program.Type.StreamCopyEnd}
        for report in self.reports:
            for step in report.execution.steps:
                if step.program.type in unsure and not hasattr(step, "cyclesByTile"):
                    continue
                longest = max(
                    ipu.activeCycles.cyclesTo.max - ipu.activeCycles.cyclesFrom.min
                    for ipu in step.ipus
                )
                self.assertLessEqual(max(step.cyclesByTile), longest)


class Stubs(unittest.TestCase):
    def test_they_have_the_members_of_the_classes(self):
        path = Path(tilescope.__file__).with_name("pva.pyi")
        classes = {
            node.name: node
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef)
        }
        own = {name: of for name, of in vars(_pva).items() if isinstance(of, type)}
        del own["ListIterator"]
        stubbed = {name.lstrip("_") for name in classes} - {"ProgramVisitor"}
        self.assertEqual(stubbed, set(own))
        for name, node in classes.items():
            if name == "ProgramVisitor":
                of = pva.ProgramVisitor
            else:
                of = own[name.lstrip("_")]
            members = {
                member.target.id if isinstance(member, ast.AnnAssign) else member.name
                for member in node.body
                if isinstance(member, (ast.AnnAssign, ast.FunctionDef, ast.ClassDef))
            }
            actual = {member for member in dir(of) if not member.startswith("__")}
            declared = {member for member in members if not member.startswith("__")}
            self.assertEqual(declared, actual, name)

    def test_they_have_the_names_of_the_module(self):
        path = Path(tilescope.__file__).with_name("pva.pyi")
        names = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                names.add(node.name)
        public = {name for name in names if not name.startswith("_")}
        self.assertLessEqual(public, set(dir(pva)))
        self.assertLessEqual(set(pva.__all__), public)


class WholeReports(unittest.TestCase):
    """What is recorded since format 2.3."""

    def setUp(self):
        self.report = pva.openReport(WHOLE)
        self.compilation = self.report.compilation
        if not hasattr(self.compilation.programs[0], "controlCodeByTile"):
            self.skipTest("the report that is kept of format 2.3 has no control code")

    def test_no_program_has_more_code_than_its_tiles_hold(self):
        tiles = self.compilation.tiles
        leaves = [program for program in self.compilation.programs if not program.children]
        control = [program.controlCodeByTile for program in leaves]
        of_type = pva.Program.Type.DoExchange
        exchange = [program.codeBytesByTile for program in leaves if program.type == of_type]
        for number, tile in enumerate(tiles):
            category = tile.memory.category
            self.assertLessEqual(sum(of[number] for of in control), category.controlCode.total)
            code = sum(of[number] for of in exchange)
            self.assertLessEqual(code, category.internalExchangeCode.total)
            vertices = sum(vertex.codeBytes for vertex in tile.memory.vertices)
            self.assertLessEqual(vertices, category.vertexCode.total)

    def test_a_parent_has_the_control_code_of_its_children(self):
        for program in self.compilation.programs:
            if len(program.children) == 1:
                own = sum(program.controlCodeByTile)
                self.assertGreaterEqual(own, sum(program.children[0].controlCodeByTile))

    def test_exchanges_have_cycles_by_tile(self):
        of_type = pva.Program.Type.DoExchange
        exchanges = [program for program in self.compilation.programs if program.type == of_type]
        self.assertTrue(exchanges)
        for program in exchanges:
            self.assertGreater(max(program.estimatedCyclesByTile), 0)
        for step in self.report.execution.steps[:40]:
            active = [ipu.activeCycles for ipu in step.ipus]
            longest = max(of.cyclesTo.max - of.cyclesFrom.min for of in active)
            self.assertLessEqual(max(step.cyclesByTile), longest)

    def test_programs_use_variables_that_live(self):
        steps = self.compilation.livenessProgramSteps
        used = 0
        for number, step in enumerate(steps):
            for var in step.program.vars:
                used += 1
                (interval,) = var.equivalenceClass.steps
                self.assertTrue(interval.start <= number < interval.end)
        self.assertGreater(used, 0)

    def test_vertices_of_one_type_have_the_cycles_of_their_tiles(self):
        for compute_set in self.compilation.computeSets:
            if len(compute_set.vertices) == 1:
                estimated = compute_set.vertices[0].estimatedCycles
                self.assertEqual(estimated, sum(compute_set.cyclesByTile))


if __name__ == "__main__":
    unittest.main()
