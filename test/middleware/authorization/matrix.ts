import { type ClientHttp2Session, connect } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { accessOf, mayHold, ownPermissions } from "../../../src/contract/methods.js";
import { readBindings } from "../../../src/transport/rest/bindings.js";
import { ApiFailure } from "../../support/api/api.js";
import { forEachConcurrently } from "../../support/concurrency.js";
import type { TestServer } from "../../support/service/server.js";
import { type CallResult, callGrpc, callRest } from "./call.js";
import { type CallerColumn, callerColumns, expiryDelayMs } from "./callers.js";
import { getExpectedOutcome, type Holding, type Outcome } from "./expected-outcome.js";
import { sampleOf, type Target } from "./samples.js";
import {
  createLastManager,
  createMatrixTenant,
  getAdmittedType,
  type MatrixTenant,
} from "./tenant.js";

/** One cell: a kind of caller and a method. */
export interface Cell {
  readonly method: DescMethod;
  readonly column: CallerColumn;
  readonly holding: Holding;
  readonly expected: Outcome;
  /** The actual outcome, or a description of an unexpected one. */
  readonly actual: Outcome | string;
}

type PendingCell = Omit<Cell, "actual">;
type KeyFor = (cell: PendingCell) => Promise<string | undefined>;

/** Calls every method as every kind of caller over every protocol, and returns the outcomes. */
export async function callMatrix(
  server: TestServer,
  methods: readonly DescMethod[],
): Promise<Cell[]> {
  const tenant = await createMatrixTenant(server);
  const keyFor = createKeyFactory(tenant, await createMatrixTenant(server));
  const cells = methods.flatMap(createCells);
  // If a caller cannot be created, the error is reported when it is used.
  const createCallers = (isInactive: boolean) =>
    Promise.allSettled(
      cells.filter(({ column }) => (column.isInactive ?? false) === isInactive).map(keyFor),
    );
  await createCallers(true);
  server.clock.advance(expiryDelayMs);
  await createCallers(false);

  const session = connect(server.url);
  try {
    const sharedTarget = await tenant.createTarget();
    const callCell = createCellCaller({ server, session, tenant, keyFor, sharedTarget });
    const before = await readState(tenant, sharedTarget);
    const results = new Array<Cell>(cells.length);
    // A few at a time: a slow server would refuse some of hundreds of concurrent calls.
    await forEachConcurrently(8, cells.entries(), async ([index, cell]) => {
      results[index] = { ...cell, actual: await callCell(cell) };
    });
    if ((await readState(tenant, sharedTarget)) !== before) {
      throw new Error("a refused call has changed its target");
    }
    return results;
  } finally {
    session.destroy();
  }
}

function createCells(method: DescMethod): PendingCell[] {
  return callerColumns.flatMap((column) => {
    const isFixed =
      column.getOwnerType(method) === undefined || column.hasNoPermissions || column.specialTarget;
    const holdings: Holding[] =
      isFixed || accessOf(method).permission === "" ? ["with"] : ["with", "without"];
    return holdings.map((holding) => ({
      method,
      column,
      holding,
      expected: getExpectedOutcome(method, column, holding),
    }));
  });
}

/** Creates each caller once: with only the method's permission, or with all others. */
function createKeyFactory(tenant: MatrixTenant, otherTenant: MatrixTenant): KeyFor {
  const keys = new Map<string, Promise<string | undefined>>();
  return ({ method, column, holding }) => {
    const { permission } = accessOf(method);
    const type = column.getOwnerType(method) ?? "private";
    const others = ownPermissions
      .map(({ name }) => name)
      .filter((name) => name !== permission && mayHold(type, name));
    const required = permission === "" ? [] : [permission];
    const permissions = ["token:read", ...(holding === "with" ? required : others)];
    const id = JSON.stringify([column.name, type, permissions]);
    const owner = column.isOtherTenant ? otherTenant : tenant;
    const key = keys.get(id) ?? column.createKey(owner, getAdmittedType(method), permissions);
    keys.set(id, key);
    return key;
  };
}

