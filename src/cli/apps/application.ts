import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import {
  type Application,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../contract/fields.js";
import { isId } from "../../lib/uuid.js";
import type { Calling } from "../client.js";
import { CommandFailure } from "../errors.js";
import {
  type Column,
  detailsText,
  type Look,
  momentText,
  relativeText,
  tableText,
} from "../table.js";

type Asking = Pick<Calling, "client" | "call">;

/** Gets the application of an id, or the only one of exactly this name. */
export async function findApplication(
  { client, call }: Asking,
  idOrName: string,
): Promise<Application> {
  if (isId(idOrName)) {
    return client.applications.getApplication({ id: idOrName }, call);
  }
  // The names that fit best come first.
  const namePrefix = [...idOrName].slice(0, longestPrefix).join("");
  const { data } = await client.applications.listApplications({ namePrefix, size: 100 }, call);
  const found = data.filter(({ name }) => name === idOrName);
  const [first, ...others] = found;
  if (!first) {
    throw new CommandFailure(`There is no application named "${idOrName}".`, "notFound");
  }
  if (others.length > 0) {
    throw new CommandFailure(
      `There are several applications named "${idOrName}": say which by its id.\n` +
        found.map(({ id, type }) => `${id} (${type})`).join("\n"),
      "usage",
    );
  }
  return first;
}

/** The same, for its id alone, which needs no call where it is given. */
export async function findApplicationId(asking: Asking, idOrName: string): Promise<string> {
  return isId(idOrName) ? idOrName : (await findApplication(asking, idOrName)).id;
}

const longestPrefix = maxLengthOf(ListApplicationsRequestSchema.field.namePrefix);

export const applicationColumns: readonly Column<Application>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name }) => name, shrinks: true },
  { title: "TYPE", text: ({ type }) => type },
  {
    title: "STATUS",
    text: ({ status }) => status,
    paint: (text, { status }, { good, warn }) => (status === "enabled" ? good : warn)(text),
  },
  { title: "EXPIRES", text: (it) => relativeText(it.expiresAt), isExtra: true },
  {
    title: "LAST USED",
    text: (it) => relativeText(it.lastUsedAt, Date.now(), "never"),
    isExtra: true,
  },
  { title: "PERMISSIONS", text: permissionsText, shrinks: true, isExtra: true },
];

function permissionsText({ permissions, rules }: Application): string {
  const count = rules.length === 1 ? "1 rule" : `${rules.length} rules`;
  return [...permissions, ...(rules.length > 0 ? [`+${count}`] : [])].join(" ");
}

/** All that is known of an application. */
export function applicationText(application: Application, look: Look): string {
  const { id, name, type, status, permissions, rules, version } = application;
  const facts = detailsText(
    [
      ["id", id],
      ["name", name],
      ["type", type],
      ["status", status],
      ["permissions", permissions.join(" ")],
      ["origins", application.allowedOrigins.join(" ")],
      ["networks", application.allowedCidrs.join(" ")],
      ["session quota", application.sessionQuota?.toString()],
      ["created", momentText(application.createdAt)],
      ["created by", application.createdBy],
      ["modified", momentText(application.modifiedAt)],
      ["modified by", application.modifiedBy],
      ["expires", momentText(application.expiresAt)],
      ["last used", momentText(application.lastUsedAt)],
      ["tenant", application.tenantId],
      ["version", version],
    ],
    look,
  );
  return facts + rulesText(rules, look);
}

const ruleColumns: readonly Column<AccessRule>[] = [
  { title: "PRIORITY", text: ({ priority }) => String(priority) },
  { title: "TRANSFORM", text: ({ transform }) => transform },
  { title: "TOKENS", text: tokensText, shrinks: true },
  { title: "PERMISSIONS", text: ({ permissions }) => permissions.join(" "), shrinks: true },
  {
    title: "DESCRIPTION",
    text: ({ description = "" }) => description,
    shrinks: true,
    isExtra: true,
  },
];

function tokensText({ container, conditions }: AccessRule): string {
  const tests = conditions.map(({ attribute, operator, value }) =>
    operator === "equals" ? `${attribute} = ${value}` : `${attribute} ${operator} ${value}`,
  );
  return container ?? (tests.join(" and ") || "all");
}

/** Rules below what they belong to, in the order in which they are tried. */
export function rulesText(rules: readonly AccessRule[], look: Look): string {
  const inOrder = rules.toSorted((one, other) => one.priority - other.priority);
  return rules.length > 0 ? `\n${tableText(ruleColumns, inOrder, look)}` : "";
}
