"""Templates over text in chunks: numbers grow, and the final map is that of all chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.errors import HopefearError
from hopefear.features.attributes import Attributes
from hopefear.features.ngrams import MAX_NAMES
from hopefear.features.templates.loading import load_templates
from hopefear.features.templates.numbering import (
    AttributeIndices,
    AttributeNames,
    AttributeTable,
    GrowingAttributes,
    NumberedAttributes,
    _pointers,
    _record,
    hash_to,
    no_rows,
    part_sizes,
)
from hopefear.features.templates.program import Bound, FirstOccurrences, Program, Slots
from hopefear.features.templates.spec import ON_EDGES, ON_LABELS, POSITIONS, Templates
from hopefear.features.templates.template_map import TemplateFeatures, check_options


class StreamedTemplates:
    """Numbers attributes chunk by chunk, by first occurrence.

    Memory is that of the attributes, not of the text: what :meth:`finish` returns is byte for byte
    what ``TemplateFeatures.fit_encode`` makes of the whole text.

    Parameters
    ----------
    templates : Templates or str
        Templates, or what ``load_templates`` reads.
    min_count, hash_bits, keep_names
        As in :meth:`hopefear.features.templates.TemplateFeatures.fit_encode`.

    Examples
    --------
    >>> from types import SimpleNamespace as Space
    >>> from hopefear.features.templates import parse_templates
    >>> def piece(*texts):
    ...     words = Space(strings=list(texts), ids=np.arange(len(texts), dtype=np.int32))
    ...     return Space(starts=np.array([0, len(texts)]), columns={"word": words}, source="-")
    >>> stream = StreamedTemplates(parse_templates('[[templates]]\\nfeatures = ["word[0]"]'))
    >>> stream.encode(piece("the", "cat")).indices.tolist()
    [0, 1]
    >>> stream.encode(piece("a", "cat")).indices.tolist()
    [2, 1]
    >>> features, numbers = stream.finish()
    >>> features.size, features.name(2), numbers is None
    (3, 'word[0]=a', True)
    """

    def __init__(
        self,
        templates: Templates | str,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        keep_names: bool = True,
    ) -> None:
        check_options(min_count, hash_bits)
        self._unbound = load_templates(templates) if isinstance(templates, str) else templates
        self._min_count, self._bits, self._keep_names = min_count, hash_bits or 0, keep_names
        self._templates: Templates | None = None
        self._source = "the text"

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that sentences must have; known with the first of them."""
        return () if self._templates is None else self._slots.columns

    def encode(self, sentences: Any) -> Attributes:
        """Attributes of some more sentences; numbers are not final until :meth:`finish`."""
        if self._templates is None:
            self._templates = self._unbound.for_columns(sentences.columns)
            self._slots = Slots(self._templates)
            self._source = sentences.source
            # By column, the number of every string so far.
            self._codes: dict[str, dict[str, int]] = {c: {} for c in self._slots.columns}
            programs = self._slots.program(ON_LABELS), self._slots.program(ON_EDGES)
            self._parts = [_Part(program, self._keep_names, self._bits) for program in programs]
        bound = self._slots.bind(sentences)
        base, numbers = self._numbers(sentences)
        rows = [
            part.encode(bound, base, numbers)
            if part.program.templates or not part.program.edges
            else no_rows()
            for part in self._parts
        ]
        return Attributes(*rows[0], *rows[1])

    def _numbers(self, sentences: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the offset of each source's strings, and their numbers in the whole text."""
        by_column = {}
        for column, codes in self._codes.items():
            strings = sentences.columns[column].strings
            by_column[column] = np.array(
                [codes.setdefault(s, len(codes)) for s in strings] if self._keep_names else [],
                np.int32,
            )
        tables = [
            np.arange(len(POSITIONS), dtype=np.int32)
            if source.lexicon
            else by_column[source.needs()]
            for source in self._slots.sources
        ]
        base = np.cumsum([0, *map(len, tables)])
        return base, np.concatenate([np.zeros(0, np.int32), *tables])

    def finish(self) -> tuple[TemplateFeatures, tuple[np.ndarray | None, np.ndarray | None] | None]:
        """The feature map, and for labels and edges the final number of each (-1: left out).

        None where the numbers are final as they are.
        """
        if self._templates is None:
            raise HopefearError("there is no text to take attributes from")
        tables, moved, names = [], [], list[AttributeNames]()
        order: np.ndarray | None = None  # of hashed attributes, those with names by their numbers
        collisions, named = 0.0, None
        for part in self._parts:
            part.check_fired(self._templates, self._source)
            keys, counts = part.growing.table()
            keep, new = counts >= self._min_count, None
            if not keep.all():
                new = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
                keys = keys[keep]
            if self._keep_names:
                names.append(part.names(keep))
            if self._bits and not part.program.edges:
                empty = AttributeIndices(
                    np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
                )
                unnamed = FirstOccurrences(
                    *(np.zeros(0, t) for t in (np.int64, np.uint16, np.int32))
                )
                numbered = NumberedAttributes(keys, unnamed, counts, empty)
                _, new, collisions = hash_to(numbered, self._bits)
                if self._keep_names:
                    columns = new[part.first()]
                    order = np.argsort(columns)
                    named = columns[order]
            tables.append(AttributeTable(keys, 0 if part.program.edges else self._bits))
            moved.append(new)
        vocabularies, final = None, None
        if self._keep_names:
            vocabularies, final = self._renumbered(names, order)
        features = TemplateFeatures(
            self._templates, tables[0], tables[1], final, vocabularies, collisions, named
        )
        return features, None if moved[0] is moved[1] is None else (moved[0], moved[1])

    def _renumbered(
        self, names: list[AttributeNames], order: np.ndarray | None
    ) -> tuple[dict[str, Strings], tuple[AttributeNames, AttributeNames]]:
        """Vocabularies of what names use, in the order of first use, and names in their numbers."""
        owners = [
            _owners(part.program, called.template, self._slots)
            for part, called in zip(self._parts, names, strict=True)
        ]
        parts = [called.parts.copy() for called in names]
        texts: dict[str, Strings] = {}
        for row, source in enumerate(self._slots.sources):
            if source.lexicon:
                continue
            positions = [
                np.flatnonzero((owner == row) & (part >= 0))
                for owner, part in zip(owners, parts, strict=True)
            ]
            used = np.concatenate([p[at] for p, at in zip(parts, positions, strict=True)])
            old, first = np.unique(used, return_index=True)
            old = old[np.argsort(first)]
            strings = list(self._codes[source.needs()])
            new = np.zeros(len(strings), np.int32)
            new[old] = np.arange(len(old))
            for part, at in zip(parts, positions, strict=True):
                part[at] = new[part[at]]
            texts[source.needs()] = Strings.pack([strings[i] for i in old.tolist()])
        final = [
            AttributeNames(called.template, part, called.offsets)
            for called, part in zip(names, parts, strict=True)
        ]
        return texts, (final[0] if order is None else final[0].take(order), final[1])


class _Part:
    """The attributes of one program, so far."""

    def __init__(self, program: Program, keep_names: bool, bits: int) -> None:
        self.program = program
        self._keep_names, self._bits = keep_names, 0 if program.edges else bits
        self.growing = GrowingAttributes(len(program.seeds), keep_names)
        self._template: list[np.ndarray] = []
        self._parts: list[np.ndarray] = []
        # Of hashed attributes, those that came first on their number have names.
        self._first: list[np.ndarray] = []
        self._is_taken = np.zeros(1 << self._bits if self._bits else 0, bool)
        self._n_named = 0

    def encode(self, bound: Bound, base: np.ndarray, numbers: np.ndarray) -> AttributeIndices:
        before = self.growing.used
        rows = self.growing.encode(bound, self.program)
        if self._keep_names and self.growing.used > before:
            self._record(bound.plan(self.program), before, base, numbers)
        return rows

    def _record(self, plan: Any, before: int, base: np.ndarray, numbers: np.ndarray) -> None:
        """Records template and strings of the attributes that are new in this chunk."""
        new = np.arange(before, self.growing.used)
        if self._bits:
            keys, _ = self.growing.table()
            columns = (keys[before:] >> np.uint64(64 - self._bits)).astype(np.int64)
            _, first = np.unique(columns, return_index=True)
            first = np.sort(first[~self._is_taken[columns[first]]])[: MAX_NAMES - self._n_named]
            self._is_taken[columns] = True
            self._n_named += len(first)
            new = new[first]
            self._first.append(new)
        occurrences = FirstOccurrences(*(a[new] for a in self.growing.occurrences))
        offsets = _pointers(self.program, occurrences.template)
        parts = np.zeros(int(offsets[-1]), np.int32)
        unused = np.zeros(1, np.int32), np.zeros(len(base), np.int64)
        _record(plan, occurrences, self.program.several, offsets, parts, base, numbers, *unused)
        self._template.append(occurrences.template)
        self._parts.append(parts)

    def first(self) -> np.ndarray:
        """Of hashed attributes, those that have names."""
        return np.concatenate([np.zeros(0, np.int64), *self._first])

    def names(self, keep: np.ndarray) -> AttributeNames:
        """Names of the attributes that are kept, in the numbers of all strings."""
        template = np.concatenate([np.zeros(0, np.uint16), *self._template])
        parts = np.concatenate([np.zeros(0, np.int32), *self._parts])
        names = AttributeNames.of(self.program, template, parts)
        return names if self._bits or keep.all() else names.take(np.flatnonzero(keep))

    def check_fired(self, templates: Templates, source: str) -> None:
        for template, count in zip(
            self.program.templates, self.growing.fired.tolist(), strict=True
        ):
            if not count and not template.optional:
                raise HopefearError(
                    f"{templates.place(template)} fires on nothing in {source}; remove it, "
                    "or say optional = true where that may happen"
                )


def _owners(program: Program, template: np.ndarray, slots: Slots) -> np.ndarray:
    """For every part of a name the source it is a string of; -1 for what is no string."""
    sizes = part_sizes(program)
    rows = []
    for t in range(len(program.templates)):
        terms = program.slot[program.ptr[t] : program.ptr[t + 1]]
        term_rows = [slots.row_of(int(slot)) for slot in terms]
        rows.append(np.array([*term_rows, -1] if program.several[t] else term_rows, np.int32))
    flat = np.concatenate([np.zeros(0, np.int32), *rows])
    first_rows = np.cumsum([0, *sizes.tolist()])[:-1]
    counts = sizes[template]
    starts = np.concatenate([[0], np.cumsum(counts)])
    shift = np.repeat(first_rows[template] - starts[:-1], counts)
    return flat[np.arange(int(starts[-1])) + shift]
