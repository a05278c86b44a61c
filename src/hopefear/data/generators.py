"""Problems with a known truth: sparse linear classes, Markov chains, phrases, lists.

All are functions of their arguments and the seed alone: the same call gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopefear.core.arrays import frozen
from hopefear.core.component import kernel
from hopefear.data.lists.candidates import CandidateLists, NamedEntries
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.data.sparse import SparseDataset

FREQUENT = 0.02  # share of the features, the most frequent, that holds half of the true weights
BLOCK = 1 << 20  # uniform numbers drawn at a time; fixed, or the rows would depend on n_examples


class SparseLinear(NamedTuple):
    """Sparse examples, their labels, and the weights that made the labels; arrays are read-only.

    ``values[indptr[i]:indptr[i + 1]]`` belong to the features ``indices[...]`` of example i.
    """

    indptr: NDArray[np.int64]  # [examples + 1] where each row starts
    indices: NDArray[np.int32]  # feature ids, distinct and rising in a row; 0 is the most frequent
    values: NDArray[np.float32]
    labels: NDArray[np.int32]  # [examples] class positions
    weights: NDArray[np.float32]  # [examples] all one
    truth: NDArray[np.float64]  # [features], or [features, classes] for more than two classes
    n_features: int

    @property
    def n_examples(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes by position: ``-1, 1``, or ``0, 1, ...`` for more than two."""
        return ("-1", "1") if self.truth.ndim == 1 else tuple(map(str, range(self.truth.shape[1])))

    def split(self, n_first: int) -> tuple[SparseLinear, SparseLinear]:
        """The first ``n_first`` examples and the rest: training and test data of one truth.

        Examples
        --------
        >>> train, test = sparse_linear(120, 500, per_row=(5, 9), true_weights=50).split(100)
        >>> train.n_examples, test.n_examples, train.truth is test.truth
        (100, 20, True)
        """
        if not 0 <= n_first <= self.n_examples:
            raise HopefearError(
                f"split({n_first}) of {self.n_examples} examples; give 0 to {self.n_examples}"
            )
        return self._rows(0, n_first), self._rows(n_first, self.n_examples)

    def dataset(self) -> SparseDataset:
        """The same examples as the dataset that learners read."""
        from hopefear.data.sparse import SparseDataset, SparseRows

        rows = SparseRows(self.indptr, self.indices, self.values, self.labels, self.weights)
        return SparseDataset(rows, self.n_features, self.classes, source="sparse_linear")

    def _rows(self, start: int, stop: int) -> SparseLinear:
        a, b = self.indptr[start], self.indptr[stop]
        return self._replace(
            indptr=_frozen(self.indptr[start : stop + 1] - a),
            indices=self.indices[a:b],
            values=self.values[a:b],
            labels=self.labels[start:stop],
            weights=self.weights[start:stop],
        )


