"""What is worth trying of a parameter: the spaces that ``hopefear search`` draws from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Numbers between two ends.

    Parameters
    ----------
    low, high : float
        The ends, both in it.
    log : bool
        Draw the logarithm evenly: for strengths and rates.
    whole : bool
        Whole numbers alone.
    auto : bool
        Multiples of the automatic rate, which are written as ``"3x"``.

    Examples
    --------
    >>> Range(0.1, 10.0, log=True, auto=True).value(0.123456)
    '0.12346x'
    >>> Range(0.1, 10.0, auto=True).place("auto"), Range(2, 20, whole=True).value(3)
    (1.0, 3)
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    auto: bool = False

    def draw(self, trial: Any, name: str) -> Any:
        """A value that an Optuna trial suggests."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return self.value(trial.suggest_float(name, self.low, self.high, log=self.log))

    def value(self, place: float) -> Any:
        """The parameter at a place of the range; five digits are plenty, and can be read."""
        if self.whole:
            return int(place)
        number = float(f"{place:.5g}")
        return f"{number:g}x" if self.auto else number

    def place(self, value: Any) -> Any:
        """Where a value of the parameter stands, or the end that is next to it."""
        text = str(value).removesuffix("x")
        place = min(max(1.0 if text == "auto" else float(text), self.low), self.high)
        return int(place) if self.whole else place

    def holds(self, value: Any) -> bool:
        """Whether a value of the parameter is in the range.

        >>> Range(0.1, 10.0).holds("auto"), Range(0.1, 10.0, auto=True).holds("auto")
        (False, True)
        """
        text = str(value)
        if self.auto != (text == "auto" or text.endswith("x")):
            return False
        return self.low <= (1.0 if text == "auto" else float(text.removesuffix("x"))) <= self.high


class Choice(NamedTuple):
    """One of some values.

    >>> Choice(("last", "averaged")).place("voted")
    'last'
    """

    values: tuple[Any, ...]

    def draw(self, trial: Any, name: str) -> Any:
        """A value that an Optuna trial suggests."""
        return trial.suggest_categorical(name, self.values)

    def place(self, value: Any) -> Any:
        """The value, where it is one of them, else the first."""
        return next((each for each in self.values if str(each) == str(value)), self.values[0])

    def holds(self, value: Any) -> bool:
        """Whether it is one of them; numbers may be written as words."""
        return str(value) in map(str, self.values)


Dimension = Range | Choice

# Strengths and rates are tried up to so many times the default, and down to that part of it.
_NEAR = {
    "rate": 10.0,
    **dict.fromkeys(("C", "l1", "l2", "lam", "gravity", "r"), 30.0),
    **dict.fromkeys(("inverse_temperature", "phi", "beta"), 5.0),
}
_FIXED: Mapping[str, Dimension] = {
    "decay": Range(0.7, 1.0),
    "n": Range(2, 20, log=True, whole=True),
}
# These mean little where a recipe leaves them as its rule has them: the scale of a perceptron's
# weights, say, changes nothing.
_OWN = ("rate", "decay")
NETWORK_SPACE: dict[str, Dimension] = {
    "rate": Range(5e-4, 8e-3, log=True),
    "dropout": Range(0.0, 0.6),
    "word_dropout": Range(0.0, 0.5),
    "hidden": Range(100, 400, log=True, whole=True),
}


def near_defaults(values: Mapping[str, Any], own: Collection[str]) -> dict[str, Dimension]:
    """A space around the defaults of a learner; penalties of 0 stay where they are.

    Parameters
    ----------
    values : mapping
        Every parameter with its default.
    own : collection of str
        Parameters for which the recipe has a default of its own.

    Examples
    --------
    >>> near_defaults({"l1": 1e-6, "l2": 0.0, "rate": 1.0}, ())
    {'l1': Range(low=3.33e-08, high=3e-05, log=True, whole=False, auto=False)}
    """
    space: dict[str, Dimension] = {}
    for name, value in values.items():
        if name in _OWN and name not in own:
            continue
        if name in _FIXED:
            space[name] = _FIXED[name]
        elif name in _NEAR and value == "auto":
            space[name] = Range(1.0 / _NEAR[name], _NEAR[name], log=True, auto=True)
        elif name in _NEAR and isinstance(value, float) and value > 0.0:
            low, high = (float(f"{end:.3g}") for end in (value / _NEAR[name], value * _NEAR[name]))
            space[name] = Range(low, high, log=True)
    return space
