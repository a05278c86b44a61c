"""What a column means: feature maps between ids, names and columns."""

from hopefear.features.maps import (
    FeatureMap,
    HashedFeatures,
    IdentityFeatures,
    NamedFeatures,
    NGramFeatures,
    TableFeatures,
)
from hopefear.features.parts import from_parts

__all__ = [
    "FeatureMap",
    "HashedFeatures",
    "IdentityFeatures",
    "NGramFeatures",
    "NamedFeatures",
    "TableFeatures",
    "from_parts",
]