def sparse_linear(
    n_examples: int,
    n_features: int,
    *,
    per_row: tuple[int, int] = (50, 100),
    true_weights: int = 10_000,
    label_noise: float = 0.05,
    margin: float = 0.0,
    classes: int = 2,
    norm: bool = True,
    seed: int = 0,
) -> SparseLinear:
    """Examples whose features are as uneven as words, labelled by sparse true weights.

    ``P(feature j) = ((j + 1)^(1/3) - j^(1/3)) / n_features^(1/3)``, close to ``rank^(-2/3)``;
    ``label = sign(truth . x)``, or ``argmax_k truth[:, k] . x``, then noise.

    Parameters
    ----------
    n_examples, n_features : int
        Size. The first rows of a larger problem with the same seed are the same rows.
    per_row : (int, int)
        Fewest and most features of an example, drawn evenly. More make labels depend on more.
    true_weights : int
        Non-zero rows of the truth (at most ``n_features``), half of them among the most frequent
        2 %. More make the problem harder: each is seen less often before it must be known.
    label_noise : float
        Share of labels replaced by another class; no learner's error can be expected below it.
    margin : float
        Examples that the truth decides by less are drawn again, so that with no noise
        ``u = truth / margin`` has ``y u . x >= 1`` on every example. Larger is easier to learn
        and slower to draw.
    classes : int
        Two give ``truth`` one column with signs; more give one non-negative column a class.
    norm : bool
        Scale rows to unit length; otherwise every value is 1.
    seed : int
        Another seed is another problem.

    Notes
    -----
    True features are evidence for one class each, in rotation along the ranks, so that classes
    come out nearly balanced although a few features are in most rows. An example that the truth
    leaves undecided gets the first class of a tie in rotation by its number.

    Examples
    --------
    >>> problem = sparse_linear(1000, 5000, per_row=(5, 20), true_weights=200, seed=1)
    >>> problem.labels.shape, problem.indices.dtype.name, int((problem.truth != 0).sum())
    ((1000,), 'int32', 200)
    """
    _check_sparse(n_examples, n_features, per_row, true_weights, label_noise, margin, classes)
    seeds = np.random.SeedSequence(seed).spawn(4)
    truth = _true_weights(np.random.default_rng(seeds[0]), n_features, true_weights, classes)
    lengths = np.random.default_rng(seeds[1]).integers(per_row[0], per_row[1] + 1, n_examples)
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    indices = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], np.float32)
    labels = np.empty(n_examples, np.int32)
    draws = np.random.default_rng(seeds[2])
    # 64 draws a feature are ample for distinct ids, even when a row holds all of them.
    uniforms = np.empty(max(BLOCK, 64 * per_row[1]))
    stamps = np.full(n_features, -1, np.int64)
    row = stamp = 0
    columns = truth.reshape(n_features, -1)
    # Sums of the same numbers in another order may differ by some units in the last place.
    floor = margin * (1.0 + 1e-9)
    while row < n_examples:
        draws.random(out=uniforms)
        begun = row
        row, stamp = _fill(
            row, stamp, uniforms, columns, floor, norm, indptr, indices, values, labels, stamps
        )
        if row == begun:
            raise HopefearError(
                f"margin={margin:g} is more than nearly all scores of these true weights; "
                "lower the margin, or raise true_weights"
            )
    _add_noise(np.random.default_rng(seeds[3]), labels, label_noise, classes)
    weights = np.ones(n_examples, np.float32)
    arrays = (_frozen(a) for a in (indptr, indices, values, labels, weights, truth))
    return SparseLinear(*arrays, n_features=n_features)  # type: ignore[misc, arg-type]


class HMMSample(NamedTuple):
    """Chains drawn from a hidden Markov model, and the model; arrays are read-only."""

    hidden: NDArray[np.int32]  # [items, length] states
    observed: NDArray[np.int32]  # [items, length] symbols
    prior: NDArray[np.float64]  # [states]
    transition: NDArray[np.float64]  # [states, states] P(next | state), a row for each state
    emission: NDArray[np.float64]  # [states, symbols] P(symbol | state)

    def split(self, shares: tuple[int, ...] = (7, 2, 1)) -> tuple[HMMSample, ...]:
        """Consecutive pieces in these shares: of 10,000 items 7,000, 2,000 and 1,000.

        Examples
        --------
        >>> [len(part.hidden) for part in hmm(1).split()]
        [7000, 2000, 1000]
        """
        if not shares or min(shares) < 0 or sum(shares) == 0:
            raise HopefearError(f"split{shares} needs shares >= 0 that are not all 0")
        ends = np.cumsum(shares) * len(self.hidden) // sum(shares)
        starts = np.concatenate(([0], ends[:-1]))
        return tuple(
            self._replace(hidden=self.hidden[a:b], observed=self.observed[a:b])
            for a, b in zip(starts, ends, strict=True)
        )


_SETTINGS = {
    1: ((0.7, 0.2, 0.1), 3, (0.75, 0.1, 0.05, 0.05, 0.05), 5),
    2: ((0.5, 0.3, 0.2), 3, (0.6, 0.15, 0.1, 0.1, 0.05), 5),
    3: ((0.7, 0.2, 0.1), 7, (0.4, 0.2, 0.1, 0.1, 0.1), 20),
}


