"""``poptorch.DataLoader``: torch's loader for the samples of a whole call."""

import os

import torch

from . import _log, enums
from ._errors import Error
from ._options import Options

# The loader of the last batch, which feeds a model that is called with that batch.
last_used = None


class DataLoader(torch.utils.data.DataLoader):
    """Loads the samples of a call: ``batch_size`` x device iterations x accumulation x replicas."""

    def __init__(
        self,
        options: Options,
        dataset,
        batch_size: int = 1,
        shuffle=None,
        num_workers: int = 0,
        drop_last: bool = True,
        persistent_workers=None,
        auto_distributed_partitioning: bool = True,
        mode=enums.DataLoaderMode.Sync,
        async_options=None,
        rebatched_worker_size=None,
        batch_sampler=None,
        **kwargs,
    ) -> None:
        if not isinstance(options, Options):
            raise Error(f"the first argument is poptorch.Options, not {type(options).__name__}")
        options._freeze()
        self._options = options
        self._mode = mode
        self._async_options = dict(async_options or {})
        self._asked_workers = num_workers
        self._rebatched_worker_size = rebatched_worker_size
        self._drop_last_samples = drop_last
        groups = options.replication_factor // options.input_group_size
        self._batches = options.device_iterations * groups * options.Training.gradient_accumulation
        self._combined = None if batch_size is None else batch_size * self._batches
        # More workers than cores slow down this machine, not the simulated one.
        workers = min(num_workers, _cores())
        persistent = workers > 0 if persistent_workers is None else persistent_workers
        common = dict(num_workers=workers, persistent_workers=persistent and workers > 0, **kwargs)
        if batch_sampler is not None:
            if batch_size != 1 or shuffle:
                raise Error("batch_sampler excludes batch_size and shuffle")
            batches = _CombinedBatches(batch_sampler, self._batches, drop_last)
            super().__init__(dataset, batch_sampler=batches, **common)
            return
        iterable = isinstance(dataset, torch.utils.data.IterableDataset)
        if not iterable and self._combined and drop_last and len(dataset) < self._combined:
            _log.warning(
                f"the data set has {len(dataset)} samples, fewer than the {self._combined} of one "
                "call: with drop_last it is empty"
            )
        super().__init__(
            dataset,
            batch_size=self._combined,
            shuffle=None if iterable else bool(shuffle),
            drop_last=bool(drop_last) and self._combined is not None,
            **common,
        )

    @property
    def combinedBatchSize(self):
        """Samples of one call."""
        return self._combined

    @property
    def options(self) -> Options:
        """The options of the loader."""
        return self._options

    def terminate(self) -> None:
        """Ends an asynchronous loader."""

    def __iter__(self):
        for batch in super().__iter__():
            _use(self)
            yield batch

    def spec(self) -> dict:
        """The loader as keys of a spec."""
        loaders = {
            enums.DataLoaderMode.Sync: "sync",
            enums.DataLoaderMode.Async: "async",
            enums.DataLoaderMode.AsyncRebatched: "async_rebatched",
        }
        keys = {
            "options.host.loader": loaders[self._mode],
            "options.host.num_workers": max(self._asked_workers, 1),
            "options.host.drop_last": bool(self._drop_last_samples),
            "options.host.persistent_workers": bool(self.persistent_workers),
        }
        if isinstance(self.dataset, torch.utils.data.IterableDataset):
            keys["options.host.iterable_dataset"] = True
        elif 0 < len(self.dataset) <= 1 << 24:
            keys["options.host.dataset_samples"] = len(self.dataset)
        for name in ("buffer_size", "early_preload", "load_indefinitely"):
            if name in self._async_options:
                keys[f"options.host.{name}"] = self._async_options[name]
        if self._rebatched_worker_size is not None:
            keys["options.host.rebatched_worker_size"] = self._rebatched_worker_size
        return keys


class _CombinedBatches(torch.utils.data.Sampler):
    """The batches of a sampler, grouped by call."""

    def __init__(self, sampler, batches: int, drop_last: bool) -> None:
        self._sampler, self._batches, self._drop_last = sampler, batches, drop_last

    def __iter__(self):
        together, count = [], 0
        for batch in self._sampler:
            together.extend(batch)
            count += 1
            if count == self._batches:
                yield together
                together, count = [], 0
        if together and not self._drop_last:
            yield together

    def __len__(self) -> int:
        whole, rest = divmod(len(self._sampler), self._batches)
        return whole + (rest > 0 and not self._drop_last)


class AsynchronousDataAccessor:
    """Prefetches samples on hardware; in the simulator, samples are ready on request."""

    def __init__(self, dataset, *_, **__) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __iter__(self):
        return iter(self._dataset)

    def terminate(self) -> None:
        """Ends the accessor."""


def _cores() -> int:
    return os.cpu_count() or 1


def _use(loader: DataLoader) -> None:
    global last_used
    last_used = loader
