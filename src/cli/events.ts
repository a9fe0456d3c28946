import { setTimeout as sleep } from "node:timers/promises";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import {
  type Event,
  EventSchema,
  ListEventsRequestSchema,
  ListEventsResponseSchema,
  type Principal,
  type WatchEventsResponse,
} from "../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../contract/fields.js";
import { minReconnectDelay, nextReconnectDelay } from "../contract/reconnect.js";
import {
  applicationNaming,
  findApplicationId,
  type NameOf,
  readNames,
} from "./apps/find-application.js";
import { toCommandError } from "./call-errors.js";
import { type ClientContext, type ClientFlags, withClient } from "./client.js";
import { CommandError, latchkey } from "./errors.js";
import { showEvent } from "./event-details.js";
import { type ListFlags, readPages, showList } from "./list.js";
import { parsePastTime } from "./option-values.js";
import {
  addExample,
  choice,
  repeatable,
  withConnection,
  withLimit,
  withListAction,
} from "./options.js";
import { formatUtcTime } from "./output.js";
import { type Column, formatTable, layoutTable } from "./table.js";

const principalNaming = `application (${applicationNaming}), session or key (id)`;

export function addEventCommands(program: Command): void {
  const events = program
    .command("events")
    .summary("list changes and denied requests, or follow them")
    .description(
      "list changes and denied requests, newest first, or follow them, or show one by its id",
    )
    .option("-f, --follow", "show new events until Ctrl-C; with --json one object per line")
    .option("--principal <principal>", `only events about or caused by this ${principalNaming}`)
    .option("--target <target>", `only events about this ${principalNaming}`)
    .option("--actor <actor>", `only events caused by this ${principalNaming}`)
    .addOption(
      repeatable(
        choice(
          "--kind <kind>",
          "only events of this kind; may be repeated",
          choicesOf(ListEventsRequestSchema.field.kind),
        ),
      ),
    )
    .option("--request-id <id>", "only the events of this request, as its error names it")
    .option("--address <address>", "only calls from this client address")
    .option("--method <method>", "only calls of this method, for example UpdateApplication")
    .option("--reason <reason>", "only denials with this reason, for example permission_denied")
    .option("--since <time>", "only events since this time; 1h means one hour ago", parsePastTime)
    .option("--until <time>", "only events before this time; 1h means one hour ago", parsePastTime);
  withListAction(events, showEvents, showEvent);
  addExample(
    withConnection(withLimit(events)),
    "latchkey events --since 1h --kind access.denied",
    "latchkey events --principal 'Web shop'",
    "latchkey events --request-id b7c1f0e2-4a5d-4c3b-9e8f-1a2b3c4d5e6f",
    "latchkey events 0198c8a6-1b2c-7d3e-8f40-5a6b7c8d9e0f",
    "latchkey events --follow --json | jq .kind",
  );
}

interface EventFlags extends ClientFlags, ListFlags {
  readonly follow?: boolean;
  readonly principal?: string;
  readonly target?: string;
  readonly actor?: string;
  readonly kind?: string[];
  readonly requestId?: string;
  readonly address?: string;
  readonly method?: string;
  readonly reason?: string;
  readonly since?: Date;
  readonly until?: Date;
}

async function showEvents(flags: EventFlags): Promise<void> {
  if (flags.follow && flags.until) {
    throw new CommandError("--follow cannot be combined with --until.", "usage");
  }
  await withClient(flags, async (context) => {
    const { principal, target, actor } = flags;
    const resolved = {
      ...flags,
      ...(principal && { principal: await findApplicationId(context, principal) }),
      ...(target && { target: await findApplicationId(context, target) }),
      ...(actor && { actor: await findApplicationId(context, actor) }),
    };
    await (flags.follow ? followEvents(resolved, context) : listEvents(resolved, context));
  });
}

async function listEvents(flags: EventFlags, context: ClientContext): Promise<void> {
  const list = await readEvents(flags, context);
  const unnamed = list.data
    .flatMap(({ target, actor }) => [target, actor])
    .filter((principal) => principal?.name === undefined);
  const nameOf = await readNames(
    context,
    unnamed.map((principal) => principal?.applicationId),
  );
  showList(context.output, ListEventsResponseSchema, list, {
    noun: "event",
    format: (rows, display) => formatTable(eventColumns(nameOf), rows, display),
  });
}

/** Reads past events, newest first. */
function readEvents(flags: EventFlags, { client, call }: ClientContext) {
  const { since, until } = flags;
  const filter = {
    ...eventFilter(flags),
    ...(since && { since: timestampFromDate(since) }),
    ...(until && { until: timestampFromDate(until) }),
  };
  return readPages(flags, (position) =>
    client.events.listEvents({ ...filter, ...position, includeTotal: true }, call),
  );
}

/** The filters that lists and watches share. */
function eventFilter(flags: EventFlags) {
  const { principal, target, actor, kind, requestId, address, method, reason } = flags;
  return {
    ...(principal && { principal }),
    ...(target && { target }),
    ...(actor && { actor }),
    ...(kind && { kind }),
    ...(requestId && { requestId }),
    ...(address && { address }),
    ...(method && { method }),
    ...(reason && { reason }),
  };
}

