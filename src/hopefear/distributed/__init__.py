"""Shards and independent runs on many machines, by Ray (the extra ``ray``)."""

from hopefear.distributed.cluster import Cluster
from hopefear.distributed.runs import Runs

__all__ = ["Cluster", "Runs"]
