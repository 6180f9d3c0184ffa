"""Poplar's engine options by name.

From the pages of ``poplar::Engine`` and ``poplar::RuntimeOptions`` in the Poplar API reference,
and from graphcore/examples. Pages differ between releases, so an unknown name of a known group
is accepted and reported as not modelled.
"""

import difflib
import json
import os

from ._errors import Error

_NAMES = """
    autoReport.all autoReport.directory autoReport.executionProfileProgramRunCount
    autoReport.outputArchive autoReport.outputDebugInfo autoReport.outputExecutionProfile
    autoReport.outputGraphProfile autoReport.outputLoweredVars autoReport.outputSerializedGraph
    autoReport.streamAtEachRun
    debug.allowOutOfMemory debug.branchRecordTile debug.computeInstrumentationLevel
    debug.cpuMultiThreadExecution debug.floatPointOpException debug.instrument
    debug.instrumentCompute debug.instrumentControlFlow debug.instrumentExternalExchange
    debug.loweredVarDumpFile debug.nanOverflowException debug.outputAllSymbols debug.profilingTile
    debug.retainDebugInformation debug.runtimeVerify debug.trace debug.traceFile debug.verify
    exchange.enablePrefetch exchange.streamBufferOverlap
    opt.enableInlining opt.enableMultiAccessCopies opt.enableSwSyncs
    opt.internalExchangeOptimisationTarget opt.maxComputeSetsPerLoweredCopy opt.maxCopyMergeSize
    opt.useAutoloader
    prng.enableStochasticRounding prng.seed
    profiler.blocks.filter profiler.blocks.implicitFlush profiler.format
    profiler.includeCycleEstimates profiler.includeFlopEstimates
    profiler.perExecutionStreamCopyCycles profiler.programs.filter profiler.replicaToProfile
    streamCallbacks.maxLookahead streamCallbacks.multiThreadMode streamCallbacks.numaAware
    streamCallbacks.numWorkerThreads
    target.deterministicWorkers target.exceptionPollPeriodUs target.extendedMemory
    target.gatewayMode target.gatewayWriteCombining target.hostSyncTimeout
    target.maxStreamCallbackThreadsPerNumaNode target.saveArchive
    target.supervisorStackSizeInBytes target.syncMethod target.syncPollPeriodUs
    target.syncReplicasIndependently target.useBufferedCompletions target.workerStackSizeInBytes
    """.split()
#: Environment variables with options, as JSON.
VARIABLES = ("POPLAR_ENGINE_OPTIONS", "POPLAR_RUNTIME_OPTIONS")
_GROUPS = sorted({name.split(".")[0] for name in _NAMES})


def check(options: dict) -> dict:
    """Returns the options. Refuses misspelled names, and names of unknown groups."""
    for name in options:
        if name in _NAMES:
            continue
        near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.85)
        if near:
            raise Error(f"Poplar has no engine option {name!r}; did you mean {near[0]!r}?")
        if name.split(".")[0] not in _GROUPS:
            groups = ", ".join(f"{group}." for group in _GROUPS)
            raise Error(f"Poplar has no engine option {name!r}: they begin with {groups}")
    return options


def environment() -> dict:
    """The options of the environment. ``POPLAR_RUNTIME_OPTIONS`` is read last."""
    options = {}
    for variable in VARIABLES:
        text = os.environ.get(variable, "")
        try:
            found = json.loads(text or "{}")
        except ValueError as error:
            raise Error(f"{variable} is not valid JSON: {error}") from error
        if not isinstance(found, dict):
            raise Error(f"{variable} must be a JSON object, not {text}")
        options.update(check(found))
    return options
