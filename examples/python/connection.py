"""A channel that sends the key and a deadline with every call."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import grpc


class SendKey(grpc.UnaryUnaryClientInterceptor):
    """Adds the key to every call, and a default deadline."""

    def __init__(self, key: str, timeout: float) -> None:
        self._key = key
        self._timeout = timeout

    def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.ClientCallDetails, Any], grpc.Call],
        client_call_details: grpc.ClientCallDetails,
        request: Any,
    ) -> grpc.Call:
        details = client_call_details
        metadata = [*(details.metadata or []), ("svc-api-key", self._key)]
        timeout = details.timeout if details.timeout is not None else self._timeout
        return continuation(details._replace(metadata=metadata, timeout=timeout), request)


def connect(url: str, key: str, timeout: float) -> grpc.Channel:
    if not key:
        raise SystemExit("Set SVC_API_KEY to the key from the first start of Latchkey.")
    parts = urlsplit(url)
    channel = (
        grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials())
        if parts.scheme == "https"
        else grpc.insecure_channel(parts.netloc)
    )
    return grpc.intercept_channel(channel, SendKey(key, timeout))
