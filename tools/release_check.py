"""Build the source archive and, from it, a wheel; install each into an empty environment; try it.

    python tools/release_check.py [--keep FOLDER]

What is tried runs outside the checkout, so that nothing of it can be imported by accident: the
version, the demo on built-in data, and a tagger that is trained, stored, loaded and asked. The
archives are left in dist/.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What people expect in a source archive, beside the package.
EXPECTED = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tests/conftest.py")
SMOKE = """
import sys
from pathlib import Path
import hopefear

assert not Path(hopefear.__file__).is_relative_to(sys.argv[1]), hopefear.__file__
X = [["Ann", "Lee", "left", "Rome"], ["Bo", "likes", "Ann", "Lee"], ["Rome", "sleeps"]]
y = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "B-PER", "I-PER"], ["B-LOC", "O"]]
tagger = hopefear.Tagger(epochs=5).fit(X, y)
tagger.save("names.model")
again = hopefear.load("names.model")
assert again.predict(X) == tagger.predict(X) == y
print("smoke test passed:", hopefear.__version__)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it behind")
    args = parser.parse_args()
    check_versions()
    dist = ROOT / "dist"
    for old in [*dist.glob("*.tar.gz"), *dist.glob("*.whl")]:
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    (archive,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    check_contents(archive)
    with tempfile.TemporaryDirectory(prefix="release-") as temporary:
        folder = args.keep or Path(temporary)
        for package in (wheel, archive):
            try_out(package, folder / package.name)
    print(f"good: {archive.name}, {wheel.name}")


def check_versions() -> None:
    """The package, the changelog and the citation name one version."""
    source = (ROOT / "src/hopefear/__init__.py").read_text(encoding="utf-8")
    version = found(r'__version__ = "(.+)"', source, "src/hopefear/__init__.py")
    for name, pattern in (("CHANGELOG.md", r"## (\S+)"), ("CITATION.cff", r"\nversion: (\S+)")):
        other = found(pattern, (ROOT / name).read_text(encoding="utf-8"), name)
        if other != version:
            raise SystemExit(f"release_check: {name} is of version {other}, the package {version}")


def found(pattern: str, text: str, name: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"release_check: {name} names no version")
    return match[1]


def check_contents(archive: Path) -> None:
    """The source archive has what it needs, and none of what is made by working on it."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    if missing := [name for name in EXPECTED if name not in names]:
        raise SystemExit(f"release_check: {archive.name} lacks {', '.join(missing)}")
    if stray := [n for n in names if "__pycache__" in n or n.startswith((".venv", "build/"))]:
        raise SystemExit(f"release_check: {archive.name} holds {', '.join(sorted(stray)[:5])}")


def try_out(package: Path, folder: Path) -> None:
    """Install a package into an empty environment and use it from an empty folder."""
    venv.create(folder / "env", with_pip=True, clear=True)
    (work := folder / "work").mkdir(exist_ok=True)
    python = folder / "env/bin/python"
    run(python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", package)
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HOPEFEAR_CACHE")}
    clean["HOPEFEAR_CACHE"] = str(folder / "cache")
    run(python, "-m", "hopefear", "--version", cwd=work, env=clean)
    run(python, "-c", SMOKE, ROOT, cwd=work, env=clean)
    run(python, "-m", "hopefear", "demo", cwd=work, env=clean)
    if not (work / "report.html").is_file():
        raise SystemExit(f"release_check: the demo of {package.name} wrote no report.html")


def run(*words: object, **more: object) -> None:
    text = [str(word) for word in words]
    print("+", " ".join(text).partition("\n")[0], flush=True)
    if code := subprocess.run(text, **more).returncode:  # type: ignore[call-overload]
        raise SystemExit(f"release_check: the command above ended with status {code}")


if __name__ == "__main__":
    main()
