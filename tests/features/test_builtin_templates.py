"""Built-in template sets: they load, adapt to the columns there are, and match their models."""

from __future__ import annotations

import gzip

import pytest
from places import DATA, ROOT
from template_reference import decoded, expand, sentences_of

from hopefear.features.templates import BUILT_IN, TemplateFeatures, load_templates

pytestmark = pytest.mark.interpreted

TEXT = sentences_of(
    [
        [("IL-2", "NN", "B-NP"), ("expression", "NN", "I-NP"), ("in", "IN", "B-PP")],
        [("NF-kappa", "NN", "B-NP"), ("B", "NN", "I-NP")],
        [("1995", "CD", "B-NP")],
    ],
    "word",
    "pos",
    "chunk",
)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_sets_adapt_to_the_columns_there_are(name: str, columns: int) -> None:
    if name == "crfsuite-chunking" and columns == 1:
        pytest.skip("the set of another program is kept as it is")
    kept = dict(list(TEXT.columns.items())[:columns])
    text = type(TEXT)(TEXT.starts, kept)
    features, found = TemplateFeatures.fit_encode(name, text)
    assert decoded(features.name, *found[:3]) == expand(features.templates, text, False)
    assert set(features.needs) <= set(kept)


def test_crfsuite_attributes_of_a_token() -> None:
    features, found = TemplateFeatures.fit_encode("crfsuite-chunking", TEXT)
    names = [name for name, _ in decoded(features.name, *found[:3])[1]]
    assert names == [
        "word[-1]=IL-2",
        "word[0]=expression",
        "word[1]=in",
        "word[-1]|word[0]=IL-2|expression",
        "word[0]|word[1]=expression|in",
        "pos[-1]=NN",
        "pos[0]=NN",
        "pos[1]=IN",
        "pos[-1]|pos[0]=NN|NN",
        "pos[0]|pos[1]=NN|IN",
        "pos[-1]|pos[0]|pos[1]=NN|NN|IN",
    ]


def test_sets_of_the_paper_have_what_it_names_and_no_more() -> None:
    features, _ = TemplateFeatures.fit_encode("sapo-chunking", TEXT)
    templates = {name.split("=", 1)[0] for name in features.names(range(features.size))}
    assert {t.count("|") for t in templates if t.startswith("word")} == {0, 1}
    assert {t.count("|") for t in templates if t.startswith("pos")} == {0, 1, 2}
    assert all(part.startswith(("word[", "pos[")) for t in templates for part in t.split("|"))
    features, found = TemplateFeatures.fit_encode("sapo-pos", TEXT)
    names = [name for name, _ in decoded(features.name, *found[:3])[0]]
    assert {"normal(word)[0]=il-#", "prefix(word,3)[0]=IL-"} <= set(names)


def test_substrings_of_the_papers_set_are_shorter_than_ten() -> None:
    features, _ = TemplateFeatures.fit_encode("sapo-bioner", TEXT)
    found = [n.split("=", 1)[1] for n in features.names(range(features.size)) if "substr" in n]
    assert max(map(len, found)) == 9 and "xpression" in found and "expression" not in found


def test_bioner_substrings_have_two_to_six_letters() -> None:
    features, _ = TemplateFeatures.fit_encode("bioner", TEXT)
    found = [n.split("=", 1)[1] for n in features.names(range(features.size)) if "substr" in n]
    assert {len(part) for part in found} == {2, 3, 4, 5, 6} and "xpress" in found


@pytest.mark.compiled
def test_crfsuite_attributes_of_conll2000() -> None:
    path = DATA / "conll2000" / "train.txt.gz"
    if not path.exists():
        pytest.skip(f"no {path}; set HOPEFEAR_DATA to the folder of the corpora")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = [block for block in file.read().split("\n\n") if block.strip()]
    text = sentences_of(
        [[tuple(row.split()[:2]) for row in block.strip().split("\n")] for block in blocks],
        "word",
        "pos",
    )
    features, found = TemplateFeatures.fit_encode("crfsuite-chunking", text)
    assert (text.n_tokens, features.size, len(found.indices)) == (211_727, 335_674, 3_808_439)
    assert sum(a.nbytes for a in features.arrays().values()) < 4_000_000
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    assert (again.encode(text).indices == found.indices).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_sets_name_the_lines_of_their_templates(name: str) -> None:
    assert all(t.line > 0 for t in load_templates(name).templates)


def test_the_documented_file_is_one(tmp_path) -> None:
    page = (ROOT / "docs" / "templates.md").read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    (tmp_path / "places.txt").write_text("New York\n", "utf-8")
    templates = load_templates(path)
    assert (templates.padding, templates.lexicons) == (True, {"place": ("New York",)})
    assert [t.text for t in templates.templates if t.on == "edges"] == ["pos[-1] pos[0]"]
    assert len(templates) == 22
