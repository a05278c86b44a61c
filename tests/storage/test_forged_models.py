"""Model files with right hashes and wrong content: refused by one error of ours, or they work.

Every kind of model is changed at random places of its header and arrays; what is still a model
must answer, be shown and be written again.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tomllib

import classes as classify
import numpy as np
import pytest

from hopefear import storage
from hopefear.cli import inspect
from hopefear.cli.card import card
from hopefear.cli.config import config_of
from hopefear.cli.console import Console
from hopefear.cli.surface import surface_of
from hopefear.cli.tune import weights as tuned
from hopefear.data.generators import candidate_lists, sparse_linear
from hopefear.data.sequences import Column, Sentences
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError, ModelError
from hopefear.features.templates import parse_templates
from hopefear.report.notebook import model_html
from hopefear.tasks import model_from_parts, service_of
from hopefear.tasks.answers import Question
from hopefear.tasks.base import train as train_task
from hopefear.tasks.rerank.answers import answer
from hopefear.tasks.rerank.prepare import dataset as lists_dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear.tasks.tag import task as tag
from hopefear.training.events import plain
from hopefear.translation.weights import Weights

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:(overflow|invalid|divide):RuntimeWarning"),
]
MUTATIONS = 200

ROWS = sparse_linear(20, 12, per_row=(3, 6), true_weights=6, seed=2).dataset()
THREE = SparseDataset.from_csr(np.eye(6), list("abcabc"))
LISTS = candidate_lists(3, candidates=3, features=9, seed=1)
TEXT = Sentences(
    np.array([0, 3, 5]),
    {"word": Column.of(["the", "cat", "sleeps", "a", "dog"]), "label": Column.of("DNVDN")},
)
EDGES = parse_templates(
    '[[templates]]\nfeatures = ["word[-1]", "suffix(word,1..2)"]\n'
    '[[templates]]\nedges = true\nfeatures = ["word[0]"]'
)
WORDS = parse_templates('[[templates]]\nfeatures = ["word[0]", "word[-1] word[0]", "bias"]')


def tagger(features=WORDS, learner="perceptron", params=None, **options):
    data = tag.dataset(TEXT, features, **options.pop("data", {}))
    return tag.train(data, learner, params, epochs=1, scheme=None, **options).model, TEXT


KINDS = {
    "binary": lambda: (classify.train(ROWS, "perceptron", epochs=1).model, ROWS),
    "classes": lambda: (classify.train(THREE, "arow", epochs=1).model, THREE),
    "voted": lambda: (classify.train(THREE, "vrda", {"averaging": "voted"}).model, THREE),
    "tags": tagger,
    "edges": lambda: tagger(EDGES, order=2),
    "hashed": lambda: tagger(EDGES, data={"hash_bits": 5}),
    "unnamed": lambda: tagger(EDGES, data={"keep_names": False}),
    "voted tags": lambda: tagger(EDGES, params={"averaging": "voted"}),
    "lists": lambda: (
        train_task(Reranking(), lists_dataset(LISTS), "perceptron", epochs=1).model,
        LISTS,
    ),
    "voted lists": lambda: (
        train_task(
            Reranking(), lists_dataset(LISTS), "vrda", {"averaging": "voted"}, epochs=1
        ).model,
        LISTS,
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def forge(request):
    model, data = KINDS[request.param]()
    return *storage.unpack(model.to_bytes(), kind="model"), data


def use(header, arrays, data):
    """Everything that a model is asked for; whether it was one."""
    try:
        task = header.get("task")
        model = model_from_parts("forged.model", header, arrays)
    except ModelError:
        return False
    try:
        show(task, model)
        if task == "classify":
            assert set(model.predict(data)) <= set(model.classes)
            model.probabilities(data)
        elif task == "tag":
            assert set(model.tag(data).texts()) <= set(model.labels)
            model.nbest(data, 2)
        else:
            assert model.predict(data).shape == (len(data),)
            answer(model, data, Question(3, True)).as_dicts()
        type(model).from_bytes(model.to_bytes())
    except HopefearError:
        return False
    return True


def show(task, model):
    """What inspect does, without printing it."""
    helper = surface_of(task)
    facts = helper.model_facts(model, 3)
    facts |= {"nnz": model.nnz, "density": 0.0, "signature": "", "about": dict(model.about)}
    facts |= {"model": "", "bytes": 1, "task": task}
    json.dumps(plain(facts), allow_nan=False).encode()
    words = inspect._in_words(facts, 1, helper.facts_in_words(facts))
    assert card(facts, words).startswith("#")
    tomllib.loads(config_of(model.about, task))
    assert model_html(model)
    json.dumps(service_of(model).facts())


def places(value, path=()):
    """Every place of a header."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


