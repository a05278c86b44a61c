"""Run reports: folders in, one page out; killed and resumed runs included."""

import json

import pytest

from hopefear.errors import HopefearError, InputError
from hopefear.report import load_run, run_report

pytestmark = pytest.mark.interpreted


def event(epoch, **more):
    return {
        "epoch": epoch,
        "samples": 100 * epoch,
        "mistakes": 10 * epoch,
        "nnz": 50 - epoch,
        "loss": 1 / epoch,
        "seconds": 0.5 * epoch,
        "dev": {"accuracy": 80.0 + epoch},
    } | more


def make(folder, events, tail="", **settings):
    folder.mkdir(parents=True)
    run = {
        "task": "classify",
        "learner": "vrda",
        "parameters": {"l1": 1e-6},
        "seed": 1,
        "signature": "sig|seed:1",
        "data": {"path": "a.svm", "digest": "d1", "examples": 100},
    }
    (folder / "run.json").write_text(json.dumps(run | settings))
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events) + tail)
    return folder


def test_report_shows_runs_side_by_side(tmp_path):
    a = make(tmp_path / "first", [event(e) for e in (1, 2, 3)])
    b = make(tmp_path / "second", [event(e) for e in (1, 2)], learner="rda")
    run_report([a, b], tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    for title in (
        "Summary",
        "While training",
        "On development data",
        "Settings",
        "Training mistakes",
        "Sparsity",
        "Development accuracy",
        "What the runs share",
    ):
        assert title in text
    assert "<strong>83.0</strong>" in text
    assert "sig|seed:1" in text
    assert "did not see the same data" not in text


def test_sections_of_others_stand_before_the_settings(tmp_path):
    run = make(tmp_path / "run", [event(1)])
    add = lambda page, runs: page.section(f"Seen by a guest: {runs[0].name}")  # noqa: E731
    run_report([run], tmp_path / "out.html", [add])
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "While training" in text.partition("Seen by a guest: run")[0]
    assert "Settings" in text.rpartition("Seen by a guest: run")[2]


def test_one_run_without_dev(tmp_path):
    events = [{"epoch": 1, "mistakes": 3}, {"epoch": 2, "mistakes": 5}]
    page = run_report([make(tmp_path / "r", events)], tmp_path / "o.html").html()
    assert "mistakes so far against epochs" in page
    assert "On development data" not in page


def test_a_torn_last_line_is_left_out_and_said(tmp_path):
    folder = make(tmp_path / "r", [event(1)], tail='{"epoch": 2, "sam')
    run = load_run(folder)
    assert [e["epoch"] for e in run.events] == [1]
    assert "cut short" in run_report([folder], tmp_path / "o.html").html()


def test_a_broken_line_in_the_middle_is_refused_with_its_place(tmp_path):
    folder = make(tmp_path / "r", [], tail='{"epoch": 1}\n{"epoch"\n{"epoch": 3}\n')
    with pytest.raises(InputError, match=r"events\.jsonl:2: expected one JSON object"):
        load_run(folder)
    (folder / "events.jsonl").write_text("[1]\n{}\n")
    with pytest.raises(InputError, match=r"events\.jsonl:1"):
        load_run(folder)


def test_a_resumed_run_counts_once(tmp_path):
    events = [event(1), event(2), event(3), event(2, mistakes=21), event(3, mistakes=31), event(4)]
    run = load_run(make(tmp_path / "r", events))
    assert run.curve("mistakes") == ([100, 200, 300, 400], [10, 21, 31, 40])
    assert "resumed" in run.remarks[0]


def test_no_events_yet(tmp_path):
    page = run_report([make(tmp_path / "r", [])], tmp_path / "o.html").html()
    assert "no events yet" in page


@pytest.mark.parametrize("missing", ["run.json", "events.jsonl"])
def test_missing_files_are_named(tmp_path, missing):
    folder = make(tmp_path / "r", [event(1)])
    (folder / missing).unlink()
    with pytest.raises(HopefearError, match=f"r/{missing}".replace(".", r"\.")):
        run_report([folder], tmp_path / "o.html")
    assert not (tmp_path / "o.html").exists()


def test_no_folder_and_bad_settings_are_refused(tmp_path):
    with pytest.raises(HopefearError, match="at least one run folder"):
        run_report([], tmp_path / "o.html")
    folder = make(tmp_path / "r", [])
    (folder / "run.json").write_text("[]")
    with pytest.raises(InputError, match="JSON object"):
        load_run(folder)
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json:1"):
        load_run(folder)


def test_runs_on_different_data_are_flagged(tmp_path):
    a = make(tmp_path / "a", [event(1)])
    b = make(tmp_path / "b", [event(1)], data={"digest": "d2"})
    assert "did not see the same data" in run_report([a, b], tmp_path / "o.html").html()


def test_equal_folder_names_are_told_apart(tmp_path):
    a = make(tmp_path / "x" / "run", [event(1)])
    b = make(tmp_path / "y" / "run", [event(1)])
    page = run_report([a, b, b], tmp_path / "o.html").html()
    assert "x/run" in page
    assert "y/run #2" in page
    assert "y/run #3" in page


def test_strange_values_do_no_harm(tmp_path):
    events = [
        event(1, loss=float("nan"), nnz="many", dev=None),
        event(2, mistakes=10**400, dev={"f1": "x", "<b>": 3}),
        {"note": "no clock"},
    ]
    page = run_report([make(tmp_path / "r", events)], tmp_path / "o.html").html()
    assert "<b>" not in page


def test_passes_and_rounds_take_their_time_together(tmp_path):
    folder = make(tmp_path / "tuned", [{"epoch": e, "seconds": 0.5 * e} for e in (1, 2, 3)])
    run = load_run(folder)
    assert run.seconds() == 3.0 and run._replace(events=[{"epoch": 1}]).seconds() is None
    inside = [{"epoch": 0.25}, {"epoch": 0.75}, {"epoch": 1, "seconds": 4}, {"epoch": 1.5}]
    assert run._replace(events=inside).times() == [1.0, 3.0, 4.0, None]
    events = [{"epoch": e, "seconds": 0.5, "loss": 9 - e} for e in (1, 2, 3)]
    assert run._replace(events=events).curve("loss", clock="seconds") == ([0.5, 1, 1.5], [8, 7, 6])
    (folder / "run.json").write_text('{"task": "tune"}')
    run_report([folder], tmp_path / "out.html")
    summary = (tmp_path / "out.html").read_text(encoding="utf-8").split("</table>")[0]
    assert summary.endswith('<td class="r">3.0</td></tr></tbody>')
