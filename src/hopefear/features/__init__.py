"""Feature maps: the meaning of columns, between ids, names and columns."""

from hopefear.features.maps import FeatureMap, IdentityFeatures, NamedFeatures, TableFeatures
from hopefear.features.ngrams import HashedFeatures, NGramFeatures
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
