"""Text into sentences and tokens: hard cases by hand, and what holds for any text."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data import tokenizer as module
from hopefear.data.tokenizer import Tokenizer
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted

# Tokens between blanks, sentences between bars; what stands in the text is got by the next column.
CASES = [
    ("Dr. Lee didn't pay $1,234.50. Why?", "Dr. Lee did n't pay $ 1,234.50 . | Why ?"),
    ("It's 3.5% of -5 and .5, at 10:30 a.m. on 5/6/2020.", None),
    ("He lives in the U.S. He left.", "He lives in the U.S. | He left ."),
    ("The U.S. Army, e.g. in Calif., won.", "The U.S. Army , e.g. in Calif. , won ."),
    ("J. R. R. Tolkien met A.B. Smith, Ph.D.", "J. R. R. Tolkien met A.B. Smith , Ph.D."),
    ("So did I. Then I. M. Pei came.", "So did I . | Then I. M. Pei came ."),
    ("O'Brien's dogs' tails", "O'Brien 's dogs ' tails"),
    ("U.S.'s and Yahoo!'s", "U.S. 's and Yahoo ! 's"),
    ("I cannot, can't, won't, and wanna go", "I can not , ca n't , wo n't , and wan na go"),
    ("don’t “quote” ‘me’", "do n’t “ quote ” ‘ me ’"),
    ("'Tis 'em in the '80s, rock 'n' roll", "'T is 'em in the '80s , rock 'n' roll"),
    ('He said "Stop!" and left. "Why?" he asked.', None),
    ('"Go." She went. (It rained.) Then', '" Go . " | She went . | ( It rained . ) | Then'),
    (
        "Visit https://a.b/c?d=e, or mail a.b@c.org.",
        "Visit https://a.b/c?d=e , or mail a.b@c.org .",
    ),
    ("@ann: #tag #1 www.x.org/y.", "@ann : #tag # 1 www.x.org/y ."),
    ("well-known and/or 1990-95, a--b — c – d", "well-known and / or 1990-95 , a -- b — c – d"),
    ("Wait... what?! Yes!! ok", "Wait ... what ?! | Yes !! ok"),
    ("AT&T uses C++, C# and snake_case", "AT&T uses C++ , C# and snake_case"),
    ("US$5, C$3, €5 and £6bn", "US$ 5 , C$ 3 , € 5 and £ 6bn"),
    ("👩\u200d👩\u200d👧 🇩🇪🇫🇷 👍🏽 1️⃣ :-) <3", "👩\u200d👩\u200d👧 🇩🇪 🇫🇷 👍🏽 1️⃣ :-) <3"),
    ("我爱北京。天安门 ok！Next.", "我 爱 北 京 。 | 天 安 门 ok ！ | Next ."),
    ("ひらがな 한국어 단어", "ひ ら が な 한국어 단어"),
    ("Am 3. Oktober war es. 1. Open it. In 1995. Then", None),
    ("The end.The next os.path and file.txt", "The end . | The next os.path and file.txt"),
    ("cafe\u0301 nai\u0308ve हिन्दी", "cafe\u0301 nai\u0308ve हिन्दी"),
    ("Title\n\nText goes\non. New", "Title | Text goes on . | New"),
    ("A line ends.\nand the next begins", "A line ends . | and the next begins"),
    ("He met Dr.\nSmith", "He met Dr. Smith"),
    ("zero\u200bwidth\ufeff and \xa0blank", "zero width and blank"),
    ("[Note: see Fig. 3.] Next", "[ Note : see Fig. 3 . ] | Next"),
    ("Vitamin C.", "Vitamin C ."),
    ("", ""),
    (" \n\t ", ""),
]
WANTED = {
    "It's 3.5% of -5 and .5, at 10:30 a.m. on 5/6/2020.": (
        "It 's 3.5 % of -5 and .5 , at 10:30 a.m. on 5/6/2020 ."
    ),
    'He said "Stop!" and left. "Why?" he asked.': (
        'He said " Stop ! " and left . | " Why ? " he asked .'
    ),
    "Am 3. Oktober war es. 1. Open it. In 1995. Then": (
        "Am 3 . Oktober war es . | 1 . Open it . | In 1995 . | Then"
    ),
}


def shown(tokenizer: Tokenizer, text: str) -> str:
    return " | ".join(" ".join(text[a:b] for a, b in spans) for spans in tokenizer.sentences(text))


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_hard_cases(text, wanted):
    assert shown(Tokenizer(), text) == (WANTED[text] if wanted is None else wanted)


def test_clitics_of_other_languages():
    romance = Tokenizer("romance")
    assert shown(romance, "L'homme qu'il vit aujourd'hui.") == "L' homme qu' il vit aujourd'hui ."
    assert shown(romance, "l’amico dell’Italia") == "l’ amico dell’ Italia"
    assert shown(Tokenizer("none"), "Ann's can't cannot") == "Ann's can't cannot"
    assert shown(Tokenizer(hyphens=False), "well-known") == "well - known"


def test_spelling_of_the_penn_treebank_leaves_offsets_alone():
    tokenizer = Tokenizer(quotes="penn", brackets=True)
    text = 'He said "no" (“yes”) — it’s…'
    spans = tokenizer.tokens(text)
    assert "".join(text[a:b] for a, b in spans) == text.replace(" ", "")
    words = tokenizer.words(text, spans)
    assert words[:6] == ["He", "said", "``", "no", "''", "-LRB-"]
    assert words[6:] == ["``", "yes", "''", "-RRB-", "—", "it", "'s", "..."]
    assert Tokenizer(quotes="plain").words(text, spans)[6:9] == ['"', "yes", '"']
    assert Tokenizer().words(text, spans)[6:9] == ["“", "yes", "”"]


def test_rules_that_suit_the_words_of_a_model():
    penn = Tokenizer.suiting({"do", "n't", "``", "''", "-LRB-", "Rev.", "Obs.", "so-called"})
    assert (penn.clitics, penn.quotes, penn.brackets, penn.hyphens) == (
        "english",
        "penn",
        True,
        True,
    )
    assert shown(penn, "See Obs. 3 here") == "See Obs. 3 here"
    split = Tokenizer.suiting({f"word{'x' * i}" for i in range(60)} | {"-", "“"})
    assert (split.clitics, split.hyphens, split.quotes) == ("none", False, "text")
    assert Tokenizer.suiting({"l'", "homme"}).clitics == "romance"
    assert Tokenizer.suiting(None).clitics == "english"


def test_what_is_no_choice_is_refused():
    with pytest.raises(HopefearError, match="clitics must be one of english, romance, none"):
        Tokenizer("welsh")
    with pytest.raises(HopefearError, match="quotes must be one of"):
        Tokenizer(quotes="french")


TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAbBn.'’\"!?… \n\n-,$5()[]{}@:/我。\u200b\u0301👍🏽\u200d\r\t#&+_"),
        st.characters(),
    ),
    max_size=60,
)
RULES = st.builds(
    Tokenizer,
    st.sampled_from(module.CLITICS),
    st.booleans(),
    st.sampled_from(module.QUOTES),
    st.booleans(),
    st.sampled_from([frozenset(), frozenset({"aA.", "b."})]),
)


@settings(max_examples=500, deadline=None)
@given(TEXTS, RULES)
def test_tokens_cover_all_but_blanks_in_order(text, tokenizer):
    spans = [span for sentence in tokenizer.sentences(text) for span in sentence]
    assert spans == tokenizer.tokens(text)
    before = 0
    for a, b in spans:
        assert before <= a < b <= len(text)
        assert all(module._BLANK.fullmatch(c) for c in text[before:a])
        assert not re.search(r"\s", text[a:b])
        before = b
    assert all(module._BLANK.fullmatch(c) for c in text[before:])
    words = tokenizer.words(text, spans)
    assert len(words) == len(spans) and all(words)


@settings(max_examples=500, deadline=None)
@given(TEXTS, RULES, st.lists(st.integers(0, 60), max_size=6), st.booleans())
def test_a_stream_gives_the_sentences_of_the_whole(text, tokenizer, cuts, long):
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG", 10 if long else module.LONG)
        sentences, texts = [], []
        for at, part, some in tokenizer.stream(pieces):
            assert text.startswith(part, at)
            texts.append(part)
            sentences += [[(at + a, at + b) for a, b in spans] for spans in some]
    assert "".join(texts) == text
    assert sentences == tokenizer.sentences(text)


def test_a_sentence_is_answered_when_its_line_ends():
    arrivals = []

    def pieces():
        for line in ("One. Two", " three.\n", "Mr.\n", "Lee\n", "\n", "End"):
            arrivals.append(line)
            yield line

    log = [(len(arrivals), text) for _, text, _ in Tokenizer().stream(pieces())]
    assert log == [(2, "One. Two three.\n"), (5, "Mr.\nLee\n\n"), (6, "End")]


def test_what_has_no_end_is_cut_or_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_SENTENCE", 10)
    assert [len(s) for s in Tokenizer().sentences("a " * 25)] == [10, 10, 5]
    monkeypatch.setattr(module, "MAX_PIECE", 100_000)
    with pytest.raises(HopefearError, match="that is no text"):
        list(Tokenizer().stream("x" * 1000 for _ in range(200)))


@pytest.mark.parametrize(
    "unit", ["a.", "a-", "a@", "'", "1,", ".", "a'", "&a", "\u200d", "Dr.", "http://"]
)
def test_no_text_takes_long(unit):
    begin = time.process_time()
    Tokenizer().sentences(unit * 20_000)
    assert time.process_time() - begin < 2.0


def test_a_megabyte_takes_less_than_a_second():
    text = 'The U.S. economy grew 3.5% in 1995, Mr. Lee didn\'t say; "Why?" he asked us. ' * 2500
    tokenizer = Tokenizer()
    tokenizer.tokens("compiled")
    begin = time.process_time()
    tokenizer.sentences(text)
    assert len(text) / (time.process_time() - begin) > 0.5e6  # 2 MB/s where nothing else runs
