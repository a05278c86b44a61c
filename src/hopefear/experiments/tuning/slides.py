"""What the slides say, and what the tools of Moses reach on the same lists."""

from __future__ import annotations

from typing import NamedTuple

TITLE = "Large-scale Discriminative Training (slides): Performance Comparison"
FEATURES = {"dense": 15, "extended": 2250}  # of the two feature sets of the slides
SOURCE = "Moses tools on the same lists"


class Peer(NamedTuple):
    """Mean of three seeds (train10k: one), BLEU on val and both tests; CPU seconds."""

    val: float
    test_2016: float
    test_2017: float
    seconds: str


PEERS: dict[str, dict[str, Peer]] = {
    "dense": {
        "start": Peer(39.59, 40.07, 34.90, ""),
        "decoder": Peer(41.11, 40.60, 35.29, ""),
        "mert": Peer(41.49, 40.57, 35.47, "57–63"),
        "kbmira": Peer(41.17, 40.98, 35.72, "2.7–3.2"),
        "pro": Peer(40.72, 40.31, 35.74, "5.2–6.5"),
        "oracle": Peer(60.80, 61.29, 55.17, ""),
    },
    "train": {"kbmira": Peer(40.69, 40.91, 36.16, "28.4")},
    "extended": {"kbmira": Peer(40.69, 40.74, 36.32, "29.5")},
}
# The extended row is that of 10,188 phrase pairs and C = 0.01, both kbmira rows are those of the
# tool with its filter of duplicates corrected.