/** With --follow, the rows are not known in advance, but they must fit 80 characters, and all of them 100. */
export const eventColumns = (nameOf: NameOf = () => undefined): readonly Column<Event>[] => [
  {
    title: "TIME",
    minWidth: "2026-01-31 12:00:00Z".length,
    text: ({ at }) => (at ? formatUtcTime(at) : ""),
    paint: (text, _, { dim }) => dim(text),
  },
  {
    title: "KIND",
    minWidth: "last_manager.expiring".length,
    shrinkTo: 18,
    text: ({ kind }) => kind,
    paint: (text, { outcome }, { bad, bold }) => (outcome === "denied" ? bad : bold)(text),
  },
  {
    title: "TARGET",
    minWidth: 20,
    text: ({ target }) => formatPrincipal(target, nameOf),
    shrinkTo: 14,
  },
  {
    title: "BY",
    minWidth: 20,
    text: ({ actor }) => formatPrincipal(actor, nameOf),
    shrinkTo: 12,
    optional: true,
  },
  {
    title: "METHOD",
    minWidth: "RegenerateApplicationKey".length,
    text: ({ method = "" }) => method.slice(method.lastIndexOf("/") + 1),
    shrinkTo: 12,
    optional: true,
  },
  { title: "DETAILS", minWidth: 30, text: detailsOf, shrinkTo: 12, optional: true },
];

function formatPrincipal(principal: Principal | undefined, nameOf: NameOf): string {
  const { name, applicationId, sessionId } = principal ?? {};
  return name ?? (applicationId && nameOf(applicationId)) ?? sessionId ?? applicationId ?? "–";
}

function detailsOf({ before, after, reason, count = 1, endsAt, openedOnly }: Event): string {
  const isRenamed = before?.name !== undefined && after && before.name !== after.name;
  return [
    ...(isRenamed ? [`was "${before.name}"`] : []),
    ...(reason ? [count > 1 ? `${reason} (${count} times)` : reason] : []),
    ...(openedOnly ? ["only sessions that it opened"] : []),
    ...(endsAt ? [`expires ${formatUtcTime(endsAt)}`] : []),
  ].join(", ");
}

/** Errors that a new connection does not fix. */
const permanentCodes = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

/** Shows new events until interrupted. Reconnects and resumes after a lost connection. */
async function followEvents(flags: EventFlags, context: ClientContext): Promise<void> {
  const { output } = context;
  const printer = createEventPrinter(context);
  let resumeToken: string | undefined;
  let isConnected = true;

  /** Several attempts to reconnect may fail. */
  function reportLoss(message: string): void {
    if (isConnected) {
      isConnected = false;
      output.warn(message);
    }
  }

  for (let pause = minReconnectDelay; ; pause = nextReconnectDelay(pause)) {
    try {
      for await (const message of watchEvents(flags, context, resumeToken)) {
        if (resumeToken === undefined) {
          printer.showHeader();
          await showPastEvents(flags, context, printer.show);
        }
        if (!isConnected) {
          isConnected = true;
          output.warn("Reconnected.");
        }
        resumeToken = message.resumeToken;
        pause = minReconnectDelay;
        if (message.reset) {
          output.warn(`Events may be missing here. Run ${latchkey("events")} to list them.`);
        }
        message.events.forEach(printer.show);
      }
      reportLoss("The service closed the connection. Reconnecting.");
    } catch (error) {
      const isPermanent = error instanceof ConnectError && permanentCodes.has(error.code);
      if (isPermanent || resumeToken === undefined) {
        throw error;
      }
      const { message } = toCommandError(error, context.connection) as Error;
      reportLoss(`Connection lost. Reconnecting. (${message})`);
    }
    await sleep(pause);
  }
}

/** Shows the events since --since. Called once the watch is open, so that none is missed in between. */
async function showPastEvents(
  flags: EventFlags,
  context: ClientContext,
  show: (event: Event) => void,
): Promise<void> {
  if (flags.since) {
    const { data } = await readEvents({ ...flags, all: true }, context);
    data.toReversed().forEach(show);
  }
}

/** Prints each event once. JSON has no table header. */
function createEventPrinter({ output }: ClientContext) {
  const table = layoutTable(eventColumns(), [], output.display);
  const seen = createSeenIds();
  return {
    showHeader(): void {
      if (!output.isJson) {
        process.stdout.write(`${table.header}\n`);
      }
    },
    show(event: Event): void {
      if (seen.add(event.id)) {
        output.showLine(EventSchema, event, () => `${table.line(event)}\n`);
      }
    },
  };
}

/** Duplicates arrive soon after each other. */
const maxSeenIds = 100_000;

function createSeenIds() {
  const ids = new Set<string>();
  return {
    /** Returns whether the id is new. */
    add(id: string): boolean {
      if (ids.has(id)) {
        return false;
      }
      if (ids.size >= maxSeenIds) {
        ids.clear();
      }
      ids.add(id);
      return true;
    },
  };
}

/**
 * Watches events over one connection. The service sends heartbeats, so a
 * connection that is silent for longer than --timeout is considered broken.
 */
async function* watchEvents(
  flags: EventFlags,
  { client }: ClientContext,
  resumeToken: string | undefined,
): AsyncGenerator<WatchEventsResponse> {
  const from = resumeToken === undefined ? {} : { resumeToken };
  const controller = new AbortController();
  const abort = () => controller.abort(new ConnectError("no heartbeat", Code.DeadlineExceeded));
  const request = { ...eventFilter(flags), ...from };
  let timer = setTimeout(abort, flags.timeout);
  try {
    for await (const message of client.events.watchEvents(request, { signal: controller.signal })) {
      clearTimeout(timer);
      yield message;
      timer = setTimeout(abort, flags.timeout);
    }
  } finally {
    clearTimeout(timer);
  }
}
