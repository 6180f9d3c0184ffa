"""What goes wrong, under PopTorch's names."""


class Error(RuntimeError):
    """A model or its options cannot be simulated or run."""


class RecoverableError(Error):
    """Kept for scripts that catch it; a simulator has nothing to recover from."""


class UnrecoverableError(Error):
    """Kept for scripts that catch it."""


class ConfigFileError(Error):
    """A file of options has a line that is no option."""
