"""PyTorch, imported when something of it is first used: it is slow to import, and most tables do without."""

from __future__ import annotations

import sys
from typing import Any

Tensor = Any  # torch.Tensor
Device = Any  # torch.device


class _Later:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and "torch" not in sys.modules:  # asked by those who look at a module, such as doctest
            raise AttributeError(name)
        import torch

        return getattr(torch, name)


torch: Any = _Later()
