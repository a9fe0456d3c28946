import {
  type Application,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../contract/fields.js";
import { isId } from "../../lib/uuid.js";
import type { ClientContext } from "../client.js";
import { CommandError } from "../errors.js";
import { formatRules } from "../grants.js";
import { type Display, formatRelativeTime, formatTime } from "../output.js";
import { type Column, formatDetails } from "../table.js";

type CallContext = Pick<ClientContext, "client" | "call">;

/** Gets an application by its id, or by its name if that is unique. */
export async function findApplication(
  { client, call }: CallContext,
  idOrName: string,
): Promise<Application> {
  if (isId(idOrName)) {
    return client.applications.getApplication({ id: idOrName }, call);
  }
  // Exact matches come first.
  const namePrefix = [...idOrName].slice(0, maxPrefixLength).join("");
  const { data } = await client.applications.listApplications({ namePrefix, size: 100 }, call);
  const found = data.filter(({ name }) => name === idOrName);
  const [first, ...others] = found;
  if (!first) {
    throw new CommandError(
      `No application is named "${idOrName}".`,
      "notFound",
      "List them with latchkey apps ls.",
    );
  }
  if (others.length > 0) {
    throw new CommandError(
      `Several applications are named "${idOrName}". Use the id.\n` +
        found.map(({ id, type }) => `${id} (${type})`).join("\n"),
      "usage",
    );
  }
  return first;
}

/** Gets the id of an application by its id or name. An id needs no call. */
export async function findApplicationId(context: CallContext, idOrName: string): Promise<string> {
  return isId(idOrName) ? idOrName : (await findApplication(context, idOrName)).id;
}

const maxPrefixLength = maxLengthOf(ListApplicationsRequestSchema.field.namePrefix);

export const applicationColumns: readonly Column<Application>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name }) => name, shrinkable: true },
  { title: "TYPE", text: ({ type }) => type },
  {
    title: "STATUS",
    text: ({ status }) => status,
    paint: (text, { status }, { good, warn }) => (status === "enabled" ? good : warn)(text),
  },
  { title: "EXPIRES", text: (it) => formatRelativeTime(it.expiresAt), optional: true },
  {
    title: "LAST USED",
    text: (it) => formatRelativeTime(it.lastUsedAt, Date.now(), "never"),
    optional: true,
  },
  { title: "PERMISSIONS", text: formatPermissions, shrinkable: true, optional: true },
];

function formatPermissions({ permissions, rules }: Application): string {
  const count = rules.length === 1 ? "1 rule" : `${rules.length} rules`;
  return [...permissions, ...(rules.length > 0 ? [`+${count}`] : [])].join(" ");
}

export function formatApplication(application: Application, display: Display): string {
  const { id, name, type, status, permissions, rules, version } = application;
  const details = formatDetails(
    [
      ["id", id],
      ["name", name],
      ["type", type],
      ["status", status],
      ["permissions", permissions.join(" ")],
      ["origins", application.allowedOrigins.join(" ")],
      ["networks", application.allowedCidrs.join(" ")],
      ["session quota", application.sessionQuota?.toString()],
      ["created", formatTime(application.createdAt)],
      ["created by", application.createdBy],
      ["modified", formatTime(application.modifiedAt)],
      ["modified by", application.modifiedBy],
      ["expires", formatTime(application.expiresAt)],
      ["last used", formatTime(application.lastUsedAt)],
      ["tenant", application.tenantId],
      ["version", version],
    ],
    display,
  );
  return details + formatRules(rules, display);
}
