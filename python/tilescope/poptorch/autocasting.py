"""``poptorch.autocasting``: policies of automatic casts."""

_KINDS = ("fp16", "fp32", "promote", "demote")


class Policy:
    """Operations that compute in half, in single, in the widest or in the narrowest precision."""

    def __init__(self, fp16=None, fp32=None, promote=None, demote=None) -> None:
        for name, operations in zip(_KINDS, (fp16, fp32, promote, demote)):
            setattr(self, name, list(operations or []))

    def __repr__(self) -> str:
        return f"Policy({', '.join(f'{name}={getattr(self, name)}' for name in _KINDS)})"
