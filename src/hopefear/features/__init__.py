"""What a column means: feature maps between ids, names and columns."""

from hopefear.features.hashed import HashedFeatures
from hopefear.features.identity import IdentityFeatures
from hopefear.features.interface import FeatureMap
from hopefear.features.ngrams import NGramFeatures
from hopefear.features.parts import from_parts
from hopefear.features.table import TableFeatures

__all__ = [
    "FeatureMap",
    "HashedFeatures",
    "IdentityFeatures",
    "NGramFeatures",
    "TableFeatures",
    "from_parts",
]
