"""The session options that PopTorch's ``_Popart.set`` takes.

From graphcore/poptorch, popart_compiler/source/SessionOptions.cpp, which refuses others.
"""

import difflib

from . import _spec_keys

# Options that are tables or lists, whose entries have arbitrary names.
CONTAINERS = frozenset(
    """
    accumulateOuterFragmentSettings.excludedVirtualGraphs convolutionOptions customCodelets
    dotChecks engineOptions gclOptions hardwareInstrumentations lstmOptions matmulOptions
    reportOptions updatableNamedBuffers
    """.split()
)
_NAMES = frozenset(
    """
    accumulateOuterFragmentSettings.schedule accumulation_and_replication_reduction_type
    accumulationAndReplicationReductionType accumulationFactor aliasZeroCopy auto_round_num_ipus
    autodiffSettings.stitchStrategy automaticLossScalingSettings.binEdgeLocation
    automaticLossScalingSettings.enabled
    automaticLossScalingSettings.gradientTensorTrackingMethod
    automaticLossScalingSettings.thresholdUpperCountProportion
    automaticLossScalingSettings.updatePeriod autoRecomputation
    batchSerializationSettings.batchSchedule
    batchSerializationSettings.concatOnExecutionPhaseChange
    batchSerializationSettings.concatOnPipelineStageChange
    batchSerializationSettings.concatOnVirtualGraphChange batchSerializationSettings.factor
    batchSerializationSettings.method batchSerializationSettings.transformContext
    broadcast_buffers cachePath compilationProgressTotal compileEngine connection_type
    constantWeights customCodeletCompileFlags decomposeGradSum defaultBufferingDepth
    defaultPrefetchBufferingDepth delayVarUpdates device_iterations
    disableGradAccumulationTensorStreams disableOptimizerStateTensorStreams
    distributed_process_id dotOpNames enableDistributedReplicatedGraphs enableEngineCaching
    enableExplicitIR enableExplicitMainLoops enableFloatingPointChecks enableFullyConnectedPass
    enableGradientAccumulation enableInplaceAmbiguityChecking enableLoadAndOffloadRNGState
    enableMergeExchange enableNonStableSoftmax enableOutlining enableOutliningCopyCostPruning
    enablePipelining enablePrefetchDatastreams enableReplicatedGraphs enableSerializedMatmuls
    enableStableNorm enableStochasticRounding enableSupportedDataTypeCasting
    ensureFp32LossScaleTensor execution_mode executionPhaseSettings.phases
    executionPhaseSettings.stages explicitRecomputation exportPoplarComputationGraph
    exportPoplarVertexGraph finalDotOp firstDotOp globalReplicaOffset globalReplicationFactor
    gradient_accumulation groupHostSync groupNormStridedChannelGrouping input_cgt
    input_group_size instrumentWithHardwareCycleCounter ipu_id ipu_version kahnTieBreaker
    log_dir logDir looseThresholdAtPeak max_repeat_logs
    meanAccumulationAndReplicationReductionStrategy mergeVarUpdate mergeVarUpdateMemThreshold
    model_name num_distributed_processes numIOTiles opxAliasChecking opxModifyChecking
    outlineSequenceBreakCost outlineThreshold output_mode output_return_period
    partialsTypeMatMuls random_seed rearrangeAnchorsOnHost rearrangeStreamsOnHost
    replicatedCollectivesSettings.mergeAllReduceCollectives
    replicatedCollectivesSettings.prepareScheduleForMergingCollectives replication_factor
    saveInitializersToFile scheduleNonWeightUpdateGradientConsumersEarly separate_backward_phase
    separateCallOpPdfs serial_phases_execution serializedPoprithmsShiftGraphsDir
    strictOpVersions subgraphCopyingStrategy swapLimitScheduler sync_pattern syntheticDataMode
    tensors_liveness timeLimitScheduler transitiveClosureOptimizationThreshold use_model
    useHostCopyOps virtualGraphMode
    """.split()
)


def is_option(name: str) -> bool:
    """True if the option exists, here or in PopTorch; parts of tables are not checked."""
    parts = name.split(".")
    whole = any(".".join(parts[:count]) in CONTAINERS for count in range(1, len(parts) + 1))
    return whole or name in _NAMES or _spec_keys.key_of(name) is not None


def nearest(name: str):
    """The option most similar to a name; None if none is similar."""
    # Case-insensitive: `gradientaccumulation`.
    known = {known.lower(): known for known in CONTAINERS | _NAMES}
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return known[found[0]] if found else None
