"""From the parts in a model file back to a feature map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hopefear.errors import ModelError
from hopefear.features.attributes import AttributeFeatures
from hopefear.features.lists.list_features import ListFeatures
from hopefear.features.maps import (
    FeatureMap,
    HashedFeatures,
    IdentityFeatures,
    NGramFeatures,
    TableFeatures,
)
from hopefear.features.templates import TemplateFeatures

KINDS: dict[str, type[FeatureMap]] = {
    cls.kind: cls for cls in (IdentityFeatures, TableFeatures, NGramFeatures, HashedFeatures)
}

TOKEN_KINDS: dict[str, Any] = {cls.kind: cls for cls in (AttributeFeatures, TemplateFeatures)}

LIST_KINDS: dict[str, Any] = {ListFeatures.kind: ListFeatures}


def from_parts(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FeatureMap:
    """Rebuild the map that ``to_header()`` and ``arrays()`` were taken from.

    The parts are not trusted: anything inconsistent is a ModelError, and nothing is allocated by
    a size that only the header claims.

    Parameters
    ----------
    header : mapping
        What ``to_header()`` gave, after a trip through JSON.
    arrays : mapping of str to array
        What ``arrays()`` gave, no more and no less.

    Examples
    --------
    >>> from_parts({"kind": "identity", "size": 3, "named": False}, {}).name(2)
    '2'
    """
    return _kind(header, KINDS).from_parts(header, arrays)


def token_features_from_parts(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> AttributeFeatures | TemplateFeatures:
    """As :func:`from_parts`, for maps of tokens."""
    return _kind(header, TOKEN_KINDS).from_parts(header, arrays)


def list_features_from_parts(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> ListFeatures:
    """As :func:`from_parts`, for maps of candidates."""
    return _kind(header, LIST_KINDS).from_parts(header, arrays)


def _kind(header: Any, kinds: Mapping[str, Any]) -> Any:
    if not isinstance(header, Mapping):
        raise ModelError(f"feature map: expected a JSON object, found {type(header).__name__}")
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ModelError(f"feature map: expected kind in {sorted(kinds)}, found {kind!r:.60}")
    return kinds[kind]
