import { type ClientHttp2Session, connect } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { accessOf, mayHold, ownPermissions } from "../../../src/contract/methods.js";
import { readBinding } from "../../../src/transport/rest/router.js";
import { ApiFailure } from "../../support/api/api.js";
import { forEachConcurrently } from "../../support/concurrency.js";
import type { TestServer } from "../../support/service/server.js";
import { type CallResult, callGrpc, callRest } from "./call.js";
import { type CallerColumn, callerColumns, untilExpiry } from "./callers.js";
import { expectedOutcome, type Holding, type Outcome } from "./expected-response.js";
import { sampleOf, type Target } from "./samples.js";
import {
  admittedType,
  createLastManager,
  createMatrixTenant,
  type MatrixTenant,
} from "./tenant.js";

/** One cell: a kind of caller and a method. */
export interface Cell {
  readonly method: DescMethod;
  readonly column: CallerColumn;
  readonly holding: Holding;
  readonly expected: Outcome;
  /** The outcome, or a description of an unexpected one. */
  readonly found: Outcome | string;
}

type OpenCell = Omit<Cell, "found">;
type KeyFor = (cell: OpenCell) => Promise<string | undefined>;

/** Calls every method as every kind of caller over every protocol, and returns the outcomes. */
export async function callMatrix(
  server: TestServer,
  methods: readonly DescMethod[],
): Promise<Cell[]> {
  const tenant = await createMatrixTenant(server);
  const keyFor = createKeys(tenant, await createMatrixTenant(server));
  const cells = methods.flatMap(cellsOf);
  // A caller that cannot be created fails again when it is to call.
  const make = (isEnded: boolean) =>
    Promise.allSettled(
      cells.filter(({ column }) => (column.isEnded ?? false) === isEnded).map(keyFor),
    );
  await make(true);
  server.clock.advance(untilExpiry);
  await make(false);

  const session = connect(server.url);
  try {
    const standing = await tenant.target();
    const callCell = createCellCaller({ server, session, tenant, keyFor, standing });
    const before = await stateOf(tenant, standing);
    const found = new Array<Cell>(cells.length);
    // A few at a time: a slow server would refuse some of hundreds of concurrent calls.
    await forEachConcurrently(8, cells.entries(), async ([at, cell]) => {
      found[at] = { ...cell, found: await callCell(cell) };
    });
    if ((await stateOf(tenant, standing)) !== before) {
      throw new Error("a call that was refused has changed what it was aimed at");
    }
    return found;
  } finally {
    session.destroy();
  }
}

function cellsOf(method: DescMethod): OpenCell[] {
  return callerColumns.flatMap((column) => {
    const isFixed = column.kindFor(method) === undefined || column.holdsNothing || column.aim;
    const holdings: Holding[] =
      isFixed || accessOf(method).permission === "" ? ["with"] : ["with", "without"];
    return holdings.map((holding) => ({
      ...{ method, column, holding },
      expected: expectedOutcome(method, column, holding),
    }));
  });
}

/** Creates each caller once: with only the method's permission, or with all others. */
function createKeys(tenant: MatrixTenant, elsewhere: MatrixTenant): KeyFor {
  const made = new Map<string, Promise<string | undefined>>();
  return ({ method, column, holding }) => {
    const { permission } = accessOf(method);
    const kind = column.kindFor(method) ?? "private";
    const others = ownPermissions
      .map(({ name }) => name)
      .filter((name) => name !== permission && mayHold(kind, name));
    const wanted = permission === "" ? [] : [permission];
    const permissions = ["token:read", ...(holding === "with" ? wanted : others)];
    const id = JSON.stringify([column.name, kind, permissions]);
    const home = column.isElsewhere ? elsewhere : tenant;
    const key = made.get(id) ?? column.make(home, admittedType(method), permissions);
    made.set(id, key);
    return key;
  };
}

interface CellCallerOptions {
  readonly server: TestServer;
  readonly session: ClientHttp2Session;
  readonly tenant: MatrixTenant;
  readonly keyFor: KeyFor;
  /** The target of callers that must not be able to change it. */
  readonly standing: Target;
}

function createCellCaller({ server, session, tenant, keyFor, standing }: CellCallerOptions) {
  /** The target and the key of a call. */
  async function aimOf(cell: OpenCell): Promise<{ target: Target; key: string | undefined }> {
    switch (cell.column.aim) {
      case "itself, the last manager": {
        const target = await createLastManager(server);
        return { target, key: target.key };
      }
      case "what holds more": {
        const target = await tenant.target(["token:read", "application:read"]);
        return { target, key: await keyFor(cell) };
      }
      default: {
        const { method, expected } = cell;
        const isHarmless = method.idempotency === Level.NO_SIDE_EFFECTS || expected !== "done";
        return { target: isHarmless ? standing : await tenant.target(), key: await keyFor(cell) };
      }
    }
  }

  async function outcomeOf(cell: OpenCell, call: CallMethod): Promise<Cell["found"]> {
    const { method, column } = cell;
    const { target, key } = await aimOf(cell);
    const { refusal, text } = await call(target, key);
    if (refusal !== undefined) {
      return refusal;
    }
    const shown = [tenant.id, target.applicationId, target.sessionId, target.keyId];
    const isShown = shown.some((id) => text.includes(id));
    if (column.isElsewhere) {
      return isShown ? "shows another tenant" : "own";
    }
    return isShown ||
      column.aim ||
      method.idempotency !== Level.NO_SIDE_EFFECTS ||
      isAboutAll(method)
      ? "done"
      : "shows nothing";
  }

  return async (cell: OpenCell): Promise<Cell["found"]> => {
    try {
      const outcomes = await Promise.all(callsOf(cell.method).map((call) => outcomeOf(cell, call)));
      const distinct = [...new Set(outcomes)];
      return distinct.length === 1 && distinct[0] !== undefined
        ? distinct[0]
        : `protocols differ: ${distinct.join(", ")}`;
    } catch (error) {
      return isUngrantable(error) ? "impossible" : String(error);
    }
  };

  function callsOf(method: DescMethod): CallMethod[] {
    const binding = readBinding(method);
    const overGrpc: CallMethod = (target, key) =>
      callGrpc(session, method, sampleOf(method, target), key);
    const overRest: CallMethod = (target, key) =>
      callRest(server.url, binding as never, sampleOf(method, target), key);
    return binding ? [overGrpc, overRest] : [overGrpc];
  }
}

type CallMethod = (target: Target, key: string | undefined) => Promise<CallResult>;

/** Whether the response is the same for all tenants. */
function isAboutAll({ name }: DescMethod): boolean {
  return name === "ListPermissions";
}

/** Whether a caller could not be created because its type cannot hold the permission. */
function isUngrantable(error: unknown): boolean {
  const refusals = ["invalid_request", "permission_denied"];
  return error instanceof ApiFailure && refusals.includes(error.reason);
}

/** The state that forbidden callers could have changed. */
async function stateOf({ api, root }: MatrixTenant, target: Target): Promise<string> {
  const { version } = await api.getApplication(root.key, { id: target.applicationId });
  const { state } = await api.getSession(root.key, { id: target.sessionId });
  return JSON.stringify([version, state]);
}
