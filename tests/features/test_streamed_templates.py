"""Templates over pieces of a text: the numbers, names and vocabularies of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError
from hopefear.features.templates import TemplateFeatures, parse_templates
from hopefear.features.templates.streamed import StreamedTemplates

pytestmark = pytest.mark.interpreted

EDGES = """
[[templates]]
features = ["word[0]", "word[-1] pos[0]"]
[[templates]]
edges = true
features = ["pos[0]", "pos[-1] pos[0]"]
"""


class Text:
    """Random sentences, in pieces or as a whole."""

    def __init__(self, n: int = 250) -> None:
        rng = np.random.default_rng(0)
        self.words = [f"w{int(i)}" for i in rng.zipf(1.5, n) % 60]
        self.tags = [f"p{i}" for i in rng.integers(0, 6, n)]
        self.starts = np.unique(np.concatenate([[0, n], rng.integers(1, n, 50)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, begin: int, end: int) -> Sentences:
        first, last = self.starts[begin], self.starts[end]
        columns = {
            "word": Column.of(self.words[first:last]),
            "pos": Column.of(self.tags[first:last]),
        }
        return Sentences(self.starts[begin : end + 1] - first, columns)


@pytest.mark.parametrize("features", ["pos", "chunking", "edges"])
@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"hash_bits": 6}, {"keep_names": False}])
def test_pieces_give_the_map_of_the_whole(features: str, options: dict) -> None:
    text = Text()
    templates = parse_templates(EDGES) if features == "edges" else features
    whole, attributes = TemplateFeatures.fit_encode(templates, text.part(0, len(text)), **options)
    stream = StreamedTemplates(templates, **options)
    pieces = [stream.encode(text.part(a, min(a + 7, len(text)))) for a in range(0, len(text), 7)]
    streamed, numbers = stream.finish()
    assert streamed.to_header() == whole.to_header()
    arrays, others = whole.arrays(), streamed.arrays()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert np.array_equal(array, others[name]) and array.dtype == others[name].dtype, name
    for name, new in zip(("indices", "edge_indices"), numbers or (None, None), strict=True):
        indices = np.concatenate([getattr(piece, name) for piece in pieces])
        if new is not None:
            indices = new[indices]
        assert np.array_equal(indices[indices >= 0], getattr(attributes, name))


def test_what_fires_on_nothing_is_said() -> None:
    stream = StreamedTemplates(parse_templates('[[templates]]\nfeatures = ["word[9]"]'))
    with pytest.raises(HopefearError, match="there is no text"):
        stream.finish()
    assert stream.needs == ()
    stream = StreamedTemplates(parse_templates(EDGES))
    words = {"word": Column.of(["a"]), "pos": Column.of(["N"])}
    stream.encode(Sentences(np.array([0, 1]), words))  # one token, and no edge
    assert stream.needs == ("word", "pos")
    with pytest.raises(HopefearError, match="fires on nothing"):
        stream.finish()


def test_hashed_maps_need_no_text() -> None:
    text = Text().part(0, 5)
    features = TemplateFeatures.hashed("pos", text.columns, 8)
    known, attributes = TemplateFeatures.fit_encode("pos", text, hash_bits=8, keep_names=False)
    assert np.array_equal(features.encode(text).indices, attributes.indices)
    assert features.size == known.size == 256 and features.name(3) == "#3"
    with pytest.raises(HopefearError, match="pairs of labels"):
        TemplateFeatures.hashed(parse_templates(EDGES), text.columns, 8)
