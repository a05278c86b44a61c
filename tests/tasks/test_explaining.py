"""Explanations and span probabilities against all outputs there are."""

import itertools

import numpy as np
import pytest

from hopefear.core.interfaces import n_weights
from hopefear.data.schemes import spans
from hopefear.data.sequences import Column, Sentences
from hopefear.features.templates import TemplateFeatures, parse_templates
from hopefear.tasks.tag.model import SequenceModel, encoded
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

WORDS = ["a", "b", "a", "c"]
LABELS = {"bio": ("O", "B-X", "I-X"), "iob1": ("O", "B-X", "I-X", "I-Y"), "iobes": ("O", "S-X")}
LABELS["iobes"] += ("B-X", "I-X", "E-X")


def model_of(scheme, seed=0, order=1, sentences=2):
    text = Sentences(
        np.array([0, *itertools.accumulate([len(WORDS)] * sentences)]),
        {"word": Column.of(WORDS * sentences)},
    )
    templates = parse_templates('[[templates]]\nfeatures = ["word[0]", "word[-1]"]')
    features, attributes = TemplateFeatures.fit_encode(templates, text)
    labels = LABELS[scheme]
    rng = np.random.default_rng(seed)
    blank = SequenceModel(LinearPredictor(np.zeros(0)), labels, features, order, scheme)
    n = n_weights(blank.structure())
    weights = rng.normal(size=n).astype(np.float32)
    model = SequenceModel(LinearPredictor(weights), labels, features, order, scheme)
    return model, encoded(text, attributes, labels, None, features)


ALLOWED = [[None, ["B-X", "O"], None, ["O", "I-X"]]] * 2


@pytest.mark.parametrize("scheme", sorted(LABELS))
@pytest.mark.parametrize("allowed", [None, ALLOWED], ids=["any", "allowed"])
def test_span_probabilities_are_sums_over_outputs(scheme, allowed):
    if allowed is not None and scheme == "iobes":
        allowed = [[None, ["B-X", "O"], None, ["O", "E-X", "S-X"]]] * 2
    for seed in range(4):
        model, data = model_of(scheme, seed)
        tags = model.decoder(allowed=allowed).predict(data.rows)
        found = model.span_probabilities(data, tags, allowed=allowed)
        ranked = model.nbest(data, len(model.labels) ** len(WORDS), allowed=allowed)
        expected = []
        for i, outputs in enumerate(ranked):
            shift = i * len(WORDS)
            assert outputs.probabilities.sum() == pytest.approx(1.0)
            total = {}
            for path, p in zip(outputs.labels, outputs.probabilities, strict=True):
                one = spans(Column(model.labels, path), np.array([0, len(WORDS)]), scheme)
                for k in range(len(one.first)):
                    key = (int(one.first[k]) + shift, int(one.after[k]) + shift, one.kinds[k])
                    total[key] = total.get(key, 0.0) + p
            expected.append(total)
        for span in found:
            want = expected[span.first // len(WORDS)][span.first, span.after, span.kind]
            assert span.probability == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("allowed", [None, ALLOWED], ids=["any", "allowed"])
def test_contributions_add_up_to_the_gap_over_the_best_other_output(order, allowed):
    model, data = model_of("bio", 3, order)
    ranked = model.nbest(data, 81, allowed=allowed)
    for i, t in itertools.product(range(2), range(len(WORDS))):
        if allowed is not None and len(allowed[i][t] or "any") == 1:
            continue
        found = model.explain(data, i, t, allowed=allowed)
        outputs = ranked[i]
        best = outputs.labels[0]
        others = outputs.labels[:, t] != best[t]
        assert found.label == model.labels[best[t]]
        assert found.gap == pytest.approx(
            outputs.scores[0] - outputs.scores[others][0], rel=1e-4, abs=1e-5
        )
        assert sum(gain for _, gain in found.contributions) == pytest.approx(found.gap, abs=1e-5)


def test_a_template_file_without_b_learns_no_transitions():
    from hopefear.tasks.tag import task as tagging

    text = Sentences(
        np.array([0, 2, 4]),
        {"word": Column.of(["a", "b", "b", "a"]), "label": Column.of(["A", "B", "B", "A"])},
    )
    plain = tagging.train(
        tagging.dataset(text, parse_templates("U00:%x[0,0]\n")), "perceptron", epochs=3
    ).model
    assert not plain.transitions().any()
    usual = tagging.train(
        tagging.dataset(text, parse_templates("U00:%x[0,0]\nB\n")), "perceptron", epochs=3
    ).model
    assert usual.transitions().any()
