"""An address at which Prometheus reads metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earshot.errors import UsageError


def serve_metrics(address: str, collector: Any) -> Callable[[], None]:
    """Serve the collector's metrics at `HOST:PORT`; returns a function that stops the server."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise UsageError("metrics need the package prometheus-client: pip install 'earshot[metrics]'") from None
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"cannot serve metrics at {address!r}; write HOST:PORT, as in 127.0.0.1:9464")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)
    except OSError as error:
        raise UsageError(
            f"cannot serve metrics at {address}: {error.strerror or error}; take another port, and an address of this "
            "machine: 127.0.0.1 for itself, 0.0.0.0 for all networks"
        ) from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5)

    return stop
