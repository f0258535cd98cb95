"""SciPy's special functions, imported when the first one is called.

The import takes as long as all else that `dpgram inspect` or a ledger does, and to name a mechanism no function is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def _when_called(name: str) -> Callable[..., Any]:
    @cache
    def imported() -> Callable[..., Any]:
        from scipy import special

        return getattr(special, name)

    return lambda *given: imported()(*given)


betainc = _when_called("betainc")
chdtr = _when_called("chdtr")
chdtrc = _when_called("chdtrc")
erfcx = _when_called("erfcx")
gammainccinv = _when_called("gammainccinv")
gammaln = _when_called("gammaln")
k0e = _when_called("k0e")
log_ndtr = _when_called("log_ndtr")
ndtr = _when_called("ndtr")
ndtri = _when_called("ndtri")
