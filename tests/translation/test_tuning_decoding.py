"""Rounds with a decoder: what it is told, what ends them, what is kept, and going on."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from hopefear.data.moses.reader import read_moses
from hopefear.errors import HopefearError, ModelError, NewerFormatError
from hopefear.metrics.lists import metric_named
from hopefear.metrics.lists.bleu import Bleu
from hopefear.training.events import plain
from hopefear.translation.lists import read
from hopefear.translation.rounds import completed, iterate, moved
from hopefear.translation.scoring import best
from hopefear.translation.task import CollapseError, score_of
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

EXAMPLE = ROOT / "examples" / "decoder"
LAYOUT = (("LM0", 1), ("TM0", 2))
FIRST = Weights(LAYOUT, [1.0, 0.5, 0.25])
REFS = "hope is here now\nwe fear no more rain\n"
BAD = ["0 ||| x y z ||| LM0= {0} TM0= 1 0 ||| 1", "1 ||| no ||| LM0= 1 TM0= 1 0 ||| 1"]
FAIR = ["0 ||| hope is y z ||| LM0= 2 TM0= 0 1 ||| 1", BAD[1]]
GOOD = [
    "0 ||| hope is here now ||| LM0= 3 TM0= 1 1 ||| 1",
    "1 ||| we fear ||| LM0= 1 TM0= 0 0 ||| 1",
]


@pytest.fixture
def toy(tmp_path):
    """References, and a decoder that writes the list prepared for a round."""
    return Toy(tmp_path)


class Toy:
    def __init__(self, folder: Path) -> None:
        self.folder, self.refs, self.run = folder, folder / "refs", folder / "run"
        self.refs.write_text(REFS)
        self.calls: list[tuple[list[Path], Weights, int]] = []

    def command(self, *rounds: list[str]) -> str:
        """A command that writes these lists, one a round, and the last one ever after."""
        for number, lines in enumerate(rounds):
            text = "".join(f"{line}\n" for line in lines).replace("{0}", str(number))
            (self.folder / f"list-{number}").write_text(text)
        last = len(rounds) - 1
        lists = shlex.quote(str(self.folder / "list-"))
        count = shlex.quote(str(self.folder / "runs"))
        return (
            f'n=$HOPEFEAR_ROUND; [ "$n" -gt {last} ] && n={last}; echo "$n" >> {count}; '
            f'echo "round $n" >&2; cp {lists}"$n" "$HOPEFEAR_NBEST"'
        )

    @property
    def runs(self) -> int:
        path = self.folder / "runs"
        return len(path.read_text().split()) if path.exists() else 0

    def turned(self, paths: list[Path], weights: Weights, number: int) -> Weights:
        """Weights that depend on all that tuning is told."""
        self.calls.append((paths, weights, number))
        size = read_moses(paths).n_candidates
        return Weights(weights.layout, np.add(weights.dense, [0.0, size / 10, number + 1.0]))

    def iterate(self, command: str, **options):
        arguments = {"first": FIRST, "tune": self.turned, "folder": self.run, **options}
        first, tune = arguments.pop("first"), arguments.pop("tune")
        return iterate(command, self.refs, first, tune, **arguments)

    def weights(self, number: int) -> Weights:
        return Weights.read(self.run / f"round-{number}" / "weights.txt")


def untimed(events):
    return [{**event, "seconds": None} for event in events]


def test_rounds_go_on_while_the_decoder_gains(toy):
    seen = []
    found = toy.iterate(toy.command(BAD, FAIR, GOOD, BAD), patience=2, on_event=[seen.append])
    scores = [event["dev"]["bleu"] for event in found.rounds]
    assert scores[0] < scores[1] < scores[2] and scores[3] == scores[4] == scores[0]
    assert found.best == 2 and found.weights == toy.weights(2)
    assert found.stopped == "no new hypotheses"
    assert [(e["candidates"], e["new"]) for e in seen] == [(2, 2), (3, 1), (5, 2), (6, 1), (6, 0)]
    assert plain(seen) == found.rounds
    for number, (paths, weights, told) in enumerate(toy.calls):
        assert told == number and weights == toy.weights(number)
        assert paths == [toy.run / f"round-{k}" / "nbest.gz" for k in range(number + 1)]
        assert toy.weights(number + 1).dense[1] > weights.dense[1]
    assert found.rounds[1]["moved"] == pytest.approx(moved(FIRST, toy.weights(1)))
    lines = (toy.run / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == found.rounds
    assert json.loads((toy.run / "run.json").read_text())["decoder"]["refs"] == [str(toy.refs)]
    assert (toy.run / "round-2" / "log").read_text() == "round 2\n"
    assert (
        gzip.decompress((toy.run / "round-1" / "nbest.gz").read_bytes()).decode()
        == (toy.folder / "list-1").read_text()
    )
    assert not (toy.run / "round-1" / "nbest").exists()


def test_scores_are_those_of_the_first_line_of_each_list(toy):
    worse_first = [BAD[0], GOOD[0], *GOOD[1:], BAD[1]]
    found = toy.iterate(toy.command(worse_first), rounds=1)
    references = [[line] for line in REFS.splitlines()]
    bleu = Bleu(tokenize="none")
    wanted = bleu.scores(bleu.total(references, ["x y z", "we fear"]))["bleu"]
    assert found.rounds[0]["dev"]["bleu"] == pytest.approx(wanted)


@pytest.mark.parametrize(("patience", "runs", "best"), [(1, 2, 0), (2, 4, 2), (3, 4, 2)])
def test_rounds_without_gain_are_borne_for_so_long(toy, patience, runs, best):
    command = toy.command(FAIR, BAD, GOOD, GOOD)
    found = toy.iterate(command, patience=patience)
    assert toy.runs == runs and found.best == best
    assert found.stopped == ("no gain for 1 round" if patience == 1 else "no new hypotheses")


def test_a_start_is_not_kept_because_one_round_was_bad(toy):
    seen = []
    found = toy.iterate(toy.command(FAIR, BAD, BAD, BAD, GOOD, BAD), on_event=[seen.append])
    assert found.best == 4 and found.weights == toy.weights(4)
    assert [event["best"] for event in seen[:5]] == [0, 0, 0, 0, 4]
    second = {"first": lambda lists: FIRST, "folder": toy.folder / "second"}
    rounds = toy.iterate(toy.command(GOOD, BAD, FAIR), **second).rounds
    assert [event["best"] for event in rounds[:3]] == [None, 1, 2]  # its own weights are not known


def test_every_weights_that_may_be_returned_are_decoded_with(toy):
    found = toy.iterate(toy.command(BAD, FAIR, GOOD), rounds=1)
    assert found.stopped == "all 1 rounds done" and found.best == 1 and toy.runs == 2
    assert found.weights == toy.weights(1) and not (toy.run / "round-2").exists()


def test_weights_that_only_change_in_length_end_it(toy):
    found = toy.iterate(toy.command(BAD, FAIR), tune=lambda paths, weights, n: weights.scaled(3.0))
    assert found.stopped == "the weights stand still" and toy.runs == 1
    assert found.weights == FIRST


def test_a_collapse_is_told_and_not_returned(toy):
    def collapsed(paths, weights, number):
        return Weights(LAYOUT, np.zeros(3))

    def told(paths, weights, number):
        if number == 1:
            raise CollapseError("tuning collapsed: bleu fell")
        return toy.turned(paths, weights, number)

    found = toy.iterate(toy.command(BAD, FAIR), tune=collapsed)
    assert found.stopped.startswith("tuning collapsed: all weights are 0")
    assert found.weights == FIRST
    found = toy.iterate(toy.command(BAD, FAIR, GOOD), tune=told, folder=toy.folder / "second")
    assert found.stopped == "tuning collapsed: bleu fell" and found.best == 1
    third = {"first": lambda lists: FIRST, "folder": toy.folder / "third"}
    with pytest.raises(CollapseError, match="all weights are 0"):
        toy.iterate(toy.command(BAD, FAIR), tune=collapsed, **third)


def test_a_decoder_may_begin_with_weights_of_its_own(toy):
    def first(lists):
        assert lists.layout == LAYOUT and lists.counts is not None
        return FIRST.scaled(2.0)

    found = toy.iterate(toy.command(GOOD, BAD, FAIR), first=first, patience=2)
    assert (toy.run / "round-0" / "weights.txt").read_bytes() == b""
    assert toy.calls[0][1] == FIRST.scaled(2.0)
    assert found.best == 2 and found.weights == toy.weights(2)  # round 0 has none to return
    assert found.rounds[0]["moved"] is None and found.rounds[1]["moved"] is None
    assert found.rounds[2]["moved"] > 0.0


def test_weights_are_arranged_as_lists_are_and_none_is_lost(toy):
    mixed = Weights(
        (("UnknownWordPenalty0", 1), ("TM0", 2), ("LM0", 1)), [7.0, 0.5, 0.25, 1.0], {"a_b": 0.1}
    )
    toy.iterate(toy.command(BAD, GOOD), first=mixed, rounds=1)
    assert toy.calls[0][1].layout == LAYOUT
    assert toy.calls[0][1].dense.tolist() == [1.0, 0.5, 0.25]
    assert toy.weights(0) == mixed
    assert toy.weights(1).layout == (*LAYOUT, ("UnknownWordPenalty0", 1))
    assert toy.weights(1).dense[-1] == 7.0


def test_weights_that_lists_do_not_show_stay_in_proportion(toy):
    before = Weights((("UWP0", 1), ("TM0", 2), ("LM0", 1)), [7.0, 0.5, 0.25, 1.25])
    found = Weights(LAYOUT, [6.0, -8.0, 2.0], {"a_b": 4.0}, {"a ||| b": 8.0})
    whole = completed(found, before)
    assert whole.layout == (*LAYOUT, ("UWP0", 1))
    assert whole.dense.tolist() == [0.75, -1.0, 0.25, 7.0]
    assert (whole.sparse, whole.phrases) == ({"a_b": 0.5}, {"a ||| b": 1.0})
    # A change of length alone is none for the decoder.
    longer = before.arranged(LAYOUT, drop=["UWP0"]).scaled(3.0)
    assert moved(before, completed(longer, before)) < 1e-12
    nothing = Weights((("UWP0", 1), *LAYOUT), [7.0, 0.0, 0.0, 0.0])
    assert completed(found, nothing).dense.tolist() == [6.0, -8.0, 2.0, 7.0]


def first_score(lists, metric):
    """Returns the score of the candidates that the decoder scored highest."""
    return score_of(lists, metric, best(lists.scores, lists))


def test_fractions_of_counts_are_not_cut_off(tmp_path):
    # References have 3.5 and 2.5 words on average.
    (tmp_path / "n").write_text("0 ||| a b c ||| LM0= 1 ||| 1\n1 ||| a b ||| LM0= 1 ||| 1\n")
    for name, text in (("r0", "a b d\na b\n"), ("r1", "a b d e\na c c\n")):
        (tmp_path / name).write_text(text)
    metric = metric_named("ter")
    lists = read(tmp_path / "n", [tmp_path / "r0", tmp_path / "r1"], metric=metric)
    assert (lists.counts % 1.0).any()
    exact = lists.counts.astype(float).sum(axis=0)
    assert metric.scores(exact)["ter"] == first_score(lists, metric)


def test_sums_of_bytes_do_not_wrap(tmp_path):
    (tmp_path / "n").write_text("".join(f"{i} ||| a b c d e ||| L= 1 ||| 1\n" for i in range(100)))
    (tmp_path / "r").write_text("a b c d e\n" * 100)
    lists = read(tmp_path / "n", [tmp_path / "r"], metric="bleu")
    assert lists.counts.dtype == np.uint8
    assert first_score(lists, metric_named("bleu", tokenize="none")) == pytest.approx(100.0)


def test_movement_is_that_of_directions():
    before = Weights(LAYOUT, [3.0, 4.0, 0.0], {"a_b": 0.0})
    after = Weights(LAYOUT, [0.0, 4.0, 0.0], {"a_b": 3.0})
    assert moved(before, before.scaled(9.0)) == pytest.approx(0.0, abs=1e-15)
    assert moved(before, after) == pytest.approx(0.6)
    assert completed(after, before) == after


def test_places_in_the_command_are_filled_and_quoted(toy):
    toy.run = toy.folder / "it's a $(run)"
    show = "import sys; print(sys.argv[1:], '${NOT_SET}')"
    copy = toy.command(GOOD).replace('"$HOPEFEAR_NBEST"', "{nbest}")
    echo = f"{sys.executable} -c {shlex.quote(show)} {{weights}} {{round}} && env | grep HOPEFEAR_"
    toy.iterate(f"{echo}; {copy}", rounds=1)
    folder = toy.run / "round-1"
    log = (folder / "log").read_text().splitlines()
    assert log[0].startswith(str([str(folder / "weights.txt"), "1"]))
    assert {f"HOPEFEAR_WEIGHTS={folder}/weights.txt", "HOPEFEAR_ROUND=1"} <= set(log)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "echo out; echo no such model >&2; exit 3",
            r"status 3; the end of .*:\n    out\n    no s",
        ),
        ("kill -9 $$", r"killed by SIGKILL \(status -9\); .*log is empty"),
        ("echo done", r"status 0\), but the N-best list .*/nbest is not there; it must write"),
        (": > $HOPEFEAR_NBEST", r"/nbest is empty; it must write"),
        ("echo '0 ||| x' > {nbest}", r"cannot be used: .*nbest.gz:1: expected"),
        (
            "for i in 0 1; do echo $i '||| x ||| LM0= 1 ||| 1'; done > {nbest}",
            r"TM0 .* in .*weights.txt, no more dense features in the lists",
        ),
        ("printf '\\037\\213\\010xx' > {nbest}", r"cannot be used: .*compressed data is"),
        ("no-such-decoder --now", r"status 127; the end of .*\n.*not found"),
    ],
)
def test_what_a_decoder_did_wrong_is_told(toy, command, said):
    with pytest.raises(HopefearError, match=said) as caught:
        toy.iterate(command)
    assert repr(command) in str(caught.value) and "round 0" in str(caught.value)


def test_lists_that_change_their_features_are_refused(toy):
    other = [line.replace("LM0=", "LM1=") for line in FAIR]
    with pytest.raises(HopefearError, match=r"round 1: .*cannot be used: .*LM"):
        toy.iterate(toy.command(BAD, other))
    few = [BAD[0]]
    with pytest.raises(HopefearError, match=r"round 0: .*refs:2: expected list 1"):
        toy.iterate(toy.command(few), folder=toy.folder / "other")


def test_mistakes_are_told_before_the_decoder_runs(toy):
    command = toy.command(BAD)
    for options, said in [
        ({"rounds": 0}, "rounds=0"),
        ({"patience": 0}, "patience=0"),
        ({"timeout": 0}, "timeout=0"),
    ]:
        with pytest.raises(HopefearError, match=said):
            toy.iterate(command, **options)
    with pytest.raises(HopefearError, match="command is empty"):
        toy.iterate(" ")
    toy.refs = toy.folder / "nowhere"
    with pytest.raises(HopefearError, match="nowhere: cannot be read"):
        toy.iterate(command)
    assert toy.runs == 0


def test_a_decoder_that_takes_too_long_is_ended_with_what_it_started(toy):
    pid = toy.folder / "pid"
    command = f"sleep 60 & echo $! > {pid}; echo waiting; wait"
    began = time.monotonic()
    with pytest.raises(HopefearError, match=r"longer than 0.3 s \(timeout\)(.|\n)*waiting"):
        toy.iterate(command, timeout=0.3)
    assert time.monotonic() - began < 5
    assert ended(int(pid.read_text()))


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody has looked after yet."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("step", ["decode 0", "tune 0", "decode 1", "tune 1", "decode 2"])
def test_a_run_that_failed_anywhere_goes_on_to_the_same_end(toy, step):
    whole = Toy(toy.folder)
    whole.run = toy.folder / "whole"
    command = toy.command(BAD, FAIR, GOOD, BAD)
    guard = toy.folder / "broken"
    guarded = f'[ -e {guard} ] && [ "$(cat {guard})" = "decode $HOPEFEAR_ROUND" ] && exit 9; '

    def tune(paths, weights, number):
        if guard.exists() and guard.read_text() == f"tune {number}":
            raise RuntimeError
        return toy.turned(paths, weights, number)

    wanted = whole.iterate(guarded + command)
    guard.write_text(step)
    with pytest.raises((HopefearError, RuntimeError)):
        toy.iterate(guarded + command, tune=tune)
    guard.unlink()
    before, seen = toy.runs, []
    found = toy.iterate(guarded + command, tune=tune, resume=True, on_event=[seen.append])
    assert (found.weights, found.best, found.stopped) == (wanted.weights, 2, wanted.stopped)
    assert untimed(found.rounds) == untimed(wanted.rounds)
    done = int(step[-1]) + step.startswith("tune")
    assert [event["epoch"] for event in seen] == list(range(done, 5))
    assert toy.runs == before + 5 - done
    lines = (toy.run / "events.jsonl").read_text().splitlines()
    assert untimed(map(json.loads, lines)) == untimed(wanted.rounds)
    again = toy.iterate(guarded + command, tune=tune, resume=True)
    assert again == found and toy.runs == before + 5 - done


def test_more_rounds_may_be_asked_for_later(toy):
    command = toy.command(BAD, FAIR, GOOD, BAD)
    assert toy.iterate(command, rounds=1).best == 1
    found = toy.iterate(command, rounds=5, resume=True)
    assert found.best == 2 and toy.runs == 5
    before = (toy.run / "state.json").read_bytes()
    with pytest.raises(HopefearError, match=r"earlier run: --resume .* another folder starts afr"):
        toy.iterate(command, rounds=1)
    assert (toy.run / "state.json").read_bytes() == before and toy.runs == 5


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_without_a_finished_round_is_free(toy, resume):
    with pytest.raises(HopefearError, match="status 9"):
        toy.iterate("exit 9", about={"seed": 1})
    found = toy.iterate(toy.command(BAD, FAIR), about={"seed": 2}, resume=resume)
    assert found.best == 1


def test_another_run_is_not_resumed(toy):
    command = toy.command(BAD, FAIR)
    toy.iterate(command, resume=True)
    with pytest.raises(HopefearError, match=r"with command .* use another folder"):
        toy.iterate(command + "; true", resume=True)
    about = {"seed": 1, "features": ("dense",), "versions": {"numpy": "1"}}
    toy.iterate(command, folder=toy.folder / "told", about=about)
    for more, said in [
        ({"versions": {}}, None),
        ({"seed": 2}, "with seed 1, not 2; resume it as it began"),
        ({"features": None, "held_out": 0.5}, r"features \['dense'\], not None, and held_out"),
    ]:
        options = {"folder": toy.folder / "told", "about": about | more, "resume": True}
        if said is None:
            toy.iterate(command, **options)
        else:
            with pytest.raises(HopefearError, match=said):
                toy.iterate(command, **options)
    with pytest.raises(HopefearError, match="began from other weights"):
        toy.iterate(command, first=Weights(LAYOUT, [1.0, 0.0, 0.0]), resume=True)
    with pytest.raises(HopefearError, match="began from other weights"):
        toy.iterate(command, first=lambda lists: FIRST, resume=True)
    toy.refs.write_text(REFS.upper())
    with pytest.raises(HopefearError, match=r"with words of refs '\w+', not '\w+'"):
        toy.iterate(command, resume=True)
    toy.refs.write_text(REFS)
    (toy.run / "state.json").write_text("{}")
    with pytest.raises(HopefearError, match=r"state of a run .* it lacks 'format'; restore it"):
        toy.iterate(command, resume=True)


WRONG = [None, [], {}, "x", -1, 10**30, float("nan"), [[]], [{}], True]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_forged_state_is_refused_and_stays(toy, value):
    command = toy.command(BAD, FAIR, GOOD)
    toy.iterate(command, rounds=1)
    path = toy.run / "state.json"
    state = json.loads(path.read_text())
    sensible = {"rounds": [], "identity": {}}  # no round yet; another run
    forged = [state | {key: value} for key in state if sensible.get(key) != value]
    forged.append(state | {"layout": [["LM0", value]]})
    if value != "x":
        forged.append(state | {"layout": [[value, 3]]})
    for key in ("epoch", "dev", "candidates", "new", "seconds"):
        if not (type(value) is int and key == "seconds") and value != 10**30:
            forged.append(state | {"rounds": [{**state["rounds"][0], key: value}]})
    files = {p: p.read_bytes() for p in toy.run.rglob("*") if p.is_file() and p != path}
    for one in forged:
        path.write_text(json.dumps(one))
        with pytest.raises(ModelError, match="nothing was changed"):
            toy.iterate(command, rounds=2, resume=True)
        assert json.loads(path.read_text()) == one or value != value
    assert all(p.read_bytes() == data for p, data in files.items())


def test_a_state_of_a_newer_version_or_deep_nesting_is_refused(toy):
    command = toy.command(BAD, FAIR)
    toy.iterate(command, rounds=1)
    path = toy.run / "state.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"format": 2}))
    with pytest.raises(NewerFormatError, match=r"newer version .* upgrade hopefear"):
        toy.iterate(command, resume=True)
    path.write_text("[" * 100_000)
    with pytest.raises(ModelError, match="nothing was changed"):
        toy.iterate(command, resume=True)


SCRIPT = """
import os, signal, sys
from pathlib import Path
from hopefear.errors import HopefearError
from hopefear.translation.rounds import iterate
from hopefear.translation.weights import Weights