interface CellCallerOptions {
  readonly server: TestServer;
  readonly session: ClientHttp2Session;
  readonly tenant: MatrixTenant;
  readonly keyFor: KeyFor;
  /** The target of calls that must not change it. */
  readonly sharedTarget: Target;
}

function createCellCaller({ server, session, tenant, keyFor, sharedTarget }: CellCallerOptions) {
  async function prepareCall(
    cell: PendingCell,
  ): Promise<{ target: Target; key: string | undefined }> {
    switch (cell.column.specialTarget) {
      case "itself as last manager": {
        const target = await createLastManager(server);
        return { target, key: target.key };
      }
      case "itself as session": {
        const { id, sessionKey } = await tenant.createSession();
        return { target: { ...sharedTarget, sessionId: id }, key: sessionKey };
      }
      case "more privileged": {
        const target = await tenant.createTarget(["token:read", "application:read"]);
        return { target, key: await keyFor(cell) };
      }
      default: {
        const { method, expected } = cell;
        const canShareTarget = method.idempotency === Level.NO_SIDE_EFFECTS || expected !== "done";
        return {
          target: canShareTarget ? sharedTarget : await tenant.createTarget(),
          key: await keyFor(cell),
        };
      }
    }
  }

  async function getOutcome(cell: PendingCell, call: CallMethod): Promise<Cell["actual"]> {
    const { method, column } = cell;
    const { target, key } = await prepareCall(cell);
    const { refusal, text } = await call(target, key);
    if (refusal !== undefined) {
      return refusal;
    }
    const ids = [tenant.id, target.applicationId, target.sessionId, target.keyId];
    const hasTargetData = ids.some((id) => text.includes(id));
    if (column.isOtherTenant) {
      return hasTargetData ? "returns data of another tenant" : "own";
    }
    return hasTargetData ||
      column.specialTarget ||
      method.idempotency !== Level.NO_SIDE_EFFECTS ||
      returnsNoIds(method)
      ? "done"
      : "returns no data";
  }

  return async (cell: PendingCell): Promise<Cell["actual"]> => {
    try {
      const outcomes = await Promise.all(
        createCalls(cell.method).map((call) => getOutcome(cell, call)),
      );
      const distinct = [...new Set(outcomes)];
      return distinct.length === 1 && distinct[0] !== undefined
        ? distinct[0]
        : `protocols differ: ${distinct.join(", ")}`;
    } catch (error) {
      return isUngrantable(error) ? "impossible" : String(error);
    }
  };

  function createCalls(method: DescMethod): CallMethod[] {
    const [binding] = readBindings(method);
    const optionsFor = (target: Target) => ({ headers: clientHeaders(method, target) });
    const overGrpc: CallMethod = (target, key) =>
      callGrpc(session, method, sampleOf(method, target), key, optionsFor(target));
    const overRest: CallMethod = (target, key) =>
      callRest(server.url, binding as never, sampleOf(method, target), key, optionsFor(target));
    return binding ? [overGrpc, overRest] : [overGrpc];
  }
}

/** The headers of a gateway's client, for methods that read them. */
function clientHeaders(method: DescMethod, { key }: Target): Record<string, string> {
  return accessOf(method).keyHeader === "" ? {} : { "svc-api-key": key };
}

type CallMethod = (target: Target, key: string | undefined) => Promise<CallResult>;

function returnsNoIds({ name }: DescMethod): boolean {
  return name === "ListPermissions" || name === "GetOverview";
}

/** Whether a caller could not be created because its type cannot hold the permission. */
function isUngrantable(error: unknown): boolean {
  const refusals = ["invalid_request", "permission_denied"];
  return error instanceof ApiFailure && refusals.includes(error.reason);
}

/** The state that forbidden callers could have changed. */
async function readState({ api, root }: MatrixTenant, target: Target): Promise<string> {
  const { version } = await api.getApplication(root.key, { id: target.applicationId });
  const { state } = await api.getSession(root.key, { id: target.sessionId });
  return JSON.stringify([version, state]);
}
