"""Models side by side: which examples are shown, what of them, and who was right."""

from itertools import permutations

import numpy as np
import pytest

from hopefear.report import (
    ArcDiagram,
    BracketedText,
    ErrorExample,
    Evaluation,
    Judgement,
    MarkedText,
    ModelComparison,
    disagreements,
)
from hopefear.report.error_examples import Disagreement, Disagreements

pytestmark = pytest.mark.interpreted
HOSTILE = "<script>alert(1)</script>\"'&"


def judgement(errors, name):
    def cases(order):
        return [
            ErrorExample(
                {"sentence": i + 1, "wrong tokens": int(errors[i])},
                MarkedText([HOSTILE, "b"], [(0, 1, HOSTILE)]),
                MarkedText([HOSTILE, "b"], [(0, 2, name)] if errors[i] else [(0, 1, HOSTILE)]),
                [HOSTILE] if errors[i] else [],
                [name],
                at=i,
            )
            for i in order.tolist()
        ]

    return Judgement(np.array(errors, float), cases, "sentences", "worst", 400)


def compared(errors):
    return disagreements({name: judgement(own, name) for name, own in errors.items()})


def test_those_come_first_that_one_has_right_and_another_wrong():
    draw = np.random.default_rng(1)
    errors = {name: draw.integers(0, 4, 60) * draw.integers(0, 2, 60) for name in "abc"}
    shown = compared(errors)
    table = np.stack(list(errors.values()), axis=1)
    wrong = [i for i in range(60) if table[i].any()]
    mixed = [i for i in wrong if not table[i].all()]
    assert (shown.wrong, shown.differ, shown.total) == (len(wrong), len(mixed), 60)
    order = [contest.at for contest in shown.cases]
    assert sorted(order) == wrong and sorted(order[: len(mixed)]) == mixed
    spreads = [int(np.ptp(table[i])) for i in order[: len(mixed)]]
    assert spreads == sorted(spreads, reverse=True)
    for contest in shown.cases:
        own = dict(zip("abc", table[contest.at], strict=True))
        pairs = [f"{a} right, {b} wrong" for a, b in permutations("abc", 2)
                 if own[b] and not own[a]]  # fmt: skip
        assert [who for who in contest.who if "right" in who] == pairs
        assert ("all wrong" in contest.who) == all(own.values())
        assert set(contest.wrong) == {name for name, error in own.items() if error}
    for (j, a), (k, b) in permutations(enumerate("abc"), 2):
        assert shown.ahead[j][k] == sum((errors[a] == 0) & (errors[b] > 0))


def test_right_answers_and_equal_ones_are_written_once():
    html = compared({"a": [1, 0, 2], "b": [0, 0, 1]}).to_html("p")
    assert html.count("<article") == 2 and html.count("as it should be") == 1
    same = ErrorExample({"sentence": 1, "wrong words": 1}, None, ArcDiagram(["a", "b"], [0, 1]))
    html = Disagreement({"a": same, "b": same}, [1.0, 1.0]).to_html("p")
    assert html.count("<svg") == 1 and "as a<" in html
    gold = BracketedText("(S (NP a))", "(S (VP a))")
    case = ErrorExample({"list": "x"}, gold, BracketedText("(S (VP a))", "(S (NP a))"))
    html = Disagreement({"a": case}, [1.0]).to_html("p")
    assert html.count('class="b x"') == 1  # what the model has, not what it lacks


def test_a_class_is_shown_as_a_word_and_its_text_once():
    case = ErrorExample(
        {"example": 3, "p(gold)": 0.25, "gold": "ham", "predicted": HOSTILE}, None, "text"
    )
    html = Disagreement({"a": case, "b": case}, [1.0, 0.0]).to_html("p")
    assert html.count(">text<") == 1 and html.count("alert") == 2 and "<script" not in html
    assert "p(gold) 0.25" in html and "b: right" in html


def test_labels_of_all_models_stand_in_one_table():
    models = {
        name: Evaluation(
            name,
            "",
            {"F1": f"{f1} %", HOSTILE: HOSTILE},
            [("Types", ["type", "F1", "gold"], [["PER", f1, 7], [HOSTILE, 0.0, 1]])],
            {"f1": f1, "f1_interval": [f1 - 1, f1 + 1], "nnz": 1000},
            origin={"seed": 1, "learner": name},
        )
        for name, f1 in {"a": 80.0, HOSTILE: 90.0}.items()
    }
    test = {"difference": -10.0, "low": -12.0, "high": -8.0, "p_value": 0.0005}
    comparison = ModelComparison(
        "Two", "x", models, "f1", "F1", tests={"a": test}, contests=compared({"a": [1], "b": [0]})
    )
    html = comparison.page().html()
    assert html == comparison.page().html() and html.count("<script") == 1
    for text in ("−10.00", "−12.00 to −8.00", "0.0005", "79.00 to 81.00", "+10.00"):
        assert text in html
    assert "<strong>90.00</strong>" in html and "What differs." in html


def test_ten_models_of_ten_thousand_sentences_stay_below_two_megabytes():
    words = [f"word{k}" for k in range(30)]
    draw = np.random.default_rng(1)

    def own(name):
        errors = draw.integers(0, 3, 10_000).astype(float)

        def cases(order):
            return [
                ErrorExample(
                    {"sentence": i}, MarkedText(words, []), MarkedText(words, [(i % 9, 12, name)])
                )
                for i in order.tolist()
            ]

        return Judgement(errors, cases, "sentences", "worst", 10_000)

    shown = disagreements({f"model {k}": own(f"L{k}") for k in range(10)})
    models = {name: Evaluation(name, "", {}, facts={"f1": 1.0}) for name in shown.cases[0].cases}
    page = ModelComparison("Ten", "", models, "f1", "F1", contests=shown).page().html()
    assert 500_000 < len(page.encode()) < 2_000_000 and isinstance(shown, Disagreements)