def tune(paths, weights, number):
    if number == 1 and {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
    return Weights(weights.layout, weights.dense + [0.0, 1.0, number])

try:
    iterate({command!r}, {refs!r}, Weights({layout!r}, [1.0, 0.5, 0.25]), tune, folder={folder!r})
except HopefearError as error:
    print(error)
    sys.exit(130 if getattr(error, "signum", 0) == signal.SIGINT else 1)
"""


def started(toy, command, kill):
    text = textwrap.dedent(SCRIPT).format(
        kill=kill, command=command, refs=str(toy.refs), layout=LAYOUT, folder=str(toy.run)
    )
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


def simple(paths, weights, number):
    return Weights(weights.layout, np.add(weights.dense, [0.0, 1.0, number]))


def test_a_killed_run_goes_on_to_the_same_weights(toy):
    command = toy.command(BAD, FAIR, GOOD, BAD)
    process = started(toy, command, kill=True)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL and toy.runs == 2
    found = toy.iterate(command, tune=simple, resume=True)
    assert toy.runs == 5
    wanted = toy.iterate(command, tune=simple, folder=toy.folder / "whole")
    assert found.weights == wanted.weights and untimed(found.rounds) == untimed(wanted.rounds)


def test_an_interrupt_ends_the_decoder_too(toy):
    pid, flag = toy.folder / "pid", toy.folder / "slow"
    flag.touch()
    slow = f"if [ $HOPEFEAR_ROUND = 1 ] && [ -e {flag} ]; then sleep 60 & echo $! > {pid}; wait; fi"
    command = f"{slow}; {toy.command(BAD, FAIR, GOOD, BAD)}"
    process = started(toy, command, kill=False)
    for _ in range(6000):
        if pid.exists() and pid.read_text().strip():
            break
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "round 1" in said and "kept" in said
    assert ended(int(pid.read_text()))
    flag.unlink()
    found = toy.iterate(command, tune=simple, resume=True)
    assert found.best == 2 and toy.runs == 5


def climbed(refs, sweeps=2):
    """Tuning by trial: a step along each coordinate, kept where BLEU of the lists grows."""

    def tune(paths, weights, number):
        lists = read_moses(paths, refs, metric=Bleu(tokenize="none"))
        bleu = Bleu(tokenize="none")
        ends = list(zip(lists.starts, lists.starts[1:], strict=False))

        def score(w):
            points = lists.dense @ w
            best = [a + points[a:b].argmax() for a, b in ends]
            return bleu.scores(lists.counts[best].sum(axis=0, dtype=np.int64))["bleu"]

        w = weights.dense / np.abs(weights.dense).sum()
        top = score(w)
        for _ in range(sweeps):
            for j in range(len(w)):
                for step in (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3):
                    other = w + step * (np.arange(len(w)) == j)
                    if (new := score(other)) > top:
                        w, top = other / np.abs(other).sum(), new
        return Weights(weights.layout, w)

    return tune


def test_tuning_with_a_decoder_that_searches(tmp_path):
    data = EXAMPLE / "data"
    for name in ("dev.de", "dev.en"):
        lines = (data / name).read_text("utf-8").split("\n")[:10]
        (tmp_path / name).write_text("\n".join(lines), "utf-8")
    refs = tmp_path / "dev.en"
    decoder = f"{sys.executable} {EXAMPLE / 'decoder.py'} --input {tmp_path / 'dev.de'}"
    first = Weights(
        (*((name, 1) for name in ("LM0", "Distortion0", "WordPenalty0", "PhrasePenalty0")),
         ("TranslationModel0", 2)),
        [0.1, 0.3, -0.3, 0.2, 0.8, 0.1],
    )  # fmt: skip
    found = iterate(
        f"{decoder} --nbest 25", refs, first, climbed(refs), folder=tmp_path / "run", rounds=5
    )
    scores = [event["dev"]["bleu"] for event in found.rounds]
    assert len(scores) >= 3
    assert scores[0] < 40 and max(scores) == scores[found.best] > scores[0] + 25
    new = [event["new"] for event in found.rounds]
    assert new[1] > new[-1] and sum(new) == found.rounds[-1]["candidates"]
    # Decoding again with the weights that came out gives the list they were chosen for.
    found.weights.write(tmp_path / "out.txt")
    subprocess.run(
        f"{decoder} --nbest 25 --weights {tmp_path}/out.txt --output {tmp_path}/again",
        shell=True,
        check=True,
    )
    kept = tmp_path / "run" / f"round-{found.best}" / "nbest.gz"
    assert (tmp_path / "again").read_bytes() == gzip.decompress(kept.read_bytes())
