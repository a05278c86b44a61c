"""Counters of the server in the text format of Prometheus."""

from __future__ import annotations

import bisect
import time
from collections import Counter
from collections.abc import Iterator, Mapping

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Counts:
    """Counters and times of requests.

    Examples
    --------
    >>> counts = Counts()
    >>> counts.request("/predict", 200, 0.004)
    >>> text = counts.text({"hopefear_waiting": 3})
    >>> print(*[line for line in text.splitlines() if line.startswith("hopefear_req")], sep="\\n")
    hopefear_requests_total{path="/predict",status="200"} 1
    """

    def __init__(self) -> None:
        self.started = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.reloads: Counter[str] = Counter()
        self._times: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._batches = self._inputs = 0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Counts a response and its seconds since the head of the request."""
        self.requests[path, status] += 1
        times = self._times.setdefault(path, [0] * (len(BOUNDS) + 1))
        times[bisect.bisect_left(BOUNDS, seconds)] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]

    def batch(self, inputs: int) -> None:
        """Counts a batch of inputs."""
        self._batches += 1
        self._inputs += inputs

    def text(self, gauges: Mapping[str, float]) -> str:
        """Returns all counters, and gauges by name."""
        return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: Mapping[str, float]) -> Iterator[str]:
        yield "# TYPE hopefear_requests_total counter"
        for (path, status), n in sorted(self.requests.items()):
            yield f'hopefear_requests_total{{path="{path}",status="{status}"}} {n}'
        yield "# TYPE hopefear_seconds histogram"
        for path, times in sorted(self._times.items()):
            total = 0
            for bound, n in zip((*BOUNDS, "+Inf"), times, strict=True):
                total += n
                yield f'hopefear_seconds_bucket{{path="{path}",le="{bound}"}} {total}'
            yield f'hopefear_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'hopefear_seconds_count{{path="{path}"}} {total}'
        yield "# TYPE hopefear_batches_total counter"
        yield f"hopefear_batches_total {self._batches}"
        yield "# TYPE hopefear_inputs_total counter"
        yield f"hopefear_inputs_total {self._inputs}"
        yield "# TYPE hopefear_reloads_total counter"
        for result in ("good", "bad"):
            yield f'hopefear_reloads_total{{result="{result}"}} {self.reloads[result]}'
        for name, value in {**gauges, "hopefear_started_seconds": self.started}.items():
            yield f"# TYPE {name} gauge"
            yield f"{name} {value:g}" if value < 1e6 else f"{name} {value:.3f}"
