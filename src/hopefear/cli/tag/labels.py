"""Labels of a corpus and their scheme: found, checked and spelled in another."""

from __future__ import annotations

from typing import Any, NamedTuple

from hopefear.cli.guard import complain
from hopefear.cli.tag.reading import Text
from hopefear.data.schemes import convert, detect_scheme, scheme_name, spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError, InputError

_LISTED = 5


class Schemes(NamedTuple):
    """How spans are spelled; None where labels are no spans."""

    file: str | None
    model: str | None

    def read(self, text: Text, gold: Column) -> Column:
        """Labels of a file as the model has them."""
        if self.file == self.model or self.file is None or self.model is None:
            return gold
        # Held-out data is scored, not learned from: read as the scorer reads it.
        return convert(gold, text.starts, self.file, self.model, place=text.place, repair=True)


def schemes_of(text: Text, gold: Column, scheme: str, target: str | None) -> Schemes:
    """The scheme of training labels, and the one to learn them in.

    Parameters
    ----------
    scheme : str
        A name, ``none``, or ``auto``.
    target : str, optional
        The scheme to convert to.
    """
    try:
        if scheme == "auto":
            found = detect_scheme(gold, text.starts, place=text.place)
        elif scheme == "none":
            found = None
        else:
            found = scheme_name(scheme)
            spans(gold, text.starts, found, place=text.place)
    except InputError as error:
        raise HopefearError(f"{error}; --scheme none takes labels as they are") from error
    if target is None:
        return Schemes(found, found)
    if found is None:
        raise HopefearError(
            f"--convert {target}: the labels of {text.source} are no spans; leave it out"
        )
    return Schemes(found, scheme_name(target))


def spelled(column: Column, starts: Any, source: str | None, target: str | None) -> Column:
    """Predicted spans in another scheme; illegal sequences are read as the scorer reads them."""
    if target is None or target == source:
        return column
    if source is None:
        raise HopefearError(f"--scheme {target}: the model's labels are no spans; leave it out")
    return convert(column, starts, source, target, repair=True)


def warn_of_strangers(data: SequenceDataset, known: int) -> int:
    """Tell of labels that training did not see; the number of tokens that have one."""
    strange = int((data.rows.labels >= known).sum())
    if strange:
        names = data.labels[known:]
        shown = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
        complain(
            f"warning: {data.source}: {strange:,} tokens have labels that training did not see "
            f"({shown}); they count as mistakes"
        )
    return strange
