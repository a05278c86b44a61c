"""The verb serve: what is refused before anything listens."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.interpreted


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "short.txt").write_text("abc\n")
    (tmp_path / "token.txt").write_text("0123456789abcdef\n")
    (tmp_path / "bad.model").write_bytes(b"no model")
    return tmp_path


@pytest.mark.needs("serve")
def test_others_are_served_with_a_token_only(run):
    status, _, err = run("serve", "--model", "bad.model", "--host", "0.0.0.0")
    assert status == 1 and "--token-file" in err
    words = ("serve", "--model", "bad.model", "--host", "0.0.0.0", "--token-file")
    status, _, err = run(*words, "short.txt")
    assert status == 1 and "at least 16" in err
    status, _, err = run(*words, "none.txt")
    assert status == 1 and "none.txt: No such file" in err


def test_wrong_usage(run):
    assert run("serve")[0] == 2
    status, _, err = run("serve", "--model", "bad.model", "--port", "99999")
    assert status == 2 and "65535" in err


@pytest.mark.needs("serve")
def test_bad_models_are_told(run):
    status, _, err = run("serve", "--model", "bad.model", "--port", "0")
    assert status == 1 and "bad.model" in err


def test_the_extra_is_named_where_it_is_missing(folder):
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from hopefear.cli import main\n"
        "sys.exit(main(['serve', '--model', 'bad.model']))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "uvicorn" in answer.stderr and "pip install 'hopefear[serve]'" in answer.stderr
