"""Text as sentences of tokens, by rules: for taggers, whose models were trained on tokens.

A token is a stretch of the text, known by where it begins and ends. One regular expression finds
all of them; sentences are then cut behind tokens that can end one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby

from hopefear.errors import HopefearError

Span = tuple[int, int]

MAX_SENTENCE = 5000  # tokens: what has more is no sentence, and is cut
MAX_PIECE = 1 << 20  # characters without an end of a sentence that a stream may bring
LONG = 1 << 14  # characters that are buffered until the end of their line

CLITICS = ("english", "romance", "none")
QUOTES = ("text", "plain", "penn")

# Never the last token of a sentence: something belongs behind them.
_TITLES = """
Mr Mrs Ms Messrs Dr Prof Rev Fr Hon Gov Sen Rep Gen Col Lt Maj Capt Cpl Sgt Adm Cmdr Pres Supt St
Ste Mt Ft No Nos Nr Vol Ch Sec Art Fig Figs Eq Eqs Ref Refs pp p vs v cf al approx ca eg ie viz
Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat
Hr Frl Dipl Ing bzw bzgl evtl ggf inkl exkl vgl sog usf Abb Abs Bd Str Tel
Mme Mlle MM Mgr Sr Sra Srta Dña Ud Uds Sig Dott Avv Arch dhr mevr drs bv nl dr
"""
# These may end a sentence, depending on the next characters.
_SHORT_WORDS = """
Inc Corp Ltd Co Cos Bros Assn Dept Univ Est Jr Esq etc Ave Blvd Rd Hwy Bldg Ariz Calif Colo Conn Fla
Ill Ind Kan Mass Mich Minn Miss Neb Nev Okla Ore Penn Tenn Tex Wash Wis Wyo mph lb lbs oz hr hrs min
sec u usw Ges GmbH
"""
_DOTTED = "Ph.D. Ed.D. Lit.D. LL.B. LL.D. B.Sc. M.Sc. Dipl.-Ing. St.-"
# Words that begin sentences oftener than they go on behind an abbreviation.
_STARTERS = """
the a an this that these those it he she they we you i his her its their our my there here in on at
by for from with to as if when while after before since although though but and or so yet however
then now what who where why how no not one some many most all both each every also still
der die das ein eine er sie es wir ihr ich und aber oder doch im am bei mit von zu nach für dann so
le la les un une il elle ils elles nous vous je on ce cette ces mais et ou donc dans en sur pour par
el los las una y pero este esta en con il lo gli uno ma di da nel con per
de het een hij zij wij ze maar om op in
"""
_CLOSERS = frozenset("\"'”’»›)]}") | {"''"}
_ENDS = frozenset(".!?…。！？")

# Characters that are tokens by themselves: Han, and Japanese syllables.
_CJK = r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_FACE = (
    r"[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_MODIFIERS = r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
_EMOJI = (
    r"[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3|"
    rf"{_FACE}{_MODIFIERS}(?:\u200d{_FACE}{_MODIFIERS})*"
)
# Zero-width blanks and direction marks separate tokens.
_HIDDEN = r"\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_BLANK = re.compile(rf"[\s{_HIDDEN}]")


def _marks() -> str:
    """Characters that are written over, under or behind letters, as ranges of a class."""
    codes = [c for c in range(0x300, 0xAC00) if unicodedata.category(chr(c))[0] == "M"]
    runs = [list(run) for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])]
    ranges = [(run[0][1], run[-1][1]) for run in runs]
    return "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in ranges) + r"\u00ad\u200c\u200d"


@dataclass(frozen=True)
class Tokenizer:
    """Rules that cut text into sentences and tokens.

    Words, numbers (``1,234.5``), abbreviations (``U.S.``, ``Dr.``), initials, addresses of the web
    and of mail, ellipses, emoji and runs of ``!`` and ``?`` are tokens; every other sign that is no
    blank is one, too, and so is every Chinese or Japanese character.

    Parameters
    ----------
    clitics : {"english", "romance", "none"}
        Parts of words that are tokens: ``do n't``, ``it 's``, ``can not`` as in the Penn treebank;
        ``l' homme``, ``d' Italia``; or none.
    hyphens : bool
        Whether ``well-known`` is one token, as in the Penn treebank, or three.
    quotes : {"text", "plain", "penn"}
        What :meth:`words` writes for quotation marks: what is there, straight ones for curved ones,
        or two backquotes and two apostrophes.
    brackets : bool
        Whether :meth:`words` writes ``-LRB-`` and the like for brackets.
    abbreviations : collection of str
        Further tokens that end in a period.

    Notes
    -----
    A sentence ends behind ``.``, ``!``, ``?`` or an ellipsis, and the closing quotes and brackets
    that touch it, if no lower-case letter follows; behind an abbreviation only if a word follows
    that often begins sentences, such as ``The``; at the end of a line behind such a sign; and at a
    blank line. Other line breaks are blanks.

    Examples
    --------
    >>> text = "Dr. Lee didn't pay $1,234.50. Why?"
    >>> tokenizer = Tokenizer()
    >>> [tokenizer.words(text, spans) for spans in tokenizer.sentences(text)]
    [['Dr.', 'Lee', 'did', "n't", 'pay', '$', '1,234.50', '.'], ['Why', '?']]
    >>> tokenizer.tokens("It's me")
    [(0, 2), (2, 4), (5, 7)]
    """

    clitics: str = "english"
    hyphens: bool = True
    quotes: str = "text"
    brackets: bool = False
    abbreviations: Collection[str] = frozenset()

    def __post_init__(self) -> None:
        for name, values in (("clitics", CLITICS), ("quotes", QUOTES)):
            if getattr(self, name) not in values:
                raise HopefearError(
                    f"{name} must be one of {', '.join(values)}, not {getattr(self, name)!r}"
                )

    @classmethod
    def suiting(cls, words: Collection[str] | None) -> Tokenizer:
        """The rules under which text looks as the words of a model do.

        Parameters
        ----------
        words : collection of str, optional
            Tokens of the training data; None where they are unknown.

        Examples
        --------
        >>> Tokenizer.suiting({"do", "n't", "``", "-LRB-", "Rev.", "so-called"}).quotes
        'penn'
        >>> Tokenizer.suiting({"l'", "homme"}).clitics, Tokenizer.suiting({"a", "b"}).clitics
        ('romance', 'none')
        """
        if words is None:
            return cls(quotes="plain")
        words = words if isinstance(words, set | frozenset) else frozenset(words)
        clitics = "none"
        if words & {"n't", "'s", "n’t", "’s", "'re"}:
            clitics = "english"
        elif words & {"l'", "L'", "d'", "D'", "l’", "d’", "qu'", "dell'"}:
            clitics = "romance"
        quotes = "plain"
        if "``" in words:
            quotes = "penn"
        elif any("’" in word or "“" in word or "”" in word for word in words):
            quotes = "text"
        dotted = {w for w in words if w[-1:] == "." and _ABBREVIATION.fullmatch(w)}
        return cls(
            clitics,
            "-" not in words or 50 * sum(map(bool, map(_HYPHENED.fullmatch, words))) > len(words),
            quotes,
            bool(words & {"-LRB-", "-RRB-"}),
            frozenset(dotted),
        )

    def tokens(self, text: str) -> list[Span]:
        """Begin and end of every token.

        >>> Tokenizer().tokens("He can't.")
        [(0, 2), (3, 5), (5, 8), (8, 9)]
        """
        return [match.span() for match in self._pattern.finditer(text)]

    def sentences(self, text: str) -> list[list[Span]]:
        """The tokens of each sentence.

        >>> len(Tokenizer().sentences("Hello\\n\\nMr. Lee lives in the U.S. He said so."))
        3
        """
        spans = self.tokens(text)
        ends = sorted({*self._ends(text, spans), *self._gaps(text, spans), len(spans)} - {0})
        sentences, begin = [], 0
        for end in ends:
            while end - begin > MAX_SENTENCE:
                sentences.append(spans[begin : begin + MAX_SENTENCE])
                begin += MAX_SENTENCE
            if end > begin:
                sentences.append(spans[begin:end])
            begin = end
        return sentences

    def words(self, text: str, spans: Iterable[Span]) -> list[str]:
        """Returns the tokens as a model knows them: as written, or as ``quotes`` and
        ``brackets`` convert."""
        words = [text[a:b] for a, b in spans]
        if self.brackets:
            words = [_BRACKETS.get(word, word) for word in words]
        if self.quotes == "text":
            return words
        if self.quotes == "penn":
            words = [
                _directed(text, span) if word in ('"', "“", "”", "„") else word
                for word, span in zip(words, spans, strict=True)
            ]
        return [word if word.isascii() else word.translate(_STRAIGHT) for word in words]

    def stream(self, pieces: Iterable[str]) -> Iterator[tuple[int, str, list[list[Span]]]]:
        """Yields the offset of a text, the text, and its sentences, as soon as they are certain.

        The sentences are those of the whole text. A sentence is sure when its line ends behind a
        sign that ends sentences, at a blank line, and in long lines when two more stand behind it.

        >>> for at, text, sentences in Tokenizer().stream(["It ra", "ins.\\nWe", "\\nstay.\\n"]):
        ...     print(at, [[text[a:b] for a, b in spans] for spans in sentences])
        0 [['It', 'rains', '.']]
        10 [['We', 'stay', '.']]
        """
        text, at, searched = "", 0, 0
        for piece in pieces:
            text += piece
            cut = self._sure(text, searched)
            searched = 0 if cut else text.rfind("\n") + 1
            if cut:
                yield at, text[:cut], self.sentences(text[:cut])
                text, at = text[cut:], at + cut
            elif len(text) > MAX_PIECE:
                raise HopefearError(
                    f"{len(text):,} characters without a blank or the end of a sentence: that is "
                    "no text"
                )
        if text:
            yield at, text, self.sentences(text)

    def _sure(self, text: str, searched: int) -> int:
        """Returns where a text can be cut before its next characters are known; 0 where it cannot.

        Parameters
        ----------
        text : str
            The text so far.
        searched : int
            Beginning of the first line that was not looked at before.
        """
        after = text.rfind("\n") + 1
        while after > searched:
            begin = text.rfind("\n", 0, after - 1) + 1
            line = text[begin:after]
            if begin and not line.strip():
                return after
            if self._ends_line(line):
                return after
            after = begin
        if len(text) < LONG:
            return 0
        sentences = self.sentences(text)
        # The last one may go on, and so may the word that shows where the one before it ends.
        return sentences[-2][0][0] if len(sentences) > 2 else 0

    def _ends_line(self, line: str) -> bool:
        """Whether a sentence ends with a line."""
        if not _LAST.search(line):
            return False
        spans = self.tokens(line)
        k = len(spans) - 1
        while k > 0 and line[slice(*spans[k])] in _CLOSERS and spans[k][0] == spans[k - 1][1]:
            k -= 1
        token = line[slice(*spans[k])]
        return token[-1] in _ENDS and not _is_abbreviation(token)

    def _ends(self, text: str, spans: list[Span]) -> Iterator[int]:
        """Numbers of the tokens that sentences end before."""
        n, before = len(spans), 0
        for k in [k for k, (_, b) in enumerate(spans) if text[b - 1] in _ENDS]:
            a, b = spans[k]
            end = k + 1
            while end < n and spans[end][0] == spans[end - 1][1] and self._closes(text, spans[end]):
                end += 1
            if end >= n or end <= before:
                continue
            gap = text[spans[end - 1][1] : spans[end][0]]
            follows = text[slice(*spans[end])]
            sure = self._is_end(text[a:b], gap, follows)
            if (
                sure
                and end == k + 1
                and "\n" not in gap
                and _ORDINAL.fullmatch(text, *spans[k - 1])
            ):
                # "am 3. Oktober" continues, and what begins a sentence or a line is a number of it.
                first = k - 1 <= before or "\n" in text[spans[k - 2][1] : spans[k - 1][0]]
                sure = not first and follows.lower() in _FIRST
            if sure:
                before = end
                yield end

    def _closes(self, text: str, span: Span) -> bool:
        token = text[slice(*span)]
        if token in ('"', "'", "’") and span[1] < len(text) and text[span[1]].isalnum():
            return False  # it opens
        return token in _CLOSERS or (token[-1] in _ENDS and not _is_abbreviation(token))

    def _is_end(self, token: str, gap: str, follows: str) -> bool:
        """Whether a sentence ends between a token, with what closes it, and the next one."""
        first = follows[0]
        if _is_abbreviation(token):
            return token not in _NEVER_LAST and first.isupper() and follows.lower() in _FIRST
        if "\n" in gap or token[0] in "。！？":
            return True
        return not first.islower() and first not in _JOINTS and (bool(gap) or first.isupper())

    def _gaps(self, text: str, spans: list[Span]) -> Iterator[int]:
        """Numbers of the tokens behind blank lines."""
        starts = [a for a, _ in spans]
        for gap in _GAP.finditer(text):
            yield bisect_left(starts, gap.end())

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _pattern(self.clitics, self.hyphens, frozenset(self.abbreviations))


def _is_abbreviation(token: str) -> bool:
    return len(token) > 1 and token[-1] == "." and token[-2] not in _ENDS


@cache
def _pattern(clitics: str, hyphens: bool, abbreviations: frozenset[str]) -> re.Pattern[str]:
    """Compiles one pattern for all tokens; earlier alternatives win."""
    letter = rf"[^\W\d_{_CJK}]"
    word = rf"(?:[^\W{_CJK}]+(?:[{_marks()}]+[^\W{_CJK}]*)*)"
    apostrophe = "['’]"
    short = rf"{apostrophe}(?i:s|re|ve|ll|d|m)(?![\w'’])"
    joint = rf"(?<=\d)[.,:/](?=\d)|&(?={letter})|\.(?=[a-zß-öø-ÿ])"
    if hyphens:
        joint += r"|[-\u2010\u2011](?=\w)"
    first = []
    if clitics == "english":
        joint += rf"|(?!{short}){apostrophe}(?=\w)"
        first += [
            r"(?i:\b(?:can(?=not\b)|(?:gon|wan)(?=na\b)|got(?=ta\b)|(?:gim|lem)(?=me\b)))",
            rf"(?<=[\w.)\]!]){short}",
            rf"(?<!\w){apostrophe}(?i:n){apostrophe}(?!\w)",
            rf"(?<=\w)(?i:n{apostrophe}t)(?!\w)",
            rf"(?<!\w){apostrophe}(?i:t)(?=(?i:is|was)\b)",
            rf"(?<!\w){apostrophe}(?:(?i:em|til|cause|n)\b|\d\ds?\b)",
        ]
    else:
        joint += rf"|{apostrophe}(?=\w)"
    quick = rf"{letter}+(?=[\s,;)])"
    # Most tokens are found here without a look at the rest, which would find the same.
    plain = rf"[A-Za-z]+(?=[\s,;)]){_UNDIVIDED if clitics == 'english' else ''}|[,)]|\.(?!\S)"
    if clitics == "romance":
        first.append(
            rf"(?i:\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|(?:d|n|s|qu)?(?:al|el|ell)"
            rf"|all|dall|coll|un|quest|quell){apostrophe})(?={letter})"
        )
    last = [
        rf"{letter}+(?=n{apostrophe}t(?!\w))" if clitics == "english" else "",
        _EMOJI,
        _WEB,
        _shorts(abbreviations),
        rf"(?<!\w){letter}\.(?:{letter}\.)+(?!\w)|(?<!\w)(?:{letter}\.)+{letter}\b(?![.'’@-])",
        rf"(?<!\w)(?:(?!I){_UPPER}\.(?=[^\S\n]+\S|[^\s\w])|I\.(?=[^\S\n]+{_UPPER}\.))",
        rf"(?<![\w)\]])[-+−]?\.?(?=\d){word}(?:(?:{joint}){word})*",
        r"(?<!\S)(?:[:;=][-^o']?[()\[\]DPp/\\|](?!\w)|<3)",
        r"\b[A-Z]{1,3}\$",
        rf"{word}(?:(?:{joint}){word})*(?:\+\+|(?<=\b[CF])#)?",
        r"\.{2,}|--+|[!?]{2,}|``|''|([*=~#+<>$^|\\])\1+",
        rf"[^\s{_HIDDEN}]",
    ]
    if clitics != "romance":
        first.insert(0, plain)
    return re.compile("|".join(filter(None, [*first, quick, *last])))


def _shorts(abbreviations: frozenset[str]) -> str:
    """Words that end in a period, behind a look that is seldom true."""
    words = sorted(
        {*_NEVER_LAST, *_words_of(_SHORT_WORDS), *_DOTTED.split(), *abbreviations},
        key=len,
        reverse=True,
    )
    return rf"(?=[\w.-]{{1,30}}\.)\b(?:{'|'.join(map(re.escape, words))})(?!\w)"


def _words_of(words: str) -> list[str]:
    """Abbreviations of a list, as they are and with a capital."""
    return [f"{form}." for word in words.split() for form in {word, word[:1].upper() + word[1:]}]


def _directed(text: str, span: Span) -> str:
    """A double quotation mark as the Penn treebank has it: one that opens, or one that closes."""
    a, b = span
    if text[a:b] != '"':
        return "''" if text[a:b] == "”" else "``"
    before, after = text[a - 1 : a], text[b : b + 1]
    opens = (not before or before.isspace() or before in "([{-—–") and not after.isspace()
    return "``" if opens and after else "''"


# Not behind what may be two tokens: cannot, gonna, wanna, gotta, gimme, lemme.
_UNDIVIDED = "(?<![Oo][Tt])(?<![Nn][Aa])(?<![Tt][Aa])(?<![Mm][Ee])"
_FIRST = frozenset(_STARTERS.split())
_NEVER_LAST = frozenset([*_words_of(_TITLES), "e.g.", "i.e.", "z.B.", "d.h.", "u.a.", "p.ex."])
_UPPER = "[A-ZÀ-ÖØ-ÞČĐŁŘŚŠŻŽΑ-ΩА-Я]"
_WEB = (
    r"(?:https?|ftp)://[^\s<>\"“”«»]*[\w/#=&%+~$-]|\bwww\.[^\s<>\"“”«»]*[\w/#=&%+~$-]"
    r"|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
    r"|(?<!\w)[@#][^\W\d]\w*"
)
_ABBREVIATION = re.compile(r"[^\W\d_][\w.-]*\.")
_HYPHENED = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_ORDINAL = re.compile(r"\d{1,2}")
_GAP = re.compile(r"\n[^\S\n]*\n\s*")
_LAST = re.compile(r"[.!?…。！？][\"'”’»›)\]}]*\s*$")
_JOINTS = frozenset(",;:-–—")
_BRACKETS = {
    "(": "-LRB-",
    ")": "-RRB-",
    "[": "-LSB-",
    "]": "-RSB-",
    "{": "-LCB-",
    "}": "-RCB-",
}
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "…": "..."})
