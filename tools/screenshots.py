"""Draw the pictures of the documentation: report, page of the server, notebook.

    python tools/screenshots.py --data DIR [--out docs/img] [--only NAME ...]

DIR holds ``conll2000``, ``ud_english_ewt`` and ``multi30k-nbest``. Chunkers and a small parser are
trained, reported on and served; chromium, driven by playwright, takes the pictures.
"""

from __future__ import annotations

import argparse
import gzip
import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOPEFEAR = [sys.executable, "-m", "hopefear"]
LARGEST = 150_000
WIDE = {"width": 1000, "height": 700}
TEXT = (
    "Confidence in the pound is widely expected to take another inverse_temperature dive "
    "if trade figures fail to show a substantial improvement."
)
QUESTION = "She sent the final report to her manager on Friday."
CELLS = """\
import hopefear
tagger = hopefear.load("chunks.model"); tagger
tagger.predict_text("The new rules help small firms. Sales rose by a third.")
tagger.explain([["Sales", "rose", "sharply"]], sequence=0, token=1)
hopefear.show(["It", "rains", "again"], [(2, "expl"), (0, "root"), (2, "advmod")])"""
NOTEBOOK = """<!doctype html><meta charset="utf-8"><title>notebook</title><style>
body {{ font: 15px system-ui, sans-serif; margin: 1rem 1.5rem; max-width: 940px; }}
pre {{ background: #f5f5f5; border: 1px solid #ddd; padding: .5rem .7rem; margin: .8rem 0 .4rem; }}
.out {{ margin-left: 1rem; }}
</style>{cells}"""


def run(*words: str | Path) -> None:
    """One command of ours, which must succeed."""
    subprocess.run([*HOPEFEAR, *map(str, words)], check=True)


def models(data: Path, folder: Path) -> None:
    """Train ``chunks.model`` on words alone and ``trees.model``; write ``chunks.html``."""
    for name in ("train", "test"):
        with (
            gzip.open(data / "conll2000" / f"{name}.txt.gz", "rt") as source,
            open(folder / f"{name}.txt", "w") as target,
        ):
            for line in source:
                word, _, label = line.partition(" ")
                target.write(f"{word} {label.split()[-1]}\n" if label else "\n")
    with (
        gzip.open(data / "ud_english_ewt" / "train.conllu.gz", "rt") as source,
        open(folder / "train.conllu", "w") as target,
    ):
        sentences = source.read().split("\n\n")[:3000]
        target.write("\n\n".join(sentences) + "\n\n")
    run("train", "tag", "--train", folder / "train.txt", "--epochs", "5",
        "--model", folder / "chunks.model")  # fmt: skip
    run("train", "tag", "--train", folder / "train.conllu", "--column", "xpos",
        "--learner", "perceptron", "--epochs", "5", "--model", folder / "tags.model")  # fmt: skip
    run("train", "parse", "--train", folder / "train.conllu", "--order", "1", "--epochs", "5",
        "--tagger", folder / "tags.model", "--jackknife", "0",
        "--model", folder / "trees.model")  # fmt: skip
    run("evaluate", "--model", folder / "chunks.model", "--data", folder / "test.txt",
        "--report", folder / "chunks.html")  # fmt: skip


