"""Shards on many machines, by Ray (the extra ``ray``)."""

from hopefear.distributed.cluster import Cluster

__all__ = ["Cluster"]
