"""The card of a model: a page of Markdown for those who get the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hopefear.tasks import TASKS

# What no file can know, and whoever hands the model on should say.
_ASKED = (
    ("Language and domain", "What texts is it for? Where were the training texts from?"),
    ("Licence", "Of the model, and of the data it was trained on."),
    ("Limits", "Where does it fail? Who must not be judged by it?"),
)
_TOP = 5


def card(facts: Mapping[str, Any], words: Mapping[str, Any]) -> str:
    """The card, from the facts of ``inspect`` and the same in words.

    >>> about = {"learner": "sapo", "data": {"source": "train.txt", "digest": "ab"}}
    >>> facts = {"model": "m.model", "task": "tag", "signature": "s", "about": about}
    >>> print(card(facts, {"features": "3"}).splitlines()[0])
    # m.model
    """
    return "\n".join(_lines(facts, words)) + "\n"


def _lines(facts: Mapping[str, Any], words: Mapping[str, Any]) -> Iterator[str]:
    about, name = facts["about"], facts["model"]
    yield f"# {_plain(name)}"
    yield ""
    kind = "network" if "layers" in facts else "linear model"
    yield (
        f"A {kind} of the task `{facts['task']}` ({TASKS[facts['task']].words}), made by hopefear "
        f"with the learner `{about.get('learner', 'unknown')}`."
    )
    yield from _section("What it is", _table(("", ""), _rows(words)))
    yield from _section("How good it is", _scores(about.get("training", {}).get("history", ())))
    yield from _section("What it weighs", _heaviest(facts.get("top")))
    yield from _section(
        "How to use it",
        (
            f"    hopefear predict --model {_plain(name)} --input FILE",
            f"    hopefear inspect --model {_plain(name)}",
            "",
            "From Python: `hopefear.load(path).predict(…)`. The file holds numbers and names, "
            "no code; a changed byte is refused.",
        ),
    )
    for title, question in _ASKED:
        yield from _section(title, (f"*To be filled in: {question}*",))


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _rows(words: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in words.items() if value is not None]


def _scores(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Scores on held-out data, the best pass and the last."""
    scored = [event for event in history if event.get("dev")]
    if not scored:
        return ["It was trained without held-out data: measure it on data of your own with "
                "`hopefear evaluate`."]  # fmt: skip
    names = [name for name, value in scored[0]["dev"].items() if isinstance(value, float)]
    rows = [
        (str(event["epoch"]), *(_score(event["dev"].get(name)) for name in names))
        for event in scored
    ]
    heads = ("pass", *names)
    chosen = "On held-out data that also chose the pass, so somewhat better than on new data."
    return [chosen, "", *_table(heads, rows[-10:])]


def _score(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "–"


def _heaviest(top: Any) -> list[str]:
    """The heaviest features of each label, or of all."""
    if not top:
        return []
    if isinstance(top, Mapping):
        rows = [(label, ", ".join(_code(n) for n, *_ in r[:_TOP])) for label, r in top.items()]
        return _table(("label", "features that speak for it most"), rows)
    rows = [(_code(str(row[0])), f"{float(row[-1]):.4f}") for row in top[: 4 * _TOP]]
    return _table(("feature", "weight"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [
        list(map(_plain, heads)),
        ["---"] * len(heads),
        *([_plain(c) for c in r] for r in rows),
    ]
    return [f"| {' | '.join(row)} |" for row in cells]


def _code(name: str) -> str:
    return f"`{name.replace('`', ' ')}`"


def _plain(text: str) -> str:
    """Text that is one cell of a table, and no markup.

    >>> print(_plain("a|b<i>"))
    a\\|b&lt;i>
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
