"""Where the costs of lists come from: the file, references or brackets; the same for all lists."""

from __future__ import annotations

from collections.abc import Iterator

from hopefear.data.lists.input import ListInput, RawList
from hopefear.errors import HopefearError, InputError

GIVEN, BRACKETS = "cost", "parseval"  # metrics that are not counted from texts

_WORDS = {
    "": "no costs",
    "costs": "costs",
    "references": "a reference, and texts,",
    "brackets": "a gold tree or counts of brackets",
}


class UnjudgedError(InputError):
    """A list without what its costs are made of, where they are needed.

    Attributes
    ----------
    format : str
        How the list is written; empty where it comes from no file.
    """

    format = ""


def check_metric(metric: str | None, trees: bool, source: str) -> None:
    """Refuse a metric of texts for trees, and one of trees for texts."""
    if metric is None or metric == GIVEN or (metric == BRACKETS) == trees:
        return
    if trees:
        raise HopefearError(
            f"{source}: the metric {metric} is for texts, and these candidates are trees; take "
            "parseval, F1 of brackets, or leave the metric out"
        )
    raise HopefearError(
        f"{source}: the metric parseval is for trees, and these candidates are texts; take bleu, "
        "chrf, ter, wer, edit or f1 against references, or the costs of the file"
    )


def same_kind(
    source: ListInput, raws: Iterator[RawList], format: str, metric: str | None, required: bool
) -> Iterator[RawList]:
    """The lists whose costs come from where those of the first do; others are refused.

    Parameters
    ----------
    source : ListInput
        The file.
    raws : iterator of RawList
        Its lists.
    format : str
        How they are written.
    metric : str, optional
        Name of the metric that is to make the costs.
    required : bool
        A list without costs is refused too.
    """
    usual: str | None = None
    for raw in raws:
        found = kind_of(raw, format != "json", metric)
        error: InputError
        if required and not _will_do(found, format, metric):
            error = _unjudged(source, raw, format, metric, usual)
        elif found == (usual := found if usual is None else usual):
            yield raw
            continue
        else:
            expected = f"{_WORDS[usual]} in {raw.where()}, as in the lists before it"
            error = source.error(raw.line, expected, _WORDS[found])
        source.refuse(error)


def kind_of(raw: RawList, trees: bool, metric: str | None) -> str:
    """What makes the costs of a list: ``brackets``, ``references``, ``costs``, or nothing."""
    if trees:
        if metric != GIVEN and (raw.counts is not None or raw.references is not None):
            return "brackets"
        if metric == BRACKETS:
            return ""
    elif metric not in (None, GIVEN) and raw.references is not None and raw.unspoken is None:
        return "references"
    return "" if raw.costs is None else "costs"


def _will_do(kind: str, format: str, metric: str | None) -> bool:
    counted = format == "json" and metric not in (None, GIVEN)
    return kind == "references" if counted else bool(kind)


def _unjudged(
    source: ListInput, raw: RawList, format: str, metric: str | None, usual: str | None
) -> UnjudgedError:
    place, reason, found = raw.where(), "which training and evaluation need", "none"
    if format == "json" and metric not in (None, GIVEN):
        wanted, reason = "a reference or references", f"which {metric} is counted against"
        if raw.references is not None:
            wanted, reason, found = "a text", f"of which {metric} is counted", "nothing"
            place = raw.where(raw.unspoken)
    elif format == "json" or metric == GIVEN or usual == "costs":
        wanted = "costs"
    elif metric == BRACKETS or usual == "brackets" or format == "bllip":
        wanted = "a gold tree" if format == "bllip" else _WORDS["brackets"]
    else:
        wanted = "a gold tree, counts of brackets or costs"
    error = UnjudgedError(source.name, raw.line, f"{wanted} in {place}, {reason}", found)
    error.format = format
    return error