def hmm(setting: int = 1, n_items: int = 10_000, length: int = 8, seed: int = 0) -> HMMSample:
    """Chains of the SWVP paper's synthetic experiments (section 6, footnote 6).

    ``y_1 ~ uniform, x_i ~ P(x | y_i), y_{i+1} ~ P(y' | y_i)``

    Parameters
    ----------
    setting : 1, 2 or 3
        The paper's setups: 1 and 2 have 3 states and 5 symbols, 3 has 7 states and 20 symbols.
        Later ones are harder.
    n_items : int
        Chains to draw. The paper takes 10,000 for training, development and test together.
    length : int
        Positions in each chain, 8 in the paper.
    seed : int
        Another seed is another model and sample: the paper draws 10 of each setup.

    Notes
    -----
    The numbers of a setup are permuted anew for each state. In setup 3 they are padded with
    zeros, and its emission numbers as printed sum to 0.9; we scale them to sum to 1. Its
    zeros also mean that some states may never be reached again once left.

    References
    ----------
    Dror and Reichart (2016), The structured weighted violations perceptron algorithm.

    Examples
    --------
    >>> sample = hmm(setting=2, n_items=4)
    >>> sample.hidden.shape, sorted(sample.transition[0].tolist())
    ((4, 8), [0.2, 0.3, 0.5])
    """
    if setting not in _SETTINGS:
        raise HopefearError(f"hmm has no setting {setting!r}; the paper has 1, 2 and 3")
    if n_items < 0 or length < 1:
        raise HopefearError(f"hmm needs n_items >= 0 and length >= 1, got {n_items}, {length}")
    rng = np.random.default_rng(seed)
    moves, n_states, symbols, n_symbols = _SETTINGS[setting]
    transition = _permuted_rows(rng, moves, n_states, n_states)
    emission = _permuted_rows(rng, symbols, n_states, n_symbols)
    prior = np.full(n_states, 1.0 / n_states)
    hidden = np.empty((n_items, length), np.int32)
    observed = np.empty((n_items, length), np.int32)
    for i in range(length):
        before = prior if i == 0 else transition[hidden[:, i - 1]]
        hidden[:, i] = _sample(rng, before, n_items)
        observed[:, i] = _sample(rng, emission[hidden[:, i]], n_items)
    arrays = (hidden, observed, prior, transition, emission)
    return HMMSample(*(_frozen(a) for a in arrays))


_CLOSED = {
    "determiner": ("the", "a", "this", "some", "every"),
    "pronoun": ("it", "they", "that", "she", "some"),
    "preposition": ("of", "in", "that", "to", "by", "about"),
    "modal": ("will", "may", "to", "can"),
}
_ENDINGS = {
    "noun": ("", "s", "er", "tion", "ing"),
    "verb": ("", "s", "ed", "ing"),
    "adjective": ("", "al", "ed", "ive"),
    "adverb": ("ly", "", "er"),
}
_PHRASES = {
    "NP": ("pronoun", "determiner noun", "determiner adjective noun", "noun", "adjective noun",
           "determiner noun noun", "determiner adverb adjective noun"),
    "VP": ("verb", "modal verb", "adverb verb", "modal adverb verb"),
    "PP": ("preposition",),
    "ADVP": ("adverb", "adverb adverb"),
}  # fmt: skip
_AFTER = {
    "": ("NP", "NP", "NP", "ADVP", "PP"),
    "NP": ("VP", "VP", "PP", "O", "O"),
    "VP": ("NP", "NP", "PP", "ADVP", "O"),
    "PP": ("NP",),
    "ADVP": ("NP", "VP", "PP", "O"),
}


def chunks(n_sentences: int = 1000, stems: int = 400, seed: int = 0) -> Sentences:
    """Sentences of made-up words in noun, verb, preposition and adverb phrases, labelled in BIO.

    ``phrase ~ P(phrase | phrase before), words ~ P(word | class), class ~ P(classes | phrase)``

    Parameters
    ----------
    n_sentences : int
        Sentences to draw.
    stems : int
        Stems that open classes share; more make more words that training has not seen.
    seed : int
        Another seed is another sample of the same language.

    Notes
    -----
    Classes share stems, endings and some small words, so that no word tells its label for sure and
    neighbours must help.

    Examples
    --------
    >>> text = chunks(2, seed=1)
    >>> list(text.columns), len(text), text.columns["label"][0][:2]
    (['word', 'label'], 2, 'B-')
    """
    if n_sentences < 1 or stems < 1:
        raise HopefearError(
            f"chunks needs n_sentences >= 1 and stems >= 1, got {n_sentences}, {stems}"
        )
    rng = np.random.default_rng(seed)
    words: list[str] = []
    labels: list[str] = []
    starts = [0]
    for _ in range(n_sentences):
        phrase = ""
        while phrase != "O":
            phrase = rng.choice(_AFTER[phrase])
            classes = () if phrase == "O" else str(rng.choice(_PHRASES[phrase])).split()
            words += [_word(rng, name, stems) for name in classes]
            labels += [f"{'I' if k else 'B'}-{phrase}" for k in range(len(classes))]
        words.append(".")
        labels.append("O")
        starts.append(len(words))
    columns = {"word": Column.of(words), "label": Column.of(labels)}
    return Sentences(np.array(starts, np.int64), columns, "generated chunks")


