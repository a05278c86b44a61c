"""What a reader has to say about a file it could read."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_LISTED = 100


@dataclass
class ReadReport:
    """Counts that a reader fills in; hand one in to see them.

    Attributes
    ----------
    rows : int
        Rows that were read.
    skipped : int
        Bad lines left out under ``on_error="skip"``.
    messages : list of str
        What was wrong with them: the first 100.
    unknown_features : int
        Values dropped because the given feature map lacks their id or n-gram.
    unknown_labels : int
        Rows whose label is absent or not among the given classes.
    """

    rows: int = 0
    skipped: int = 0
    messages: list[str] = field(default_factory=list)
    unknown_features: int = 0
    unknown_labels: int = 0

    def skip(self, message: str) -> None:
        """Count a bad line, and list it while there are few."""
        self.skipped += 1
        if len(self.messages) < MAX_LISTED:
            self.messages.append(message)