DEEP = json.loads("[" * 30 + "]" * 30)
VALUES = (
    *(
        None,
        [],
        {},
        "",
        "x",
        "\udc80",
        0,
        -1,
        1,
        2,
        2**31,
        10**9,
        2**63,
        10**300,
        1e300,
        -0.5,
        True,
    ),
    *(DEEP, [None], [[1]], ["a", 1], {"a": []}, "\n\t\0", ["x"] * 3, {"kind": "identity"}),
)


HISTORY = [{"epoch": k, "train": {"loss": 0.5}, "dev": {"f1": 50.0 + k}} for k in (1, 2)]


def changed(rng, header, where):
    header = copy.deepcopy(header)
    *path, last = where[rng.integers(1, len(where))]
    inner = header
    for key in path:
        inner = inner[key]
    if rng.random() < 0.15:
        del inner[last]
    else:
        inner[last] = VALUES[rng.integers(len(VALUES))]
    return header


def broken(rng, arrays):
    arrays = dict(arrays)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array, how = arrays[name].copy(), rng.integers(7)
    if how == 0:
        del arrays[name]
        return arrays
    if how == 1:
        array = array[:-1]
    elif how == 2:
        array = np.concatenate([array, array])
    elif how == 3:
        array = array[:, None] if rng.random() < 0.5 else array[:0]
    elif how == 4:
        array = array.astype([np.float64, np.int32, np.uint64, np.uint8][rng.integers(4)])
    elif array.size:
        info = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
        extremes = [info.min, info.max, 0, 1, min(array.size, info.max)]
        array.flat[rng.integers(array.size)] = extremes[rng.integers(5)]
    return arrays | {name: array}


def test_changes_at_random(forge):
    header, arrays, data = forge
    assert use(header, arrays, data), "the model itself works"
    rng, where, refused = np.random.default_rng(7), list(places(header)), 0
    for _ in range(MUTATIONS):
        if rng.random() < 0.6:
            forged = changed(rng, header, where), arrays
        else:
            forged = header, broken(rng, arrays)
        try:
            packed = storage.pack(*forged)
        except HopefearError:  # what no file of ours may hold is not written
            refused += 1
            continue
        refused += not use(*storage.unpack(packed, kind="model"), data)
    assert refused > MUTATIONS // 4


def test_every_field_must_be_of_its_type(forge):
    header, arrays, data = forge
    for key in header:
        for value in ([], {}, None, "x", 7, -1.5, 10**400, DEEP, True):
            if value != header[key]:
                use({**header, key: value}, arrays, data)
        use({k: v for k, v in header.items() if k != key}, arrays, data)
    for key in ("task", "signature", "features"):
        assert not use({**header, key: []}, arrays, data)
    for key in ("data", "training", "reading", "estimator", "parameters", "learner"):
        assert not use({**header, "about": {key: []}}, arrays, data)


def test_what_a_model_says_of_its_making(forge):
    header, arrays, data = forge
    about = copy.deepcopy(header["about"])
    about["training"] |= {"history": HISTORY, "best_epoch": 2, "last_nnz": 3}
    about |= {"config": {"epochs": 2, "ngrams": [1, 2]}, "given": {"rate": "0.5"}}
    about["reading"] = {"format": "tsv", "column": "label", "columns": ["word", "label"]}
    header = {**header, "about": about}
    assert use(header, arrays, data)
    rng, where = np.random.default_rng(11), [p for p in places(header) if p[:1] == ("about",)]
    for _ in range(MUTATIONS):
        try:
            packed = storage.pack(changed(rng, header, where), arrays)
        except HopefearError:
            continue
        use(*storage.unpack(packed, kind="model"), data)
    for event in ("x", [], {}, {"epoch": 1, "dev": []}, {"dev": {"f1": 1.0}}, {"epoch": "1"}):
        about["training"]["history"] = [*HISTORY, event]
        assert not use(header, arrays, data)


