"""Registry of the models that are served, by name."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

from hopefear import load_model
from hopefear.errors import HopefearError
from hopefear.tasks import estimator_of, service_of


class UnknownModelError(HopefearError):
    """A request names a model that is not served."""


class ModelRegistry:
    """Models loaded from their files; a new version takes the place of an old one at once.

    Parameters
    ----------
    paths : sequence of str
        Model files. A model is called what its file is, without folder and suffix; where two would
        have one name, both are called by their paths.
    tagger : str, optional
        Model file of a tagger that gives words their tags, for parsers.

    Examples
    --------
    >>> list(ModelRegistry(["models/ner.model", "pos.model"]).paths)
    ['ner', 'pos']
    >>> list(ModelRegistry(["new/ner.model", "old/ner.model"]).paths)
    ['new/ner.model', 'old/ner.model']
    """

    def __init__(self, paths: Iterable[str], tagger: str | None = None) -> None:
        paths = list(dict.fromkeys(paths))
        stems = [os.path.splitext(os.path.basename(path))[0] for path in paths]
        self.paths = {
            path if stems.count(stem) > 1 else stem: path
            for path, stem in zip(paths, stems, strict=True)
        }
        self.tagger = tagger
        self.services: dict[str, Any] = {}

    def load(self, on_failure: Callable[[HopefearError], None] | None = None) -> None:
        """Reads all files and replaces all models at once.

        Without ``on_failure`` any error ends it. With it, ``on_failure`` gets the error, and the
        old version of the model stays.
        """
        services = {}
        try:
            tagger = None if self.tagger is None else _tagger(self.tagger)
        except (HopefearError, OSError) as error:
            if on_failure is None:
                raise
            on_failure(_load_error(error, self.tagger or ""))
            return
        for name, path in self.paths.items():
            try:
                services[name] = _warm(service_of(load_model(path), tagger))
            except (HopefearError, OSError) as error:
                if on_failure is None:
                    raise
                on_failure(_load_error(error, path))
                services[name] = self.services[name]
        self.services = services
        # Collecting what stays would take a tenth of a second each time.
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def find(self, name: str | None) -> tuple[str, Any]:
        """Returns name and service of a model; of the only one where ``name`` is None."""
        services = self.services
        if name is None:
            if len(services) > 1:
                raise HopefearError(f"which model? there are {', '.join(services)}")
            name = next(iter(services))
        if name not in services:
            raise UnknownModelError(
                f"there is no model {name!r:.60}; there are {', '.join(services)}"
            )
        return name, services[name]


def _load_error(error: Exception, path: str) -> HopefearError:
    reason = getattr(error, "strerror", None) or str(error)
    return HopefearError(f"{path} is not loaded, the model before it stays: {reason}")


def _tagger(path: str) -> Any:
    model = load_model(path)
    if model.task != "tag":
        raise HopefearError(
            f"--tagger {path}: this is a model of the task {model.task}; give one of the task tag"
        )
    return estimator_of(model)


def _warm(service: Any) -> Any:
    """Returns the service after its first answers, which compile or load kernels."""
    example = service.read(service.example)
    service.predict([example])
    # Votes have no reasons, and some searches no n best: requests then get the error.
    with contextlib.suppress(HopefearError):
        service.nbest([example], 2)
    with contextlib.suppress(HopefearError):
        service.explain(example, 1, {})
    return service
