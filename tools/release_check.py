"""Build the source archive; try it, and the wheel with kernels, in empty environments.

    make release-check          # builds the wheel before
    python tools/release_check.py [--keep FOLDER]

What is tried runs in empty environments, outside the checkout, so that neither a package of ours
nor one that only development brings can be there by accident. Every module is imported, every task
trained, evaluated and asked; first commands must not wait for the compiler. The papers' wheel is
tried there too. The archives are left in dist/.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What people expect in a source archive, beside the package.
EXPECTED = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tests/conftest.py")
MEGABYTES = 40  # of a wheel at most
# Imports all modules; what an extra brings may be missing, nothing else.
IMPORT_ALL = """
import importlib, pkgutil, sys
import hopefear

assert hopefear.__file__.startswith(sys.prefix), hopefear.__file__
for module in pkgutil.walk_packages(hopefear.__path__, "hopefear."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in sys.argv[1:], f"{module.name}: {error}"
print("imported all modules:", hopefear.__version__)
"""
FILES = """
import sys
from pathlib import Path
from hopefear.cli.warm_up import write_files
from hopefear.data.samples import write_samples

write_files(Path())
write_samples(".")
for name, n in (("tags", 800), ("trees", 100)):
    sentences = Path("english-train.conllu").read_text("utf-8").split("\\n\\n")
    Path(name + ".conllu").write_text("\\n\\n".join(sentences[:n]) + "\\n\\n", "utf-8")
"""
# Seconds that each may take as the first command on a machine, and the command.
FIRST = (
    (4.0, "train tag --train tags.conllu --column upos --model tags.model"),
    (1.5, "predict --model tags.model --input tags.conllu"),
    (5.0, "evaluate --model tags.model --data tags.conllu --report tags.html"),
    (5.0, "train classify --train questions-train.tsv --model texts.model"),
    (1.5, "predict --model texts.model --input questions-test.tsv"),
    (5.0, "evaluate --model texts.model --data questions-test.tsv --report texts.html"),
    (5.0, "train classify --train income-train.svm --model rows.model"),
    (1.5, "predict --model rows.model --input income-test.svm"),
    (5.0, "train parse --train trees.conllu --model trees.model"),
    (1.5, "predict --model trees.model --input trees.conllu"),
    (5.0, "evaluate --model trees.model --data trees.conllu --report trees.html"),
    (5.0, "train rerank --train lists.jsonl --model lists.model"),
    (1.5, "predict --model lists.model --input lists.jsonl"),
    (5.0, "evaluate --model lists.model --data lists.jsonl --report lists.html"),
    (5.0, "tune --nbest nbest.txt --refs refs.txt --weights weights.txt"),
    (5.0, "evaluate --weights weights.txt --nbest nbest.txt --refs refs.txt"),
)
BOUNDS = "train classify --train income-train.svm --learner vrda --bounds --model v.model --quiet"
TRIES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it behind")
    args = parser.parse_args()
    check_versions()
    dist = ROOT / "dist"
    for old in dist.glob("*.tar.gz"):
        old.unlink()
    run(sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT)
    (archive,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("hopefear-*.whl")
    (papers,) = dist.glob("hopefear_papers-*.whl")
    check_contents(archive)
    if (size := wheel.stat().st_size / 1e6) > MEGABYTES:
        raise SystemExit(f"release_check: {wheel.name} has {size:.0f} MB, more than {MEGABYTES}")
    with tempfile.TemporaryDirectory(prefix="release-") as temporary:
        folder = args.keep or Path(temporary)
        work, variables = installed(wheel, folder / "wheel")
        try_commands(work, variables)
        try_papers(papers, work, variables)
        try_demo(*installed(archive, folder / "archive"))
    print(f"good: {archive.name}, {wheel.name} ({size:.0f} MB), {papers.name}")


def check_versions() -> None:
    """The package, the changelog and the citation name one version."""
    source = (ROOT / "src/hopefear/__init__.py").read_text(encoding="utf-8")
    version = found(r'__version__ = "(.+)"', source, "src/hopefear/__init__.py")
    for name, pattern in (
        ("CHANGELOG.md", r"## (\S+)"),
        ("CITATION.cff", r"\nversion: (\S+)"),
        ("papers/pyproject.toml", r'\nversion = "(.+)"'),
        ("papers/pyproject.toml", r'"hopefear==(.+)"'),
    ):
        declared = found(pattern, (ROOT / name).read_text(encoding="utf-8"), name)
        if declared != version:
            raise SystemExit(
                f"release_check: {name} is of version {declared}, the package {version}"
            )


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


def installed(package: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """Install a package into an empty environment.

    Returns a folder to work in, and variables for processes that are to find the package.
    """
    venv.create(folder / "env", with_pip=True, clear=True)
    (work := folder / "work").mkdir(exist_ok=True)
    python = folder / "env/bin/python"
    run(python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", package)
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    variables["HOPEFEAR_CACHE"] = str(folder / "cache")
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables.get('PATH', '')}"
    return work, variables


def try_commands(work: Path, variables: dict[str, str]) -> None:
    """Import every module, and use every task as the first command on a machine would."""
    run("python", "-c", IMPORT_ALL, *optional_modules(), cwd=work, env=variables)
    run("python", "-c", FILES, cwd=work, env=variables)
    late = []
    for limit, command in FIRST:
        words, seconds = ["hopefear", *command.split(), "--quiet"], float("inf")
        for _ in range(TRIES):
            if seconds > limit:  # another program may have had the processor
                shutil.rmtree(variables["HOPEFEAR_CACHE"], ignore_errors=True)
                began = time.perf_counter()
                run(*words, cwd=work, env=variables, stdout=subprocess.DEVNULL)
                seconds = min(seconds, time.perf_counter() - began)
        print(f"  {seconds:.2f} s of {limit}", flush=True)
        if seconds > limit:
            late.append(command)
    if late:
        raise SystemExit(f"release_check: took too long: {'; '.join(late)}")


def try_papers(wheel: Path, work: Path, variables: dict[str, str]) -> None:
    """Ask for the papers without their package, which must name it, and then with it."""
    with zipfile.ZipFile(wheel) as archive:
        if not any(name.endswith("/licenses/LICENSE") for name in archive.namelist()):
            raise SystemExit(f"release_check: {wheel.name} has no LICENSE")
    run("hopefear", "completion", "bash", cwd=work, env=variables, stdout=subprocess.DEVNULL)
    words = ("hopefear", "reproduce", "swvp-synthetic", "--quick", "--out", "papers")
    answer = subprocess.run(words, cwd=work, env=variables, capture_output=True, text=True)
    if answer.returncode != 1 or "hopefear-papers" not in answer.stderr:
        raise SystemExit(f"release_check: without hopefear-papers it says: {answer.stderr}")
    pip = ("python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet")
    run(*pip, "--no-deps", wheel, cwd=work, env=variables)
    run(*words, cwd=work, env=variables)
    run("hopefear", *BOUNDS.split(), cwd=work, env=variables, stdout=subprocess.DEVNULL)


def optional_modules() -> list[str]:
    """Returns the names by which modules import what extras other than ``dev`` bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [line for name, extra in extras.items() if name != "dev" for line in extra]
    names = {re.match(r"[\w.-]+", line)[0].replace("-", "_") for line in lines}  # type: ignore[index]
    return sorted({*names, "mlflow", "pycrfsuite"} - {project["name"]})


def try_demo(work: Path, variables: dict[str, str]) -> None:
    run("hopefear", "demo", "--quiet", cwd=work, env=variables)
    if not (work / "report.html").is_file():
        raise SystemExit("release_check: the demo wrote no report.html")


def run(*words: object, **options: object) -> None:
    text = [str(word) for word in words]
    print("+", " ".join(text).partition("\n")[0], flush=True)
    if code := subprocess.run(text, **options).returncode:  # type: ignore[call-overload]
        raise SystemExit(f"release_check: the command above ended with status {code}")


if __name__ == "__main__":
    main()
