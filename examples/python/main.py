"""A gRPC client in Python.

Calls whoami, creates an application, checks its access, lists its events and
deletes it.
"""

import os

import grpc
from latchkey.v1.access_rule_pb2 import AccessRule
from latchkey.v1.access_service_pb2 import CheckAccessRequest, TokenReference, WhoAmIRequest
from latchkey.v1.access_service_pb2_grpc import AccessServiceStub
from latchkey.v1.application_service_pb2 import (
    Application,
    CreateApplicationRequest,
    DeleteApplicationRequest,
)
from latchkey.v1.application_service_pb2_grpc import ApplicationServiceStub
from latchkey.v1.event_service_pb2 import ListEventsRequest
from latchkey.v1.event_service_pb2_grpc import EventServiceStub

from connection import connect
from explain import explain

CALL_TIMEOUT = 5.0
"""In seconds."""


def main() -> None:
    url = os.environ.get("LATCHKEY_URL", "http://localhost:8080")
    try:
        with connect(url, os.environ.get("SVC_API_KEY", ""), CALL_TIMEOUT) as channel:
            tour(channel)
    except grpc.RpcError as error:
        raise SystemExit(explain(error)) from None


def tour(channel: grpc.Channel) -> None:
    applications = ApplicationServiceStub(channel)
    access = AccessServiceStub(channel)

    me = access.WhoAmI(WhoAmIRequest())
    print(f"I am {me.name}, a {me.type} application.")

    application = create(applications)
    # Clean up, even after an error.
    try:
        for container in ("/pci/", "/pii/"):
            check(access, application, container)
        create_invalid(applications)
        list_events(EventServiceStub(channel), application)
    finally:
        applications.DeleteApplication(DeleteApplicationRequest(id=application.id))
        print(f"Deleted {application.name}.")


def create(applications: ApplicationServiceStub) -> Application:
    rule = AccessRule(priority=1, container="/pci/", transform="mask", permissions=["token:read"])
    request = CreateApplicationRequest(name="Python client", type="private", rules=[rule])
    application: Application = applications.CreateApplication(request)
    print(f"Created {application.name}.")
    return application


def check(access: AccessServiceStub, application: Application, container: str) -> None:
    token = TokenReference(container=container)
    request = CheckAccessRequest(key=application.key, permission="token:read", token=token)
    decision = access.CheckAccess(request)
    if decision.allowed:
        print(f"Its key may read tokens in {container}: {decision.transform}.")
    else:
        print(f"Its key may not read tokens in {container}: {decision.reason}.")


def create_invalid(applications: ApplicationServiceStub) -> None:
    """Sends an invalid request to show its error."""
    invalid = CreateApplicationRequest(
        name="Python client", type="secret", permissions=["token:read"]
    )
    try:
        applications.CreateApplication(invalid)
    except grpc.RpcError as error:
        print(explain(error))


def list_events(events: EventServiceStub, application: Application) -> None:
    listed = events.ListEvents(ListEventsRequest(target=application.id))
    print(f"Events: {', '.join(event.kind for event in listed.data)}.")


if __name__ == "__main__":
    main()
