import { create, type DescMethod, type Message } from "@bufbuild/protobuf";

/** The target of the calls: an application of the first tenant with its key and session. */
export interface Target {
  readonly applicationId: string;
  readonly key: string;
  /** The previous key, in its grace period. */
  readonly keyId: string;
  readonly sessionId: string;
  /** An event about the application. */
  readonly eventId: string;
  readonly nonce: string;
}

type Sample = (target: Target) => object;

const permissions = ["token:read"];
const empty: Sample = () => ({});
const application: Sample = ({ applicationId: id }) => ({ id });
const session: Sample = ({ sessionId: id }) => ({ id });
const check: Sample = ({ key }) => ({
  principal: { case: "key", value: key },
  permission: "token:read",
});
const evaluation: Sample = ({ applicationId: id }) => ({
  subject: { type: "application", id },
  action: { name: "read" },
  resource: { type: "token", id: "card-1" },
});
const byTarget: Sample = ({ applicationId: target }) => ({ target });
const listServices: Sample = () => ({ messageRequest: { case: "listServices", value: "" } });

/** A valid request for each method, by message type. */
const samples: Readonly<Record<string, Sample>> = {
  "latchkey.v1.CreateApplicationRequest": () => ({ name: "created", type: "public", permissions }),
  "latchkey.v1.ListApplicationsRequest": ({ applicationId }) => ({ id: [applicationId] }),
  "latchkey.v1.GetApplicationRequest": application,
  "latchkey.v1.GetApplicationByKeyRequest": empty,
  "latchkey.v1.UpdateApplicationRequest": ({ applicationId: id }) => ({
    id,
    name: "changed",
    permissions,
  }),
  "latchkey.v1.RegenerateApplicationKeyRequest": application,
  "latchkey.v1.ListApplicationKeysRequest": application,
  "latchkey.v1.DeleteApplicationKeyRequest": ({ applicationId: id, keyId }) => ({ id, keyId }),
  "latchkey.v1.DisableApplicationRequest": application,
  "latchkey.v1.EnableApplicationRequest": application,
  "latchkey.v1.DeleteApplicationRequest": application,
  "latchkey.v1.CreateSessionRequest": empty,
  "latchkey.v1.AuthorizeSessionRequest": ({ nonce }) => ({ nonce, permissions }),
  "latchkey.v1.ListSessionsRequest": ({ applicationId }) => ({ applicationId }),
  "latchkey.v1.GetSessionRequest": session,
  "latchkey.v1.DeleteSessionRequest": session,
  "latchkey.v1.RevokeAllSessionsRequest": application,
  "latchkey.v1.CheckAccessRequest": check,
  "latchkey.v1.BatchCheckAccessRequest": (target) => ({ checks: [check(target)] }),
  "latchkey.v1.StreamCheckAccessRequest": (target) => ({
    correlationId: "1",
    check: check(target),
  }),
  "latchkey.v1.WhoAmIRequest": empty,
  "latchkey.v1.ListPermissionsRequest": empty,
  "latchkey.v1.WatchCredentialsRequest": empty,
  "latchkey.v1.ListEventsRequest": byTarget,
  "latchkey.v1.GetEventRequest": ({ eventId: id }) => ({ id }),
  "latchkey.v1.WatchEventsRequest": byTarget,
  "latchkey.v1.ForwardAuthRequest": () => ({ permission: "token:read" }),
  "envoy.service.auth.v3.CheckRequest": ({ key }) => ({
    attributes: {
      request: { http: { headers: { "svc-api-key": key } } },
      contextExtensions: { "latchkey-permission": "token:read" },
    },
  }),
  "latchkey.v1.RevokeKeyRequest": () => ({ key: "unknown" }),
  "google.api.HttpBody": () => ({ contentType: "application/json", data: Buffer.from("[]") }),
  "latchkey.v1.EvaluateRequest": evaluation,
  "latchkey.v1.BatchEvaluateRequest": (target) => ({ evaluations: [evaluation(target)] }),
  "latchkey.v1.SearchSubjectsRequest": evaluation,
  "latchkey.v1.SearchActionsRequest": evaluation,
  "latchkey.v1.IntrospectRequest": ({ key: token }) => ({ token }),
  "latchkey.v1.GetOverviewRequest": empty,
  "grpc.health.v1.HealthCheckRequest": empty,
  "grpc.reflection.v1.ServerReflectionRequest": listServices,
  "grpc.reflection.v1alpha.ServerReflectionRequest": listServices,
};

/** Returns a valid request of a method for the target. */
export function sampleOf({ input }: DescMethod, target: Target): Message {
  const sample = samples[input.typeName];
  if (!sample) {
    throw new Error(`no sample request for ${input.typeName}: add one to samples.ts`);
  }
  return create(input, sample(target) as never);
}
