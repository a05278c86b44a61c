"""Tag with what `hopefear inspect --model M --export M.json` wrote: nothing but Python."""

import itertools
import re

KINDS = ((str.isupper, "X"), (str.isalpha, "x"), (str.isdigit, "d"))
VIEWS = {
    "lower": lambda s: [s.lower()],
    "normal": lambda s: ["".join("#" if c.isdigit() else c for c in s.lower())],
    "shape": lambda s: ["".join(next((x for test, x in KINDS if test(c)), c) for c in s)],
    "short_shape": lambda s: [re.sub(r"(?s)(.)\1+", r"\1", VIEWS["shape"](s)[0])],
    "length": lambda s: [str(len(s)) if len(s) < 10 else "10+"],
    "prefix": lambda s, n: [s[:n]] * (len(s) >= n),
    "suffix": lambda s, n: [s[-n:]] * (len(s) >= n),
    "substrings": lambda s, low, high: dict.fromkeys(
        s[i:j] for i in range(len(s)) for j in range(i + low, min(i + high, len(s)) + 1)
    ),
    "match": lambda s, rows: [
        word for word, views, p in rows if re.fullmatch(p, VIEWS[views](s)[0] if views else s, re.S)
    ],
}


def strings(model, cells, views, k):
    if not 0 <= k < len(cells):
        return [f"_B{k}" if k < 0 else f"_B+{k - len(cells) + 1}"] * model["padding"]
    texts = [] if cells[k] is None else [cells[k]]
    for name, *args in views:
        texts = [new for text in texts for new in VIEWS[name](text, *args)]
    return texts


def attributes(model, rows, k, n):
    if not model["templates"]:
        yield from rows["attributes"][k].items()
    for t in model["templates"]:
        column, offset = t["number"] or (None, 0)
        if (t["first"] and k) or (t["last"] and k < n - 1) or not 0 <= k + offset < n:
            continue
        terms = [strings(model, rows[name], views, k + by) for name, views, by in t["terms"]]
        for parts in itertools.product(*terms):
            value = float(rows[column][k + offset]) if column else 1.0
            yield "\x1f".join([t["id"], *parts]), value


def tag(model, rows):
    """Labels of one sentence, of which every column is a list: {"word": ["It", "rains"]}."""
    n, size = len(next(iter(rows.values()))), len(model["labels"])
    for name, (column, views, entries) in model["lexicons"].items():
        words, labels = [strings(model, rows[column], views, k)[0] for k in range(n)], []
        while len(labels) < n:
            ends = [len(e) for e in entries if words[len(labels) : len(labels) + len(e)] == e]
            labels += ["B"] + ["I"] * (max(ends) - 1) if ends else [None]
        rows = {**rows, name: labels}
    paths = [(0.0, (size,))]  # best score and labels so far, by the last label; first the start
    for k in range(n):
        nodes, edges = [0.0] * size, {}
        for name, value in attributes(model, rows, k, n):
            for c, w in model["weights"].get(name, ()):
                nodes[c] += value * w
            for b, c, w in model["edge_weights"].get(name, ()):
                edges[b, c] = edges.get((b, c), 0.0) + value * w
        pair = lambda b, c: model["transitions"][b][c] + edges.get((b, c), 0.0)  # noqa: E731, B023
        steps = [[(s + pair(p[-1], c) + nodes[c], (*p, c)) for s, p in paths] for c in range(size)]
        paths = [max(step, key=lambda path: path[0]) for step in steps]
    best = max(paths, key=lambda path: path[0] + model["end"][path[1][-1]] if n else 0.0)
    return [model["labels"][c] for c in best[1][1:]]
