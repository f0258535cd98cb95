"""dpgram lda"""

from __future__ import annotations

from dpgram.analysis.lda import lda as discriminate
from dpgram.artifact.files import load
from dpgram.cli.options import Json, ReleaseFile, listed_names
from dpgram.cli.output import print_json, print_text


def lda(
    release: ReleaseFile,
    /,
    *,
    target: str,
    features: str | None = None,
    confidence: float = 0.95,
    design_effect: float | None = None,
    json: Json = False,
) -> None:
    """Print a linear discriminant analysis from RELEASE. This costs no budget.

    Args:
        target: The categorical or Boolean column whose levels are the classes.
        features: The columns that tell the classes apart, separated by commas. By default all others.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case."""
    made = load(release)
    found = discriminate(made, target, listed_names(made.schema, features), confidence=confidence, design_effect=design_effect)
    if json:
        print_json(found.to_dict())
    else:
        print_text(found)
