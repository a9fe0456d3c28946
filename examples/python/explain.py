"""Formats errors."""

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


def explain(error: grpc.RpcError) -> str:
    """Returns status and message, error code and field errors."""
    assert isinstance(error, grpc.Call)
    lines = [f"{error.code().name}: {error.details()}"]
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        info = error_details_pb2.ErrorInfo()
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(info):
            lines.append(f"  reason: {info.reason.lower()}")
        elif detail.Unpack(bad_request):
            lines += [f"  {it.field}: {it.description}" for it in bad_request.field_violations]
    return "\n".join(lines)
