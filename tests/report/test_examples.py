"""Examples and errors: escaped whatever they hold, within the room there is, always the same."""

from html.parser import HTMLParser

import numpy
import pytest

from hopefear.errors import HopefearError
from hopefear.report import (
    ArcDiagram,
    BracketedText,
    ErrorExample,
    ErrorExamples,
    Evaluation,
    Findings,
    MarkedText,
    Page,
    Rival,
    WeighedText,
)
from hopefear.report.examples import view_html, view_text
from hopefear.report.notebook import Shown
from hopefear.tasks.base import Explanation, NBestList
from hopefear.tasks.showing import show

pytestmark = pytest.mark.interpreted

HOSTILE = "</article><script>alert('x')</script>\"&<!--\x00\ud800]]>"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


def hostile_case(k: int = 0) -> ErrorExample:
    words = [HOSTILE, "b"]
    return ErrorExample(
        {"sentence": k + 1, "wrong tokens": 2},
        MarkedText(words, [(0, 1, HOSTILE)], {(0, 1, HOSTILE)}),
        MarkedText(words, [(1, 2, HOSTILE)]),
        [HOSTILE, "type"],
        [HOSTILE, "b"],
        [Rival(HOSTILE, 0.5, True), Rival("x", 0.00001)],
        Explanation(HOSTILE, HOSTILE, 1.0, [(HOSTILE, 1.0), ("b", -0.5)]),
        k,
    )


