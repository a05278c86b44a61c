"""From the parts in a model file back to a feature map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.errors import ModelError
from hopefear.features.maps import FeatureMap, IdentityFeatures, NamedFeatures, TableFeatures
from hopefear.features.ngrams import HashedFeatures, NGramFeatures

if TYPE_CHECKING:
    from hopefear.features.attributes import AttributeFeatures
    from hopefear.features.lists.list_features import ListFeatures
    from hopefear.features.segments import SegmentFeatures
    from hopefear.features.templates import TemplateFeatures
    from hopefear.features.token_ids import TokenIds


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
    kinds = (IdentityFeatures, TableFeatures, NamedFeatures, NGramFeatures, HashedFeatures)
    return _kind(header, kinds).from_parts(header, arrays)


def token_features_from_parts(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> AttributeFeatures | TemplateFeatures | TokenIds | SegmentFeatures:
    """As :func:`from_parts`, for maps of tokens."""
    from hopefear.features.attributes import AttributeFeatures
    from hopefear.features.segments import SegmentFeatures
    from hopefear.features.templates import TemplateFeatures
    from hopefear.features.token_ids import TokenIds

    kinds = (AttributeFeatures, TemplateFeatures, TokenIds, SegmentFeatures)
    return _kind(header, kinds).from_parts(header, arrays)


def list_features_from_parts(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> ListFeatures:
    """As :func:`from_parts`, for maps of candidates."""
    from hopefear.features.lists.list_features import ListFeatures

    return _kind(header, (ListFeatures,)).from_parts(header, arrays)


def _kind(header: Any, maps: Sequence[Any]) -> Any:
    if not isinstance(header, Mapping):
        raise ModelError(f"feature map: expected a JSON object, found {type(header).__name__}")
    kinds = {cls.kind: cls for cls in maps}
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ModelError(f"feature map: expected kind in {sorted(kinds)}, found {kind!r:.60}")
    return kinds[kind]
