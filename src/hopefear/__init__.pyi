import os
from typing import Any

from hopefear.core.learner import Learner as Learner
from hopefear.data.sparse import SparseDataset as SparseDataset
from hopefear.errors import HopefearError as HopefearError
from hopefear.recipes import RECIPES as RECIPES
from hopefear.tasks import recipe as recipe
from hopefear.tasks.classify.estimator import Classifier as Classifier
from hopefear.tasks.classify.model import Model as Model
from hopefear.tasks.parse.estimator import Parser as Parser
from hopefear.tasks.parse.model import ParseModel as ParseModel
from hopefear.tasks.reading import read as read
from hopefear.tasks.rerank.estimator import Reranker as Reranker
from hopefear.tasks.rerank.model import RerankModel as RerankModel
from hopefear.tasks.showing import show as show
from hopefear.tasks.tag.estimator import Tagger as Tagger
from hopefear.tasks.tag.model import SequenceModel as SequenceModel
from hopefear.translation.estimator import Tuner as Tuner

__version__: str
__all__ = [
    "RECIPES",
    "Classifier",
    "HopefearError",
    "Learner",
    "Model",
    "ParseModel",
    "Parser",
    "RerankModel",
    "Reranker",
    "SequenceModel",
    "SparseDataset",
    "Tagger",
    "Tuner",
    "__version__",
    "load",
    "load_model",
    "read",
    "recipe",
    "show",
]

def load(path: str | os.PathLike[str]) -> Any: ...
def load_model(path: str | os.PathLike[str]) -> Any: ...
