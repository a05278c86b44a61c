"""svmlight parsed by several threads: the same as by one, bad lines included; and models of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopefear.cli import classify, main
from hopefear.data import svmlight
from hopefear.data.cached_examples import cache_examples
from hopefear.data.files import ReadReport
from hopefear.data.svmlight import iter_svmlight, read_svmlight
from hopefear.errors import HopefearError, InputError
from hopefear.features import IdentityFeatures

JOBS = (1, 2, 3, 8)


def lines_of(n: int, seed: int = 1) -> list[str]:
    """Lines with comments, blanks, ids that fall and ids that come twice."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        label = int(rng.choice([-1, 1]))
        ids = rng.integers(0, 60, int(rng.integers(0, 9)))
        ids = ids if i % 11 == 0 else np.unique(ids)
        pairs = " ".join(f"{j}:{rng.normal():.4g}" for j in [*ids, 70 + label])
        lines.append(f"{label} {pairs}{' # said' if i % 7 == 0 else ''}\n")
        lines += ["\n"] * (i % 13 == 0)
    return lines


def saved(folder: Path, lines: list[str]) -> Path:
    path = folder / "data.svm"
    path.write_text("".join(lines))
    return path


def arrays_of(data: Any) -> tuple[Any, ...]:
    return (*(a.tobytes() for a in data.rows), data.n_features, tuple(data.classes))


def everything(path: Path, n_jobs: int, way: Any = read_svmlight, **how: Any) -> tuple[Any, ...]:
    """What comes of a file: rows as far as they came, counts, and the message of its end."""
    report, rows, message = ReadReport(), [], ""
    try:
        data = way(path, report=report, n_jobs=n_jobs, **{"block_bytes": 256, **how})
        for each in [data] if way is read_svmlight else data:
            rows.append(arrays_of(each))
    except HopefearError as error:
        message = str(error)
    return rows, report, message


@pytest.mark.parametrize("way", [read_svmlight, iter_svmlight])
def test_same_rows_for_any_number_of_threads(tmp_path: Path, way: Any) -> None:
    path = saved(tmp_path, lines_of(300))
    first, *others = (everything(path, n, way) for n in JOBS)
    assert first[0] and first[1].unsorted and first[1].repeated and not first[2]
    assert all(other == first for other in others)
    known = {"features": IdentityFeatures(50), "classes": ("-1", "1")}
    first, *others = (everything(path, n, way, **known) for n in JOBS)
    assert first[1].unknown_features and all(other == first for other in others)


def test_lines_longer_than_blocks(tmp_path: Path) -> None:
    lines = lines_of(200)
    for place, pairs in ((150, 3000), (90, 300), (91, 500), (20, 100)):
        lines.insert(place, "1 " + " ".join(f"{j}:1" for j in range(pairs)) + "\n")
    path = saved(tmp_path, lines)
    whole = everything(path, 1, block_bytes=1 << 20)
    assert all(everything(path, n, block_bytes=64) == whole for n in JOBS)


BAD = {"pair": "1 3:x\n", "label": "spam 1:1\n", "class": "7 1:1\n", "sum": "1 3:9e14 3:9e14\n"}


@pytest.mark.parametrize("way", [read_svmlight, iter_svmlight])
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_same_messages_for_any_number_of_threads(
    tmp_path: Path, way: Any, kind: str, on_error: str
) -> None:
    lines = lines_of(300)
    for place in (290, 170, 171, 40):
        lines.insert(place, BAD[kind])
    path = saved(tmp_path, lines)
    how = {"classes": ("-1", "1"), "on_error": on_error}
    first, *others = (everything(path, n, way, **how) for n in JOBS)
    assert all(other == first for other in others)
    if on_error == "raise" or kind == "sum":
        assert f"{path}:41:" in first[2]
    else:
        numbers = [int(m.removeprefix(f"{path}:").partition(":")[0]) for m in first[1].messages]
        assert numbers == [41, 172, 173, 294] and first[1].skipped == 4


