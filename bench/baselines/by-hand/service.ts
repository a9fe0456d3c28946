/**
 * What a developer would write by hand instead of Latchkey, on `node:http`: it checks the key of the
 * caller and the body, and reads and writes records in a store. There are no limits, metrics,
 * request logs, idempotency keys, expiry of applications or other protocols.
 */
import { hash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

export interface Rule {
  readonly description?: string;
  readonly priority: number;
  readonly container?: string;
  readonly conditions?: readonly unknown[];
  readonly transform: string;
  readonly permissions: readonly string[];
}

export interface Application {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly permissions: readonly string[];
  readonly rules: readonly Rule[];
  readonly key_hash: Buffer;
  readonly created_by: string;
  readonly created_at: number;
}

export interface Session {
  readonly id: string;
  readonly application_id: string;
  readonly key_hash: Buffer;
  readonly nonce_hash: Buffer;
  readonly created_at: number;
  readonly expires_at: number;
  readonly authorized_at?: number;
  readonly authorized_by?: string;
  readonly permissions?: readonly string[];
  readonly rules?: readonly Rule[];
}

/** An entry of the audit log. */
export interface Entry {
  readonly id: string;
  readonly at: number;
  readonly kind: string;
  readonly actor: string;
  readonly target: string;
  /** The state after the change. */
  readonly after: unknown;
}

/** Every write resolves when it is durable. */
export interface RecordStore {
  findApplication(id: string): MaybePromise<Application | undefined>;
  findSession(id: string): MaybePromise<Session | undefined>;
  addApplication(application: Application, createEntry: () => Entry): Promise<unknown>;
  addSession(session: Session, createEntry: () => Entry): Promise<unknown>;
  /** Returns `false` if the session was authorized before. */
  authorizeSession(session: Session, createEntry: () => Entry): Promise<boolean>;
}

type MaybePromise<T> = T | Promise<T>;

/** Ids sort by creation time, as those of Latchkey do. */
function newId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

const idLength = 36;
const sessionTtl = 180_000;

/** The key of an application of the first data, so that the benchmark knows it. */
export function keyAt(index: number): { readonly id: string; readonly key: string } {
  const id = `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
  return { id, key: `${id}${hash("sha256", `secret of ${id}`, "base64url")}` };
}

/** The first data: a manager, a public application, a checking one, then copies of a private one. */
export function createApplications(body: string, count: number): Application[] {
  const { rules, ...backend } = JSON.parse(body);
  const management = ["application:create", ...backend.permissions];
  const first = [
    { ...backend, name: "Manager", type: "management", permissions: management, rules: [] },
    { ...backend, name: "Page", type: "public", permissions: ["token:create"], rules: [] },
    { ...backend, name: "Token service", permissions: ["access:check"], rules: [] },
  ];
  return Array.from({ length: first.length + count }, (_, index) => {
    const { id, key } = keyAt(index);
    return {
      ...(first[index] ?? { ...backend, rules }),
      id,
      key_hash: hash("sha256", key, "buffer"),
      created_by: keyAt(0).id,
      created_at: Date.now(),
    };
  });
}

export function serve(store: RecordStore): void {
  /** Finds the application of a key. The first part of a key is the id. */
  async function authenticate(key: string | undefined): Promise<Application> {
    const found = key && (await store.findApplication(key.slice(0, idLength)));
    if (!found || !timingSafeEqual(hash("sha256", key, "buffer"), found.key_hash)) {
      throw new Refusal(401, "unknown key");
    }
    return found;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const caller = await authenticate(request.headers["svc-api-key"] as string | undefined);
    switch (`${request.method} ${request.url}`) {
      case "GET /applications/key":
        return respond(response, 200, show(caller));
      case "POST /access/check":
        return respond(response, 200, await check(caller, await readBody(request)));
      case "POST /sessions":
        return respond(response, 201, await openSession(caller));
      case "POST /sessions/authorize":
        await authorize(caller, await readBody(request));
        return respond(response, 204);
      case "POST /applications":
        return respond(response, 201, await createApplication(caller, await readBody(request)));
      default:
        throw new Refusal(404, "unknown path");
    }
  }

  async function check(caller: Application, body: Body) {
    assertHolds(caller, ["access:check"]);
    const { key, permission, token } = body;
    assert(isText(key) && isText(permission) && isText((token as Body | undefined)?.container));
    const { permissions, rules } = await authenticate(key as string);
    const container = (token as Body).container as string;
    const rule = rules.find(
      (one) =>
        container.startsWith(one.container ?? "") && one.permissions.includes(permission as string),
    );
    const allowed = rule !== undefined || permissions.includes(permission as string);
    return { allowed, transform: rule?.transform };
  }

  async function openSession(caller: Application) {
    const id = newId();
    const [key, nonce] = [createKey(id), createKey(id)];
    const now = Date.now();
    const session = {
      id,
      application_id: caller.id,
      key_hash: hash("sha256", key, "buffer"),
      nonce_hash: hash("sha256", nonce, "buffer"),
      created_at: now,
      expires_at: now + sessionTtl,
    };
    const createEntry = () => createLogEntry("session.opened", caller, id, { id });
    await store.addSession(session, createEntry);
    return { id, session_key: key, nonce, expires_at: new Date(session.expires_at).toISOString() };
  }

  async function authorize(caller: Application, body: Body): Promise<void> {
    const { nonce, permissions, rules } = body;
    assert(isText(nonce) && areTexts(permissions) && areRules(rules));
    assertHolds(caller, permissions as string[]);
    const session = await store.findSession((nonce as string).slice(0, idLength));
    const now = Date.now();
    if (
      !session ||
      session.expires_at <= now ||
      !timingSafeEqual(hash("sha256", nonce as string, "buffer"), session.nonce_hash)
    ) {
      throw new Refusal(404, "unknown nonce");
    }
    const grants = { permissions: permissions as string[], rules: rules as Rule[] };
    const authorized = { ...session, ...grants, authorized_at: now, authorized_by: caller.id };
    const createEntry = () => createLogEntry("session.authorized", caller, session.id, grants);
    if (!(await store.authorizeSession(authorized, createEntry))) {
      throw new Refusal(409, "used nonce");
    }
  }

  async function createApplication(caller: Application, body: Body) {
    assertHolds(caller, ["application:create"]);
    const { name, type, permissions, rules } = body;
    assert(isText(name) && isText(type) && areTexts(permissions) && areRules(rules));
    assertHolds(caller, permissions as string[]);
    const id = newId();
    const key = createKey(id);
    const state = { name, type, permissions, rules } as Pick<
      Application,
      "name" | "type" | "permissions" | "rules"
    >;
    const application = {
      ...state,
      id,
      key_hash: hash("sha256", key, "buffer"),
      created_by: caller.id,
      created_at: Date.now(),
    };
    const createEntry = () => createLogEntry("application.created", caller, id, state);
    await store.addApplication(application, createEntry);
    return { key, ...show(application) };
  }

  const { PORT, HOST } = process.env;
  createServer((request, response) => {
    handle(request, response).catch((error) =>
      respond(response, error instanceof Refusal ? error.status : 500, { error: String(error) }),
    );
  }).listen(Number(PORT), HOST);
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

function createKey(id: string): string {
  return id + randomBytes(32).toString("base64url");
}

function createLogEntry(kind: string, caller: Application, target: string, after: unknown): Entry {
  return { id: newId(), at: Date.now(), kind, actor: caller.id, target, after };
}

function show({ key_hash: _, ...application }: Application) {
  return { ...application, created_at: new Date(application.created_at).toISOString() };
}

type Body = Readonly<Record<string, unknown>>;

async function readBody(request: IncomingMessage): Promise<Body> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  const body: unknown = JSON.parse(Buffer.concat(parts).toString());
  assert(typeof body === "object" && body !== null);
  return body as Body;
}

function assert(isValid: boolean): void {
  if (!isValid) {
    throw new Refusal(400, "invalid body");
  }
}

function assertHolds({ permissions }: Application, needed: readonly string[]): void {
  if (!needed.every((permission) => permissions.includes(permission))) {
    throw new Refusal(403, "missing permission");
  }
}

const isText = (value: unknown) =>
  typeof value === "string" && value.length > 0 && value.length <= 500;

const areTexts = (values: unknown) => Array.isArray(values) && values.every(isText);

const areRules = (rules: unknown) =>
  Array.isArray(rules) &&
  rules.every(
    (rule: Body) =>
      Number.isInteger(rule.priority) &&
      isText(rule.transform) &&
      areTexts(rule.permissions) &&
      (rule.container === undefined || isText(rule.container)),
  );

function respond(response: ServerResponse, status: number, result?: unknown): void {
  const body = result === undefined ? undefined : Buffer.from(JSON.stringify(result));
  response.writeHead(
    status,
    body && { "content-type": "application/json", "content-length": body.length },
  );
  response.end(body);
}