def _word(rng: np.random.Generator, name: str, stems: int) -> str:
    if name in _CLOSED:
        return str(rng.choice(_CLOSED[name]))
    # Half of the draws fall on an eighth of the stems, as frequent words do; each class has its
    # favourites.
    favourite = list(_ENDINGS).index(name) / len(_ENDINGS)
    stem = int(stems * ((rng.random() ** 3 + favourite) % 1.0))
    syllables = [
        f"{'bdfgklmnprst'[n % 12]}{'aeiou'[n % 5]}" for n in (stem, stem // 12, stem // 60)
    ]
    return "".join(syllables) + str(rng.choice(_ENDINGS[name]))


def _permuted_rows(
    rng: np.random.Generator, numbers: Sequence[float], n_rows: int, n_columns: int
) -> NDArray[np.float64]:
    row = np.zeros(n_columns)
    row[: len(numbers)] = numbers
    # As printed, setups 1 and 2 sum to 1 already; dividing would only blur their last digit.
    if abs(row.sum() - 1.0) > 1e-9:
        row /= row.sum()
    return np.stack([rng.permutation(row) for _ in range(n_rows)])


def _sample(rng: np.random.Generator, probabilities: np.ndarray, n: int) -> NDArray[np.int32]:
    """One draw for each row (or n from one row): how many cumulative sums the draw passes."""
    steps = np.atleast_2d(np.cumsum(probabilities, axis=-1))
    # The last sum may be 1 - 1e-16, and trailing zeros must never be drawn: compare to the total.
    u = rng.random(n)[:, None] * steps[:, -1:]
    return (u >= steps).sum(axis=1).astype(np.int32)


def _true_weights(
    rng: np.random.Generator, n_features: int, true_weights: int, classes: int
) -> NDArray[np.float64]:
    count = min(true_weights, n_features)
    n_frequent = max(1, int(FREQUENT * n_features))
    n_common = min(n_frequent, max(count // 2, count - (n_features - n_frequent)))
    common = rng.choice(n_frequent, n_common, replace=False)
    rare = n_frequent + rng.choice(n_features - n_frequent, count - n_common, replace=False)
    ids = np.sort(np.concatenate((common, rare)))
    sizes = np.abs(rng.standard_normal(count))
    turn = (np.arange(count) + rng.integers(classes)) % classes
    truth = np.zeros((n_features, classes))
    truth[ids, turn] = sizes
    return truth[:, 1] - truth[:, 0] if classes == 2 else truth


def _add_noise(
    rng: np.random.Generator, labels: np.ndarray, label_noise: float, classes: int
) -> None:
    noisy = rng.random((len(labels), 2))
    shift = 1 + (noisy[:, 1] * (classes - 1)).astype(np.int32)
    labels[:] = np.where(noisy[:, 0] < label_noise, (labels + shift) % classes, labels)


@kernel
def _fill(row, stamp, uniforms, truth, margin, norm, indptr, indices, values, labels, stamps):
    """Draw rows until the examples or the uniform numbers run out; the next row and stamp."""
    n_features, n_columns = truth.shape
    scores = np.zeros(n_columns)
    used = 0
    while row < len(labels):
        a, b = indptr[row], indptr[row + 1]
        size = np.float32(1.0 / np.sqrt(b - a)) if norm else np.float32(1.0)
        stamp += 1
        k = a
        while k < b and used < len(uniforms):
            u = uniforms[used]
            used += 1
            # The inverse of the distribution function (j / n)^(1/3).
            j = min(int(n_features * (u * u * u)), n_features - 1)
            if stamps[j] != stamp:
                stamps[j] = stamp
                indices[k] = j
                k += 1
        if k < b:
            break
        indices[a:b].sort()
        scores[:] = 0.0
        for k in range(a, b):
            for c in range(n_columns):
                scores[c] += truth[indices[k], c] * size
        label, lead = _decide(scores, row)
        if lead >= margin:
            values[a:b] = size
            labels[row] = label
            row += 1
    return row, stamp


@kernel
def _decide(scores, row):
    """The best class, and its lead over the next; ties go to the classes in rotation by row."""
    if len(scores) == 1:
        if scores[0] == 0.0:
            return row % 2, 0.0
        return (1 if scores[0] > 0.0 else 0), abs(scores[0])
    n = len(scores)
    best = row % n
    second = -np.inf
    for step in range(1, n):
        c = (row + step) % n
        if scores[c] > scores[best]:
            second = scores[best]
            best = c
        elif scores[c] > second:
            second = scores[c]
    return best, scores[best] - second


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _check_sparse(
    n_examples: int,
    n_features: int,
    per_row: tuple[int, int],
    true_weights: int,
    label_noise: float,
    margin: float,
    classes: int,
) -> None:
    low, high = per_row
    limits = (
        (n_examples >= 0, f"n_examples >= 0, got {n_examples}"),
        (1 <= n_features < 2**31, f"1 <= n_features < 2^31, got {n_features}"),
        (
            1 <= low <= high <= n_features,
            f"1 <= per_row[0] <= per_row[1] <= n_features ({n_features}), got {per_row}",
        ),
        (true_weights >= 1, f"true_weights >= 1, got {true_weights}"),
        (0.0 <= label_noise <= 1.0, f"0 <= label_noise <= 1, got {label_noise}"),
        (0.0 <= margin < np.inf, f"a finite margin >= 0, got {margin}"),
        (classes >= 2, f"classes >= 2, got {classes}"),
    )
    for holds, need in limits:
        if not holds:
            raise HopefearError(f"sparse_linear needs {need}")


def candidate_lists(
    n: int,
    candidates: int = 8,
    features: int = 50,
    *,
    per_candidate: int = 5,
    noise: float = 0.1,
    doubt: float = 1.0,
    seed: int = 1,
) -> CandidateLists:
    """Lists whose costs depend on hidden weights of sparse features.

    A candidate is worth ``u = w . f + noise * e``; its cost is how much less that is than the best
    of its list, as a share of the range there. The generator scores it ``u + doubt * e'`` and lists
    the highest scores first, as generators do.

    Parameters
    ----------
    n, candidates : int
        Lists, and candidates of each.
    features, per_candidate : int
        Features there are, ``f0``, ``f1`` and so on, and those of one candidate. The first are the
        most frequent.
    noise : float
        Standard deviation of the noise, beside hidden weights of length 1. More makes lists harder.
    doubt : float
        How far the generator is off. More leaves more to gain.
    seed : int
        Same seed, same lists.

    Examples
    --------
    >>> lists = candidate_lists(2, candidates=3, seed=1)
    >>> lists.starts.tolist(), float(lists.costs.min()), lists.sparse.names[:2]
    ([0, 3, 6], 0.0, ['f0', 'f1'])
    """
    if min(n, candidates) < 1 or not 1 <= per_candidate <= features:
        raise HopefearError(
            f"{n} lists of {candidates} candidates with {per_candidate} of {features} features: "
            "give at least one of each, and no more features to a candidate than there are"
        )
    random = np.random.default_rng(seed)
    truth = random.normal(size=features)
    total = n * candidates
    # The highest of random keys, larger on average for earlier features, choose without repetition.
    keys = random.random((total, features)) ** np.sqrt(1.0 + np.arange(features))
    ids = np.sort(np.argsort(-keys, axis=1, kind="stable")[:, :per_candidate], axis=1)
    values = random.integers(1, 4, ids.shape).astype(np.float64)
    worth = (truth[ids] * values).sum(axis=1) + noise * random.normal(size=total)
    scores = worth + doubt * random.normal(size=total)
    by_list = worth.reshape(n, candidates)
    best, least = by_list.max(axis=1, keepdims=True), by_list.min(axis=1, keepdims=True)
    costs = (best - by_list) / np.where(best > least, best - least, 1.0)
    order: np.ndarray = np.argsort(-scores.reshape(n, candidates), axis=1, kind="stable")
    order = (order + candidates * np.arange(n)[:, None]).ravel()
    sparse = NamedEntries(
        [f"f{j}" for j in range(features)],
        frozen(np.arange(total + 1, dtype=np.int64) * per_candidate),
        frozen(ids[order].astype(np.int32).ravel()),
        frozen(values[order].ravel()),
    )
    return CandidateLists(
        [str(i + 1) for i in range(n)],
        frozen(np.arange(n + 1, dtype=np.int64) * candidates),
        [""] * total,
        frozen(scores[order]),
        frozen(costs.ravel()[order]),
        sparse=sparse,
        source="generated",
    )
