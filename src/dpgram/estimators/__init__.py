"""scikit-learn style: fit(X, y) goes through the curator and comes back through a release.

A custodian's door: it holds rows while it fits, and keeps none of them. Needs the extra ``sklearn``."""

from importlib.util import find_spec

from dpgram.errors import MissingExtraError

if find_spec("sklearn") is None:
    raise MissingExtraError(package="scikit-learn", extra="sklearn", purpose="an estimator in the style of scikit-learn")
