import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type Application,
  ApplicationSchema,
  ListApplicationsRequestSchema,
  ListApplicationsResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { parseKey } from "../../contract/key-format.js";
import { countOf } from "../../lib/terminal.js";
import { type ClientContext, type ClientFlags, withClient } from "../client.js";
import { CommandError } from "../errors.js";
import { type ListFlags, readPages, showList } from "../list.js";
import { parseFutureTime, parsePastTime } from "../option-values.js";
import { addExample, choice, withConnection, withLimit } from "../options.js";
import { formatRelativeTime } from "../output.js";
import { readSecret } from "../prompt.js";
import { type Column, formatTable } from "../table.js";
import { formatApplication } from "./fields.js";
import {
  applicationArgument,
  findApplication,
  findApplicationId,
  readNames,
} from "./find-application.js";

export function addListAndGet(apps: Command): void {
  const list = apps
    .command("ls")
    .alias("list")
    .description("list applications, newest first")
    .addOption(
      choice(
        "--type <type>",
        "only applications of this type",
        choicesOf(ListApplicationsRequestSchema.field.type),
      ),
    )
    .addOption(
      choice(
        "--status <status>",
        "only applications with this status",
        choicesOf(ListApplicationsRequestSchema.field.status),
      ),
    )
    .option("--permission <name>", "only applications with this permission")
    .option(
      "--search <text>",
      "only applications with these words in name, description or external id, or with this id; - for a key from a prompt or stdin",
    )
    .option("--name <prefix>", "only applications whose name starts with this")
    .option("--external-id <id>", "only the application with this external id")
    .option("--created-by <application>", "only applications that this application created")
    .option(
      "--expires-before <time>",
      "only applications that expire before this time; 30d means in 30 days",
      parseFutureTime,
    )
    .option(
      "--unused-since <time>",
      "only applications not used since this time; 90d means 90 days ago",
      parsePastTime,
    )
    .option("--never-used", "only applications that were never used")
    .addOption(
      choice("--order <order>", "sort order", choicesOf(ListApplicationsRequestSchema.field.order)),
    )
    .action(listApplications);
  withConnection(withLimit(list));
  addExample(
    list,
    "latchkey apps ls --search shop",
    "latchkey apps ls --type private --unused-since 90d",
    "latchkey apps ls --all --json | jq -r '.data[].name'",
  );

  const get = apps
    .command("get")
    .description("show an application")
    .argument(...applicationArgument)
    .action(getApplication);
  addExample(
    withConnection(get),
    "latchkey apps get 'Web shop'",
    "latchkey apps get external:svc-4711 --json",
  );
}

interface ApplicationListFlags extends ClientFlags, ListFlags {
  readonly type?: string;
  readonly status?: string;
  readonly permission?: string;
  readonly search?: string;
  readonly name?: string;
  readonly externalId?: string;
  readonly createdBy?: string;
  readonly expiresBefore?: Date;
  readonly unusedSince?: Date;
  readonly neverUsed?: boolean;
  readonly order?: string;
}

async function listApplications(flags: ApplicationListFlags): Promise<void> {
  const { type, status, permission, name: namePrefix, externalId, order } = flags;
  const { createdBy, expiresBefore, unusedSince, neverUsed } = flags;
  const q = await readSearch(flags);
  const filter = {
    ...(type && { type }),
    ...(status && { status }),
    ...(permission && { permission }),
    ...(q !== undefined && { q }),
    ...(namePrefix && { namePrefix }),
    ...(externalId !== undefined && { externalId }),
    ...(order && { order }),
    ...(expiresBefore && { expiresBefore: timestampFromDate(expiresBefore) }),
    ...(unusedSince && { lastUsedBefore: timestampFromDate(unusedSince) }),
    ...(neverUsed && { neverUsed }),
  };
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const creator = createdBy && { createdBy: await findApplicationId(context, createdBy) };
    const list = await readPages(flags, (position) =>
      client.applications.listApplications({ ...filter, ...creator, ...position }, call),
    );
    showList(output, ListApplicationsResponseSchema, list, {
      noun: "application",
      format: (rows, display) => formatTable(applicationColumns, rows, display),
    });
  });
}

/** A key comes from a prompt or stdin: other users see arguments. */
async function readSearch({ search }: ApplicationListFlags): Promise<string | undefined> {
  if (search !== undefined && parseKey(search.trim())) {
    throw new CommandError(
      "--search must not be a key: other users and the shell history could see it.",
      "usage",
      "Use --search - and enter the key at the prompt, or pass it on stdin.",
    );
  }
  return search === "-" ? readSecret({ noun: "key" }) : search;
}

const applicationColumns: readonly Column<Application>[] = [
  { title: "NAME", text: ({ name }) => name, shrinkTo: 30 },
  { title: "TYPE", text: ({ type }) => type },
  {
    title: "STATUS",
    text: ({ status }) => status,
    paint: (text, { status }, { good, warn }) => (status === "enabled" ? good : warn)(text),
  },
  { title: "EXPIRES", text: (it) => formatRelativeTime(it.expiresAt), optional: true },
  {
    title: "LAST USED",
    text: (it) => formatRelativeTime(it.lastUsedAt, "never"),
    optional: true,
  },
  { title: "PERMISSIONS", text: formatPermissions, shrinkTo: 12, optional: true },
  {
    title: "ID",
    text: ({ id }) => id,
    paint: (text, _, { dim }) => dim(text),
    optional: true,
  },
];

function formatPermissions({ permissions, rules }: Application): string {
  const others = rules.length > 0 ? [`+${countOf(rules.length, "rule")}`] : [];
  return [...permissions, ...others].join(" ");
}

async function getApplication(reference: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) =>
    showApplication(await findApplication(context, reference), context),
  );
}

export async function showApplication(
  application: Application,
  context: ClientContext,
): Promise<void> {
  const nameOf = await readNames(context, [application.createdBy, application.modifiedBy]);
  context.output.show(ApplicationSchema, application, (display) =>
    formatApplication(application, nameOf, display),
  );
}