def compared(data: Path, folder: Path) -> None:
    """Write ``models.html``, of two chunkers, and ``tune.html``."""
    run("train", "tag", "--train", folder / "train.txt", "--learner", "perceptron",
        "--epochs", "5", "--model", folder / "perceptron.model")  # fmt: skip
    run("evaluate", "--model", folder / "chunks.model", folder / "perceptron.model",
        "--data", folder / "test.txt", "--report", folder / "models.html")  # fmt: skip
    lists, files = data / "multi30k-nbest", []
    for option, name in (("", "val"), ("dev-", "test_2016_flickr")):
        files += [f"--{option}nbest", lists / f"{name}.nbest.xz"]
        files += [
            f"--{option}refs",
            lists / f"{name}.en",
            f"--{option}source",
            lists / f"{name}.de",
        ]
    run("tune", *files, "--features", "dense", "--learner", "mira",
        "--weights", folder / "tuned.txt", "--report", folder / "tune.html")  # fmt: skip


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of both models."""
    words = ["serve", "--port", "0", "--tagger", str(folder / "tags.model"), "--model"]
    words += [str(folder / "chunks.model"), str(folder / "trees.model")]
    with subprocess.Popen([*HOPEFEAR, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stderr.readline, "")  # type: ignore[union-attr]
            yield next(m[0] for line in lines if (m := re.search(r"http://[\d.:]+", line)))
        finally:
            process.terminate()


def report(
    browser: Any,
    file: Path,
    scheme: str,
    errors: bool,
    path: Path,
    model: str = "",
    opened: int = 0,
) -> None:
    """The top of a report, or an error taken apart; ``model`` chooses among those of several."""
    view = WIDE if errors else {"width": 1000, "height": 1260}
    settings = {"viewport": view, "color_scheme": scheme, "reduced_motion": "reduce"}
    page = browser.new_context(**settings).new_page()
    page.goto(file.as_uri())
    if model:
        page.select_option("[data-by=who]", model)
    if errors:
        page.locator("article:visible summary").nth(opened).click()
        page.evaluate("document.querySelector('.cases').scrollIntoView()")
    page.screenshot(path=path)


def tried(browser: Any, address: str, model: str, text: str, token: int, path: Path) -> None:
    """The page of the server with an answer and the reasons for one word."""
    page = browser.new_context(viewport={"width": 900, "height": 700}).new_page()
    page.goto(address)
    page.locator("#model option").first.wait_for(state="attached")
    page.select_option("#model", model)
    page.fill("#input", text)
    page.click("button.main")
    page.get_by_text("answered in").wait_for()
    page.locator("[data-token]").nth(token).click()
    page.locator("#why tbody tr").first.wait_for()
    page.screenshot(path=path, full_page=True)


def notebook(browser: Any, folder: Path, path: Path) -> None:
    """Renders cells of a notebook: the value of the last expression of each line."""
    names: dict[str, Any] = {}
    cells = []
    for line in CELLS.replace("chunks.model", str(folder / "chunks.model")).splitlines():
        *first, last = line.split("; ")
        for code in first:
            exec(code, names)
        value = None
        if last.startswith("import"):
            exec(last, names)
        else:
            value = eval(last, names)
        source = html.escape(line.replace(str(folder) + "/", "").replace("; ", "\n"))
        cells.append(f"<pre>{source}</pre><div class=out>{as_html(value)}</div>")
    (folder / "notebook.html").write_text(NOTEBOOK.format(cells="".join(cells)), "utf-8")
    page = browser.new_context(viewport=WIDE).new_page()
    page.goto((folder / "notebook.html").as_uri())
    page.screenshot(path=path, full_page=True)


def as_html(value: Any) -> str:
    """Returns the HTML that a notebook displays for a value."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(map(as_html, value))
    return str(value._repr_html_())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    parser.add_argument("--only", nargs="*", default=[], help="names of pictures")
    parser.add_argument("--folder", type=Path, help="keep models there, and use those it has")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "chunks.html").exists():
            models(args.data, folder)
        if not (folder / "tune.html").exists():
            compared(args.data, folder)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        pictures = {
            "report": lambda path: report(browser, folder / "chunks.html", "light", True, path),
            "report-top": lambda path: report(
                browser, folder / "chunks.html", "light", False, path
            ),
            "report-dark": lambda path: report(browser, folder / "chunks.html", "dark", True, path),
            "report-models": lambda path: report(
                browser,
                folder / "models.html",
                "light",
                True,
                path,
                "chunks right, perceptron wrong",
                1,
            ),
            "report-tune": lambda path: report(
                browser, folder / "tune.html", "light", True, path, "after better than before"
            ),
            "notebook": lambda path: notebook(browser, folder, path),
        }
        for name, take in pictures.items():
            if not args.only or name in args.only:
                take(args.out / f"{name}.png")
        pages = {"serve": ("chunks", TEXT, 12), "serve-parse": ("trees", QUESTION, 5)}
        if not args.only or set(pages) & set(args.only):
            with served(folder) as address:
                for name, (model, text, token) in pages.items():
                    if not args.only or name in args.only:
                        path = args.out / f"{name}.png"
                        tried(browser, address, model, text, token, path)
        browser.close()
    for path in sorted(args.out.glob("*.png")):
        size = path.stat().st_size
        print(f"{path}: {size:,} bytes{' TOO LARGE' if size > LARGEST else ''}")


if __name__ == "__main__":
    main()
