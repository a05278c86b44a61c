"""A connection to a Ray cluster: who must be as this machine is, and what it cannot do without."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np

from hopefear import __version__
from hopefear.errors import HopefearError

# Workers that are lost before a run gives up: a cluster that kills everything is no cluster.
LOSSES = 100
# Seconds that a cluster has to take up the first connection.
_KNOCK = 10.0


def versions() -> dict[str, str]:
    """Returns the versions that must be the same on all machines for the same bits."""
    import numba

    return {"hopefear": __version__, "numpy": np.__version__, "numba": numba.__version__}


def check_versions(installed: dict[str, str], required: dict[str, str], worker: str) -> None:
    """Raises HopefearError where a worker has other versions than this machine."""
    for name, version in required.items():
        if installed.get(name) != version:
            raise HopefearError(
                f"the worker of {worker} has {name} {installed.get(name)} and this machine "
                f"{version}, so models would depend on where they are trained; install the same "
                "version on all machines"
            )


class Connection:
    """The way to a Ray cluster, for shards and for independent runs.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of the cluster, or ``auto``: that of which this machine is a part, else one
        that is started here and ended with the connection.
    """

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("ray") is None:
            raise HopefearError(
                "a cluster needs Ray, which is not installed: pip install 'hopefear[ray]'"
            )
        self.address = address
        self._started_here = False  # whether Ray was started here
        self.ray: Any = None  # the module, once it is connected

    def open(self, cores: int) -> None:
        """Connects; a cluster that is started here gets at least ``cores`` cores."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray reports lost workers on standard output, where results go; hopefear finds them itself.
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")
        alone = self.address == "auto" and not _cluster_here()
        if alone:  # only this machine needs to reach it; Ray reads this when it is imported
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        import ray

        self.ray = ray
        if ray.is_initialized():
            return
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if alone:
            cores = max(cores, os.cpu_count() or 1)
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **settings)
        else:
            try:
                _knock(self.address)  # Ray itself would go on trying for minutes
                ray.init(address=self.address, **settings)
            except (OSError, RuntimeError, ValueError) as error:
                raise HopefearError(
                    f"no Ray cluster answers at {self.address}: {str(error).splitlines()[0]}; is "
                    "it running (`ray status`)?"
                ) from error
        self._started_here = True

    def close(self) -> None:
        """Disconnect, and end a cluster that was started here."""
        if self._started_here:
            self.ray.shutdown()
            self._started_here = False

    def answer(self, reference: Any) -> Any:
        """Returns a worker's answer; raises errors of hopefear as the worker raised them."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, HopefearError):
                raise error.cause from None
            raise

    def losses(self) -> tuple[type[Exception], ...]:
        """Errors that mean that a worker, its machine or its answer is gone."""
        errors = self.ray.exceptions
        return (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
            errors.NodeDiedError,
        )


def _knock(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT; other addresses are left to Ray."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK).close()


def _cluster_here() -> bool:
    """Whether this machine is part of a cluster."""
    return "RAY_ADDRESS" in os.environ or Path("/tmp/ray/ray_current_cluster").exists()
