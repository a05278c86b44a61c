"""Every page: its snippets run in order, its commands parse, its links lead somewhere."""

from __future__ import annotations

import re

import pytest
import small_trees
from doc_pages import ROOT, links_lead_somewhere
from snippets import Page, command_is_understood, inside, pages, snippets_of

from hopefear.cli import BY_TASK, VERBS, parser_of, task_names

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow"),
    pytest.mark.filterwarnings("ignore:The ``noload``:DeprecationWarning"),  # MLflow's own
]
quick = small_trees.quick
PAGES = pages()
SNIPPETS = {page: snippets_of((ROOT / page).read_text("utf-8")) for page in PAGES}
WITH_SNIPPETS = [page for page in PAGES if SNIPPETS[page]]
# Other people's packages leave files open, and are collected whenever it is.
NOISY = {"docs/integrations.md": pytest.mark.filterwarnings("ignore")}


def extras_of(page):
    return sorted({extra for snippet in SNIPPETS[page] for extra in snippet.extras})


def page_parameters():
    """Each page without the snippets that need an extra, then whole where it has some."""
    for page in WITH_SNIPPETS:
        noise = [NOISY[page]] if page in NOISY else []
        if any(not snippet.extras for snippet in SNIPPETS[page]):
            yield pytest.param(page, False, marks=noise, id=page)
        if extras := extras_of(page):
            marks = [*noise, pytest.mark.needs(*extras)]
            yield pytest.param(page, True, marks=marks, id=f"{page} with extras")


@pytest.mark.parametrize(("page", "with_extras"), list(page_parameters()))
def test_snippets_run(page, with_extras, tmp_path):
    snippets = SNIPPETS[page]
    shared = Page(tmp_path, snippets[0].marks)
    with inside(tmp_path):
        for one in snippets:
            if "skip" not in one.marks and (with_extras or not one.extras):
                try:
                    shared.run(one)
                except BaseException as error:
                    error.add_note(f"{page}:{one.line}: this {one.kind} block failed")
                    raise


@pytest.mark.parametrize("page", WITH_SNIPPETS)
def test_snippets_can_be_read(page):
    for one in SNIPPETS[page]:
        if one.kind in ("python", "hidden"):
            compile(one.text, page, "exec")
        others = "choose" if page == "docs/extending.md" else None  # the task of its example
        for command in one.commands if one.kind == "console" else ():
            if others and f" {others} " in command:
                continue
            try:
                command_is_understood(command)
            except SystemExit as error:
                raise AssertionError(f"{page}:{one.line}: {command}") from error


def test_what_is_left_out_has_a_reason():
    left_out = [
        (page, one.line, one.marks["skip"])
        for page in WITH_SNIPPETS
        for one in SNIPPETS[page]
        if "skip" in one.marks
    ]
    for page, line, reason in left_out:
        assert len(reason.split()) >= 3, f"{page}:{line}: say why this is not run"
    whole = {page for page in WITH_SNIPPETS if all("skip" in s.marks for s in SNIPPETS[page])}
    singles = [place for place in left_out if place[0] not in whole]
    total = sum(len(found) for found in SNIPPETS.values())
    print(f"{total} snippets, {len(left_out)} not run", *left_out, sep="\n")
    for page in whole:
        assert re.match(r"docs/(results|goals|extending)", page), (
            f"{page}: only measurements and what other tests run may be left out as a whole"
        )
    assert len(singles) <= 12, singles


def test_options_that_pages_name_are_there():
    """Where pages speak of other programs too, options of these are left out by their lines."""
    others = re.compile(r"\b(python|pip|git|make|tensorboard|mlflow|chrt|mkdocs|bench)\b|`--only ")
    pages = [page for page in PAGES if not re.match("docs/(migrating|results)", page)]
    known = {"--help"}
    for verb in VERBS:
        for task in task_names() if verb in BY_TASK else [None]:
            for action in parser_of(verb, task)._actions:
                known.update(action.option_strings)
    for page in pages:
        for number, line in enumerate((ROOT / page).read_text("utf-8").splitlines(), 1):
            if not others.search(line):
                for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", line):
                    assert option in known, f"{page}:{number}: there is no {option}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_links_lead_somewhere(page):
    links_lead_somewhere(page.removeprefix("docs/"))