def test_what_no_header_holds(forge):
    header, arrays, _ = forge
    with pytest.raises(HopefearError, match="half of a surrogate pair"):
        storage.pack({**header, "signature": "\udc80"}, arrays)
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(HopefearError, match="more than 40 lists or objects"):
        storage.pack({**header, "about": {"x": deep}}, arrays)


WEIGHTS = Weights(
    (("LM0", 1), ("TM0", 2)),
    [0.5, 0.25, -0.25],
    {"wt_a~b": 0.1},
    {"a ||| b": 0.5},
    {"learner": "mert", "scores": {"bleu": 30.0}, "signature": "s"},
)


def look_at(path):
    """Everything that weights are asked for; whether they were some."""
    try:
        weights = Weights.read(path)
    except HopefearError:
        return False
    console = Console(quiet=True)
    tuned.show(console, json.loads(json.dumps(plain(tuned.facts(weights, "w", 3)))))
    assert weights.nnz >= 0
    weights.write(path, "json")
    assert Weights.read(path) == weights
    return True


def test_weights_in_json(tmp_path):
    path = tmp_path / "w.json"
    WEIGHTS.write(path)
    record = json.loads(path.read_text())
    rng, where, refused = np.random.default_rng(3), list(places(record)), 0
    for _ in range(MUTATIONS):
        path.write_text(json.dumps(changed(rng, record, where)))
        refused += not look_at(path)
    assert refused > MUTATIONS // 4


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "hopefear-weights", "dense": {"a": NaN, "b": [1, }}',
        '{"format": "hopefear-weights", "dense": {"a": NaN}',
        '{"format": "hopefear-weights", "dense": {"a": [NaN, 1}',
        '{"format": "hopefear-weights", "sparse": {"\\udc80": 1}}',
        '{"format": "hopefear-weights", "dense": {"a": 1}, "about": ' + "[" * 90 + "]" * 90 + "}",
        '{"format": "hopefear-weights", "dense": {"a": 1' + "0" * 5000 + "}}",
        '{"format": "hopefear-weights", "dense": {"a": 1}, "about": {"scores": {"bleu": "x"}}}',
        '{"format": [], "dense": {"a": 1}}',
        "{" * 100_000,
        "#: about " + "[" * 100_000 + "\na= 1\n",
    ],
    ids=range(10),
)
def test_weights_that_are_none(tmp_path, text):
    path = tmp_path / "w.json"
    path.write_text(text)
    assert not look_at(path)


HUGE = 10**9
CLAIM = """
import re, sys
from pathlib import Path
from hopefear.cli import main
status = main(sys.argv[1:])
peak = re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())
print(status, int(peak[1]) // 1024)  # getrusage counts the process that started this one, too
"""


@pytest.mark.parametrize("kind", ["identity", "hashed"])
def test_a_small_file_that_claims_a_thousand_million_features(kind, tmp_path):
    model, _ = KINDS["binary"]()
    header, arrays = storage.unpack(model.to_bytes(), kind="model")
    size = HUGE if kind == "identity" else 2**30
    header["features"] = {"kind": "identity", "size": size, "named": False}
    if kind == "hashed":
        names = {"names_text": np.zeros(0, np.uint8), "names_offsets": np.zeros(1, np.int64)}
        arrays |= {f"features.{name}": array for name, array in names.items()}
        arrays["features.columns"] = np.zeros(0, np.int32)
        header["features"] = {"kind": "hashed", "order": 1, "bits": 30, "collisions": 0.0}
    header["structure"]["n_features"] = size
    arrays["weights.size"] = np.array([size + (header["structure"]["bias"] != 0)])
    storage.save(tmp_path / "huge.model", "model", header, arrays)
    assert (tmp_path / "huge.model").stat().st_size < 4500
    rows = {"identity": "1 3:1 999999999:2\n", "hashed": "1\thope and fear\n"}[kind]
    (tmp_path / "rows").write_text(rows)
    for verb in (["inspect", "--json"], ["predict", "--input", "rows"]):
        argv = [verb[0], "--model", "huge.model", *verb[1:]]
        env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        ran = subprocess.run(
            [sys.executable, "-c", CLAIM, *argv], cwd=tmp_path, env=env, capture_output=True,
            text=True, timeout=60,
        )  # fmt: skip
        status, megabytes = map(int, ran.stdout.splitlines()[-1].split())
        assert (status, ran.stderr) == (0, ""), ran.stderr
        assert megabytes < 200, f"{verb[0]} took {megabytes} MB"
