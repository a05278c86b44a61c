"""The command as a process: speed, signals, full disks, broken pipes, and twenty kills."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hopefear as package
from hopefear.cli import main
from hopefear.data.generators import sparse_linear
from hopefear.data.write_svmlight import write_svmlight

SOURCE = str(Path(package.__file__).parents[1])
COMMAND = [sys.executable, "-m", "hopefear"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def environment() -> dict[str, str]:
    paths = filter(None, [SOURCE, os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def hopefear(*argv, timeout=120, **more):
    """Run the command in a process of its own."""
    return subprocess.run([*COMMAND, *map(str, argv)], capture_output=True, text=True,
                          timeout=timeout, env=environment(), **more)  # fmt: skip


def cpu_seconds(*argv, times=3) -> float:
    """The least time on the processor of some runs."""
    found = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert hopefear(*argv).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data and a model; the kernels of the default learner are compiled."""
    place = tmp_path_factory.mktemp("process")
    for classes in (2, 3):
        problem = sparse_linear(
            400, 150, per_row=(5, 15), true_weights=60, classes=classes, seed=classes
        )
        write_svmlight(place / f"train{classes}.svm", problem.dataset())
    train = ["train", "classify", "--quiet", "--train", str(place / "train2.svm")]
    assert main([*train, "--model", str(place / "a.model")]) == 0
    assert main(["predict", "--quiet", "--model", str(place / "a.model"), "--input",
                 str(place / "train2.svm"), "--output", str(place / "a.txt")]) == 0  # fmt: skip
    return place


def test_help_answers_at_once():
    assert cpu_seconds("--help") < 0.3
    assert cpu_seconds("train", "--help") < 0.3


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from hopefear.cli import main; main(['train', '--help']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            timeout=60, env=environment())  # fmt: skip
    loaded = {name.split(".")[0] for name in answer.stderr.split()}
    assert not loaded & {"numba", "numpy", "scipy", "sklearn", "rich", "safetensors"}


def test_predict_on_a_small_file_is_quick(folder):
    argv = ["predict", "--model", folder / "a.model", "--input", folder / "train2.svm"]
    assert cpu_seconds(*argv, times=2) < 1.0
    assert hopefear(*argv).stdout == (folder / "a.txt").read_text()


