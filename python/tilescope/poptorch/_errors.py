"""Errors with PopTorch's names."""


class Error(RuntimeError):
    """A model or its options cannot be simulated or run."""


class RecoverableError(Error):
    """Exists for scripts that catch it; the simulator never raises it."""


class UnrecoverableError(Error):
    """Exists for scripts that catch it."""


class NoLossError(Error):
    """A model that is trained returns no loss."""


class ConfigFileError(Error):
    """A line of an options file is not an option."""
