import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import type {
  EvaluationResource,
  SearchActionsRequest,
  SearchActionsResponseSchema,
  SearchedSubject,
  SearchSubjectsRequest,
  SearchSubjectsResponseSchema,
} from "../../../../gen/latchkey/v1/authzen_service_pb.js";
import { grantsOf } from "../../../auth/caller.js";
import type { CursorSealer, CursorSealerFactory } from "../../../auth/cursor-sealing.js";
import { callOf } from "../../../call.js";
import { heldPermissions } from "../../../contract/grants.js";
import type { ApplicationRecord } from "../../../store/port/records.js";
import type { Store } from "../../../store/port/store.js";
import { validateMessage } from "../../../validation/validate.js";
import type { RunBatch } from "../batch.js";
import type { Principals } from "../principals.js";
import { toActionName, toCheck } from "./mapping.js";

/** The maximum number of results per page, which is also the default. */
const maxPageSize = 100;

interface SubjectSearchOptions {
  readonly store: Pick<Store, "applications">;
  readonly runBatch: RunBatch;
  readonly createSealer: CursorSealerFactory;
}

type SubjectResults = MessageInitShape<typeof SearchSubjectsResponseSchema>;
type ActionResults = MessageInitShape<typeof SearchActionsResponseSchema>;

/** The types of subject that can be found, and the id of an application as such a subject. */
const idsByType: ReadonlyMap<string, (application: ApplicationRecord) => string | undefined> =
  new Map([
    ["application", ({ id }) => id],
    ["user", ({ externalId }) => externalId],
  ]);

/** Creates the search for applications: those that hold the permission and pass the check. */
export function createSubjectSearch({ store, runBatch, createSealer }: SubjectSearchOptions) {
  const tokens = createPageTokens(createSealer);

  return async (
    request: SearchSubjectsRequest,
    context: Pick<HandlerContext, "values" | "signal">,
  ): Promise<SubjectResults> => {
    const call = callOf(context);
    const { tenantId, id: callerId } = call.caller.application;
    const { type } = request.subject as SearchedSubject;
    const idOf = idsByType.get(type);
    const check = toCheck({ ...request, subject: subjectOf(callerId) });
    if (!idOf || !isValid(check)) {
      return { page: { nextToken: "" }, results: [] };
    }
    const { token = "", limit = 0 } = request.page ?? {};
    const scope = searchScope(tenantId, type, check);
    const { items, more } = await store.applications.list(
      {
        tenantId,
        filter: { permission: check.permission },
        size: limit > 0 ? Math.min(limit, maxPageSize) : maxPageSize,
        from: token === "" ? { page: 1 } : { after: tokens.open(scope, token) },
      },
      context.signal,
    );
    const found = items.flatMap((application) => {
      const id = idOf(application);
      return id === undefined ? [] : [{ application, id }];
    });
    const results = await runBatch(call, "page.limit", found, ({ application }) => ({
      ...check,
      principal: { case: "applicationId" as const, value: application.id },
    }));
    const last = items.at(-1);
    return {
      page: { nextToken: more && last ? tokens.seal(scope, last.id) : "" },
      results: found.filter((_, index) => results[index]?.allowed).map(({ id }) => ({ type, id })),
    };
  };
}

function subjectOf(id: string): Parameters<typeof toCheck>[0]["subject"] {
  return { $typeName: "latchkey.v1.EvaluationSubject", type: "application", id };
}

/** Page tokens: the last application of a page. */
function createPageTokens(createSealer: CursorSealerFactory): CursorSealer {
  return createSealer({
    purpose: "page of a subject search",
    field: "page.token",
    refusal: "is not a token of this search: pass the page.next_token of its last response",
    startAgain: "start again from the first page",
  });
}

/** The scope of a page token, which is valid only for its own search. */
function searchScope(
  tenantId: string,
  type: string,
  { permission, token, origin, address }: CheckAccessRequest,
): string {
  const search = [type, permission, token?.id, token?.container, origin, address];
  return `${tenantId} ${JSON.stringify(search)}`;
}

interface ActionSearchOptions {
  readonly principals: Pick<Principals, "find">;
  readonly runBatch: RunBatch;
}

/** Creates the search for actions: the permissions of the subject on the type of the resource that pass the check. */
export function createActionSearch({ principals, runBatch }: ActionSearchOptions) {
  return async (
    request: SearchActionsRequest,
    context: Pick<HandlerContext, "values">,
  ): Promise<ActionResults> => {
    const call = callOf(context);
    const { type } = request.resource as EvaluationResource;
    const check = toCheck({ ...request, action: anyAction });
    if (!isValid(check)) {
      return { results: [] };
    }
    const { owner } = await principals.find(call.caller, check);
    const held = owner ? heldPermissions(grantsOf(owner)) : [];
    const candidates = held.filter((permission) => permission.startsWith(`${type}:`));
    const results = await runBatch(call, "subject", candidates, (permission) => ({
      ...check,
      permission,
    }));
    return {
      results: candidates
        .filter((_, index) => results[index]?.allowed)
        .map((permission) => ({ name: toActionName(permission, type) })),
    };
  };
}

/** Stands for the action that is searched for. */
const anyAction = { $typeName: "latchkey.v1.EvaluationAction", name: "any" } as const;

/** Whether a check is valid. An invalid one is never allowed, so a search for it finds nothing. */
function isValid(check: CheckAccessRequest): boolean {
  return validateMessage(CheckAccessRequestSchema, check) === undefined;
}
