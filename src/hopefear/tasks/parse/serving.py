"""A parser that is asked in JSON."""

from __future__ import annotations

from typing import Any

from hopefear.data.treebank import Treebank
from hopefear.tasks.parse.answers import ParseAnswers, ParsedSentence, answer
from hopefear.tasks.parse.estimator import sentences_of
from hopefear.tasks.parse.explaining import arc_in_words
from hopefear.tasks.parse.model import ParseModel, needs_tags
from hopefear.tasks.serving import Marks, SentenceService

# What a parser is shown that needs tags: the first two columns of tags of English treebanks.
_TAGGED = [
    {"form": "Dogs", "upos": "NOUN", "xpos": "NNS"},
    {"form": "chase", "upos": "VERB", "xpos": "VBP"},
    {"form": "cats", "upos": "NOUN", "xpos": "NNS"},
    {"form": ".", "upos": "PUNCT", "xpos": "."},
]


class ParseService(SentenceService):
    """Heads and relations of words.

    Examples
    --------
    >>> from hopefear import Parser
    >>> parser = Parser("perceptron", order=1, epochs=2).fit([["It", "rains"]], [[2, 0]])
    >>> service = ParseService(parser.model_)
    >>> (answer,) = service.predict([service.read("It rains")])
    >>> [token["head"] for token in answer["sentences"][0]["tokens"]]
    [2, 0]
    """

    # All pairs of words are looked at, and a parse cannot be given up once it has begun.
    longest = 256

    text = True
    example: Any = "The quick brown fox jumps over the lazy dog."

    def __init__(self, model: ParseModel, tagger: Any = None) -> None:
        super().__init__(model if tagger is None else model.with_tagger(tagger))
        model = self.model
        tags = ""
        if model.taggers is None and needs_tags(model.features):
            self.text, self.example = False, _TAGGED
            tags = "; a parser that has learned from tags needs taggers: train it with --tagger"
        self.forms = (
            f"a text{tags}",
            "a list of words, each a string, a pair of word and tag, or an object with form, "
            "lemma, upos, xpos and feats",
        )

    @property
    def tokenizer(self) -> Any:
        return self.model.tokenizer

    def word(self, token: Any) -> str:
        if isinstance(token, str):
            return token
        return str(token["form"] if isinstance(token, dict) else token[0])

    def check(self, sentence: list[Any]) -> None:
        sentences_of([sentence])

    def best(self, sentences: list[list[Any]]) -> list[Marks]:
        return [marks(tree) for tree in self._answer(sentences)]

    def ranked(self, sentences: list[list[Any]], n: int) -> list[list[Marks]]:
        return [[marks(tree) for tree in ranked] for ranked in self._answer(sentences, n)]

    def _answer(self, sentences: list[list[Any]], n: int | None = None) -> ParseAnswers:
        return answer(self.model, Treebank.bare(sentences_of(sentences)), n)

    def reason(self, sentence: list[Any], t: int, top: int) -> dict[str, Any]:
        reason = self.model.explain(Treebank.bare(sentences_of([sentence])), 0, t)
        words = [self.word(token) for token in sentence]
        label, rival = (arc_in_words(words, arc) for arc in (reason.label, reason.runner_up))
        return reason._replace(label=label, runner_up=rival).facts(top)

    def search_steps(self, size: int, n: int) -> int:
        # Measured: the best tree takes about the square, the n best n times the fourth power.
        return size * (20 + size // 5 + n) + n * size**4 // 20_000

    def reason_steps(self, size: int) -> int:
        return 25_000 + 1600 * size


def marks(tree: ParsedSentence) -> Marks:
    """What is said of a sentence."""
    record = tree.as_dict()
    tokens = record.pop("tokens")
    columns = {name: [token[name] for token in tokens] for name in tokens[0] if name != "text"}
    return Marks(columns, facts=record)