def test_the_first_bad_line_counts_and_rows_before_it_come(tmp_path: Path) -> None:
    lines = ["1 1:1\n", "-1 2:1\n", "7 1:1\n", "1 1:x\n"]
    path = saved(tmp_path, lines * 40)
    for block_bytes in (8, 24, 1 << 20):
        for n in JOBS:
            how = {"block_bytes": block_bytes, "n_jobs": n}
            with pytest.raises(InputError, match=r":3: .*label out of"):
                read_svmlight(path, classes=("-1", "1"), **how)
            for classes, line in ((None, 4), (("-1", "1"), 3)):
                blocks = iter_svmlight(path, classes=classes, **how)
                rows: list[int] = []
                with pytest.raises(InputError, match=f":{line}: "):
                    rows.extend(map(len, blocks))
                assert sum(rows) == line - 1


def test_damage_is_said_after_what_came_before_it(tmp_path: Path) -> None:
    path = tmp_path / "data.svm.gz"
    lines = lines_of(10_000) * 6
    path.write_bytes(gzip.compress("".join(lines).encode(), 1)[:-4000])
    how = {"block_bytes": 1 << 15}
    first, *others = (everything(path, n, iter_svmlight, **how) for n in JOBS)
    assert len(first[0]) > 20 and "cut short" in first[2]
    assert all(other == first for other in others)
    lines.insert(5, "1 1:x\n")
    path.write_bytes(gzip.compress("".join(lines).encode(), 1)[:-4000])
    assert all(":6: " in everything(path, n, **how)[2] for n in JOBS)


def test_caches_do_not_depend_on_threads(tmp_path: Path) -> None:
    path = saved(tmp_path, lines_of(400))
    caches = []
    for n in JOBS:
        cache_examples(path, tmp_path / f"cache{n}", block_bytes=256, n_jobs=n)
        caches.append({f.name: f.read_bytes() for f in (tmp_path / f"cache{n}").iterdir()})
    assert all(cache == caches[0] for cache in caches)


def trained(folder: Path, path: Path, *more: str) -> bytes:
    model = folder / "a.model"
    arguments = ["train", "classify", "--train", str(path), "--model", str(model), "--quiet"]
    assert main([*arguments, *more]) == 0
    return model.read_bytes()


@pytest.mark.parametrize("more", [("--stream",), ("--epochs", "2"), ("--epochs", "2", "--cache")])
def test_same_model_for_any_number_of_jobs(
    tmp_path: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, lines_of(6000))
    monkeypatch.setitem(classify.STREAM_BYTES, "svmlight", 4096)
    for reader in (read_svmlight, cache_examples):
        monkeypatch.setitem(reader.__kwdefaults__, "block_bytes", 4096)
    counts, plain = set[int](), svmlight.parallel

    def counted(items: Any, work: Any, n_jobs: int) -> Any:
        counts.add(n_jobs)
        return plain(items, work, n_jobs)

    monkeypatch.setattr(svmlight, "parallel", counted)
    models = set()
    for n in (1, 2, 3):
        folder = (str(tmp_path / f"caches{n}"),) if more[-1] == "--cache" else ()
        models.add(trained(tmp_path, path, *more, *folder, "--jobs", str(n)))
    assert len(models) == 1 and {1, 2, 3} <= counts


def test_a_stream_has_learnt_all_lines_before_a_bad_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in lines_of(3000) if line.strip()]
    path = saved(tmp_path, [*lines, "1 1:x\n", *lines])
    said = set()
    for n in ("1", "2"):
        model = tmp_path / f"{n}.model"
        arguments = ["train", "classify", "--train", str(path), "--model", str(model), "--quiet"]
        assert main([*arguments, "--stream", "--jobs", n]) != 0
        said.add(capsys.readouterr().err.replace(str(model), "MODEL"))
    assert len(said) == 1 and "what came before, 3,000 examples" in said.pop()
    assert (tmp_path / "1.model").read_bytes() == (tmp_path / "2.model").read_bytes()
