import os

from hopefear.data.sparse import SparseDataset as SparseDataset
from hopefear.errors import HopefearError as HopefearError
from hopefear.estimators import Classifier as Classifier
from hopefear.learner import Learner as Learner
from hopefear.list_model import RerankModel as RerankModel
from hopefear.model import Model as Model
from hopefear.recipes import RECIPES as RECIPES
from hopefear.recipes import recipe as recipe
from hopefear.reranker import Reranker as Reranker
from hopefear.sequence_model import SequenceModel as SequenceModel
from hopefear.tagger import Tagger as Tagger
from hopefear.tuner import Tuner as Tuner

__version__: str
__all__ = [
    "RECIPES",
    "Classifier",
    "HopefearError",
    "Learner",
    "Model",
    "RerankModel",
    "Reranker",
    "SequenceModel",
    "SparseDataset",
    "Tagger",
    "Tuner",
    "__version__",
    "load",
    "recipe",
]

def load(path: str | os.PathLike[str]) -> Model | SequenceModel | RerankModel: ...