def test_rich_is_only_for_terminals(folder):
    code = (
        "import sys; from hopefear.cli import main; "
        f"main(['train', 'classify', '--train', {str(folder / 'train2.svm')!r}, '--model', "
        f"{str(folder / 'r.model')!r}]); print('rich' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            timeout=60, env=environment())  # fmt: skip
    assert answer.stdout == "False\n"
    assert "\x1b" not in answer.stderr


@pytest.mark.parametrize(("which", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_saves_and_says_how_to_go_on(folder, tmp_path, which, status):
    argv = ["train", "classify", "--train", folder / "train2.svm", "--model", tmp_path / "m",
            "--epochs", 10_000_000, "--checkpoint", tmp_path / "state", "--quiet"]  # fmt: skip
    seen = []
    for resume in ([], ["--resume"]):
        process = subprocess.Popen([*COMMAND, *map(str, argv), *resume], stderr=subprocess.PIPE,
                                   text=True, env=environment())  # fmt: skip
        newest = max(seen, default=0.0)
        _wait_for(lambda after=newest: any(p.stat().st_mtime > after for p in _states(tmp_path)))
        process.send_signal(which)
        _, err = process.communicate(timeout=60)
        assert process.returncode == status
        assert err.count("\n") == 1 and "saved in" in err and "--resume" in err
        seen += [p.stat().st_mtime for p in _states(tmp_path)]
    again = hopefear(*argv)
    assert again.returncode == 1 and "--resume" in again.stderr
    assert not (tmp_path / "m").exists()


def test_an_interrupt_without_checkpoints_says_so(folder, tmp_path):
    argv = ["train", "classify", "--train", folder / "train2.svm", "--model", tmp_path / "m",
            "--epochs", 10_000_000, "--run", tmp_path / "run"]  # fmt: skip
    process = subprocess.Popen([*COMMAND, *map(str, argv)], stderr=subprocess.PIPE, text=True,
                               env=environment())  # fmt: skip
    _wait_for(lambda: (tmp_path / "run" / "events.jsonl").exists()
              and (tmp_path / "run" / "events.jsonl").stat().st_size > 0)  # fmt: skip
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was saved; use --checkpoint DIR" in err
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def _states(folder):
    return list((folder / "state").glob("checkpoint.*"))


def _wait_for(ready, seconds=60.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_message(folder, tmp_path):
    predict = ["predict", "--model", folder / "a.model", "--input", folder / "train2.svm"]
    with open("/dev/full", "w") as full:
        answer = subprocess.run([*COMMAND, *map(str, predict)], stdout=full, text=True,
                                stderr=subprocess.PIPE, env=environment())  # fmt: skip
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1 and "No space left" in answer.stderr
    answer = hopefear(*predict, "--output", "/dev/full")
    assert answer.returncode == 1 and "cannot write /dev/full" in answer.stderr
    answer = hopefear("train", "classify", "--quiet", "--train", folder / "train2.svm", "--model",
                      "/dev/full")  # fmt: skip
    assert answer.returncode == 1 and answer.stderr.count("\n") == 1


def test_a_file_too_large_leaves_the_old_one(folder, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    for name, argv in {
        "m": ["train", "classify", "--quiet", "--train", folder / "train2.svm", "--model",
              tmp_path / "m"],
        "p": ["predict", "--model", folder / "a.model", "--input", folder / "train2.svm",
              "--proba", "--output", tmp_path / "p"],
        "s": ["train", "classify", "--quiet", "--train", folder / "train2.svm", "--model",
              tmp_path / "s", "--checkpoint", tmp_path / "state"],
    }.items():  # fmt: skip
        (tmp_path / name).write_text("old")
        answer = hopefear(*argv, preexec_fn=limit)
        assert answer.returncode == 1, answer.stderr
        assert answer.stderr.count("\n") == 1 and "cannot write" in answer.stderr
        assert (tmp_path / name).read_text() == "old"
    assert not list(tmp_path.rglob(".hopefear*"))


def test_a_reader_that_goes_away_is_no_error(folder):
    large = folder / "large.svm"  # its labels do not fit into a pipe
    large.write_bytes((folder / "train2.svm").read_bytes() * 200)
    argv = [*COMMAND, "predict", "--model", str(folder / "a.model"), "--input", str(large)]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout.readline() in (b"1\n", b"-1\n")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


# Each is trained once undisturbed and once with kills; {place} is a folder of its own.
KILLED = {
    "last": ["--train", "train2.svm"],
    "averaged, early stop": ["--train", "train3.svm", "--dev", "train3.svm", "--learner", "pa",
                             "--patience", "0"],
    "voted": ["--train", "train2.svm", "--learner", "vrda", "-p", "averaging=voted"],
    "watched": ["--train", "train2.svm", "--learner", "vrda", "--bounds"],
    "mapped": ["--train", "train2.svm", "--learner", "tg", "--cache", "{place}/cache"],
}  # fmt: skip
KILLS = 4
KILLER = """
import json, os, random, signal, sys, time
from hopefear.cli import main

configurations, kills, seed = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
for number, (name, options) in enumerate(configurations.items()):
    place = f"kill{number}"
    os.mkdir(place)
    common = ["train", "classify", "--quiet", "--epochs", "12",
              *(word.format(place=place) for word in options)]
    assert main([*common, "--model", f"{place}/warm"]) == 0  # compiles
    began = time.monotonic()
    assert main([*common, "--model", f"{place}/whole", "--run", f"{place}/whole-run",
                 "--checkpoint", f"{place}/once", "--checkpoint-every", "0"]) == 0
    duration = time.monotonic() - began
    argv = [*common, "--model", f"{place}/pieces", "--run", f"{place}/run", "--resume",
            "--checkpoint", f"{place}/state", "--checkpoint-every", "0"]
    killed = finished = 0
    while killed < kills:
        child = os.fork()
        if child == 0:
            os._exit(main(argv))
        time.sleep(rng.uniform(0.0, duration / 2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        else:
            assert status == 0, f"{name}: a resumed run ended with {status}"
            os.remove(f"{place}/pieces")
            finished += 1
    assert main(argv) == 0
    with open(f"{place}/whole", "rb") as whole, open(f"{place}/pieces", "rb") as pieces:
        same = whole.read() == pieces.read()
    assert same, f"{name}: another model after {killed} kills (seed {seed})"
    print(name, killed, finished, flush=True)
"""


def test_twenty_kills_end_in_the_same_bytes(folder):
    seed = time.time_ns() % 2**32
    answer = subprocess.run(
        [sys.executable, "-c", KILLER, json.dumps(KILLED), str(KILLS), str(seed)],
        cwd=folder, capture_output=True, text=True, timeout=300, env=environment(),
    )  # fmt: skip
    assert answer.returncode == 0, f"seed {seed}\n{answer.stdout}\n{answer.stderr[-3000:]}"
    assert len(KILLED) * KILLS == 20 and len(answer.stdout.splitlines()) == len(KILLED)
    # The events of a run killed and resumed can still be read, and end where the others end.
    for number in range(len(KILLED)):
        whole, pieces = (_events(folder / f"kill{number}" / run) for run in ("whole-run", "run"))
        assert whole[-1]["samples"] == pieces[-1]["samples"]
        assert whole[-1]["mistakes"] == pieces[-1]["mistakes"]
    page = folder / "kills.html"
    assert main(["report", "--quiet", str(folder / "kill0/run"), "--out", str(page)]) == 0


def _events(run):
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


@pytest.mark.long(seconds=600, why="kernels of every task may have to be compiled")
def test_the_demo_shows_everything(tmp_path):
    answer = hopefear("demo", cwd=tmp_path, timeout=600)  # cold, and on a busy machine
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == str(tmp_path / "report.html")
    assert os.listdir(tmp_path) == ["report.html"]
    page = (tmp_path / "report.html").read_text()
    sections = ("Parts of speech", "Questions of bank customers", "Dependency trees",
                "Lists of candidates", "Translations", "People with an income")  # fmt: skip
    places = [answer.stderr.index(section) for section in sections]
    assert places == sorted(places) and all(section in page for section in sections)
    learners = ("nbest-mira", "perceptron", "adagrad-rda", "mira", "risk", "kbmira")
    assert all(learner in page and learner in answer.stderr for learner in learners)
    for word in ("Pizza  Bella", "Why is “like”", "NOUN NOUN ADP DET NOUN PUNCT"):
        assert word in answer.stderr and word in page
    assert "hopefear compare parse --train english-train.conllu" in answer.stderr
    assert "card_arrival" in answer.stderr and "╰" in answer.stderr
    assert page.count("<svg") > 10
