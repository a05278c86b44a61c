"""Shards that merge in one sweep beside shards that merge by what they say of themselves."""

from __future__ import annotations

from hopefear.data.generators import sparse_linear
from hopefear.training.passes import Passes
from hopefear.training.shards import Shards
from hopefear.training.workers import Pool, Threads

WIDE = sparse_linear(120, 150, per_row=(20, 40), true_weights=60, seed=3).dataset()


class Apart(Pool):
    """Threads that merge by what they say, as if they shared no memory."""

    start = Threads.start


def merged_both_ways(data, structure, learner, shards, mix):
    """Trainers after three passes, whose states and books are the same bytes."""

    def learned(workers):
        passes = Passes(data)
        trainer = Shards(shards, mix, rounds=2, workers=workers).trainer(structure, learner, passes)
        for epoch in range(3):
            trainer.learn_pass(passes, epoch)
        trainer.close()
        return trainer

    one, other = learned(Threads()), learned(Apart())
    arrays = one.arrays()
    for key, array in other.arrays().items():
        assert array.tobytes() == arrays[key].tobytes(), key
    return one, other