VIEWS = [
    MarkedText([HOSTILE], [(0, 1, HOSTILE)], {(0, 1, HOSTILE)}),
    WeighedText([HOSTILE, "b"], [1.0, -1.0]),
    BracketedText(f"(S ({HOSTILE} a) b) ) (", f"(S ({HOSTILE} a))"),
    ArcDiagram([HOSTILE], [0], [HOSTILE]),
    HOSTILE,
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_hostile_text_stays_text(view):
    html = view_html(view)
    assert "script" not in Tags(html).tags
    assert html.encode("utf-8") and view_text(view) and view_text(view, True)


def test_hostile_errors_stay_text():
    html = Page(HOSTILE).cases(ErrorExamples([hostile_case(k) for k in range(3)], 3, 9)).html()
    assert Tags(html).tags.count("script") == 1 and "<!--" not in html.split("<main")[1]
    assert html.count("<article") == 3 and "3 of 9 examples have errors; all are here." in html


def test_brackets_that_the_other_tree_lacks_stand_out():
    right, wrong = "(S (NP (D the) (N cat)) (VP sat))", "(S (NP (D the)) (X (N cat)) (VP sat))"
    html = BracketedText(right, wrong).to_html("")
    assert html.count('class="b x"') == 1 and html.count("<span") == html.count("</span>")
    assert "cat" in html and "<i>N</i>" not in html
    assert BracketedText(right, right).to_html("").count(' x"') == 0


def test_words_get_the_gains_of_their_grams():
    text = WeighedText.of("Not good, at all.", [("not good", 1.0), ("all", -0.5)])
    assert text.gains == [0.5, 0.5, 0.0, -0.5]
    html = text.to_html("")
    assert html.count("<mark") == 3 and 'class="against"' in html


def test_a_page_of_10000_sentences_is_below_two_megabytes_and_always_the_same():
    words = [f"word{k}" for k in range(30)]
    gold = [(t, t + 1, f"L{t % 9}") for t in range(0, 30, 2)]
    reason = Explanation(
        "A", "B", 1.0, [(f"a feature with a long name {k}", 0.1) for k in range(99)]
    )
    rivals = [Rival(" ".join(words[:8]), 0.2) for _ in range(5)]
    cases = [
        ErrorExample(
            {"sentence": k, "n": 3},
            MarkedText(words, gold),
            MarkedText(words, gold[1:]),
            ["type"],
            ["L1", "L2"],
            rivals,
            reason,
            k,
        )
        for k in range(10_000)
    ]
    findings = Findings(ErrorExamples(cases, 10_000, 10_000, "sentences"))
    square = [[k] * 40 for k in range(40)]
    facts = {"confusion_matrix": {"labels": [f"L{k}" for k in range(40)], "counts": square}}
    made = [
        Evaluation("m", "d", {"F1": "1"}, facts=facts, findings=findings).page().html()
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert 500_000 < len(made[0].encode()) < 2_000_000
    assert "10,000 of 10,000 sentences have errors; the" in made[0]


def test_whole_numbers_are_heads_only_where_they_can_be():
    assert "<svg" in show(["It", "rains"], numpy.array([2, 0]))._repr_html_()
    assert "<svg" not in show(["It", "rains"], [1, 1])._repr_html_()


def test_notebooks_show_what_terminals_say():
    shown = show(["Ann", "left"], ["B-PER", "O"])
    assert repr(shown) == "[PER Ann] left" and "<mark" in shown._repr_html_()
    tree = show([("It", "PRP"), {"form": "rains"}], [2, 0])
    assert "<svg" in tree._repr_html_() and "rains" in repr(tree)
    assert "NN" in show(["a", "b"], ["NN", "VB"])._repr_html_()
    reason = Explanation("A", "B", 1.0, [(HOSTILE, 1.0)])
    nbest = NBestList([(["A"], 0.5)])
    assert "script" not in Tags(reason._repr_html_()).tags
    assert isinstance(show(reason), Shown) and nbest == [(["A"], 0.5)]
    with pytest.raises(HopefearError, match="no picture of int"):
        show(3)


def test_estimators_models_and_evaluations_have_html():
    from hopefear import Classifier, Tagger

    tagger = Tagger("perceptron", epochs=2)
    assert "not fitted" in tagger._repr_html_()
    tagger.fit([["a", "b"]], [["B-X", "O"]])
    html = tagger._repr_mimebundle_()["text/html"]
    assert "SequenceModel" in html and "perceptron" in html
    assert "<li" in tagger.predict_nbest([["a"]], n=2)[0]._repr_html_()
    assert "<mark" in tagger.predict_text("a b")[0]._repr_html_()
    model = Classifier("perceptron").fit(["good fun", "bad"], [HOSTILE[:20], "neg"]).model_
    assert "script" not in Tags(model._repr_html_()).tags
    evaluation = Evaluation("m", "d", {"F1": HOSTILE}, [("T", ["label", "F1"], [[HOSTILE, 1.0]])])
    assert "script" not in Tags(evaluation._repr_html_()).tags


def test_of_trees_that_are_not_drawn_the_errors_are_told(monkeypatch):
    from hopefear.report import error_examples as cases
    from hopefear.report.arcs import ArcDiagram

    tree = ArcDiagram(["<b>", "rains"], [2, 0], ["expl", "root"], gold_heads=[0, 1])
    monkeypatch.setattr(cases, "DRAWN", 1)
    html = ErrorExamples(
        [ErrorExample({"sentence": k}, None, tree) for k in range(3)], 3, 3
    ).to_html("e")
    assert html.count("<svg") == 1 and html.count("<ul") == 2 and "<b>rains</b> the root" in html
    assert html.count("<article") == 3 and "expl of 2 rains <mark>the root</mark>" in html
    assert "1 are drawn" in html and html.count("<u>&lt;b&gt;</u>") == 2
    long = ArcDiagram(["a"] * 61, [0] * 61, gold_heads=[0] * 60 + [1])
    html = ErrorExamples([ErrorExample({"sentence": 1}, None, long)], 1, 1).to_html("e")
    assert "<svg" not in html and html.count("<li>") == 1
    assert "<svg" in view_html(long)


def test_a_page_of_10000_trees_is_below_two_megabytes():
    from hopefear.report.arcs import ArcDiagram

    words, heads = [f"word{k}" for k in range(20)], [0, *range(1, 20)]
    wrong = [0, *range(1, 18), 1, 1]
    tree = ArcDiagram(words, heads, ["nmod"] * 20, ["NN"] * 20, wrong, ["nmod"] * 20)
    cases = [
        ErrorExample({"sentence": k, "wrong words": 2}, None, tree, at=k) for k in range(10_000)
    ]
    html = Page("trees").cases(ErrorExamples(cases, 10_000, 10_000, "sentences")).html()
    assert 1_000_000 < len(html.encode()) < 2_000_000
    shown = html.count("<article")
    assert shown > 2000 and f"the {shown:,} worst are here" in html
