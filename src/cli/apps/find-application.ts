import {
  type Application,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../contract/fields.js";
import { parseKey } from "../../contract/key-format.js";
import { isId } from "../../lib/uuid-text.js";
import type { ClientContext, ServiceContext } from "../client.js";
import { CommandError, latchkey } from "../errors.js";
import { maxPageSize } from "../list.js";
import { formatRelativeTime } from "../output.js";
import type { Detail } from "../table.js";

/** How an application can be named on the command line. */
export const applicationNaming = "id, name if it is unique, or external:ID";

/** The argument of commands for one application. */
export const applicationArgument = ["<application>", applicationNaming] as const;

const externalPrefix = "external:";

/** Gets an application by its id, by its name if that is unique, or by its external id. */
export async function findApplication(
  context: ServiceContext,
  reference: string,
): Promise<Application> {
  if (isId(reference)) {
    return context.client.applications.getApplication({ id: reference }, context.call);
  }
  return reference.startsWith(externalPrefix)
    ? findByExternalId(context, reference.slice(externalPrefix.length))
    : findByName(context, reference);
}

/** Whether an application is the owner of the caller's key. */
export async function isOwnApplication(context: ClientContext, id: string): Promise<boolean> {
  const { client, call, connection } = context;
  // Keys of other systems contain no id.
  const owner =
    parseKey(connection.key)?.id ?? (await client.access.whoAmI({}, call)).applicationId;
  return owner === id;
}

/** Gets the id of an application. An id needs no call. */
export async function findApplicationId(
  context: ServiceContext,
  reference: string,
): Promise<string> {
  return isId(reference) ? reference : (await findApplication(context, reference)).id;
}

/** The name of an application by its id. `undefined` if it was deleted, or the caller may not read it. */
export type NameOf = (id: string) => string | undefined;

/** Reads the names of applications, for people only: JSON has the ids. */
export async function readNames(
  { client, call, output }: ClientContext,
  ids: readonly (string | undefined)[],
): Promise<NameOf> {
  const wanted = output.isJson ? [] : [...new Set(ids)].filter((id) => id !== undefined);
  const names = new Map<string, string>();
  try {
    for (let start = 0; start < wanted.length; start += maxPageSize) {
      const request = { id: wanted.slice(start, start + maxPageSize), size: maxPageSize };
      for (const { id, name } of (await client.applications.listApplications(request, call)).data) {
        names.set(id, name);
      }
    }
  } catch {
    // The ids are shown instead.
  }
  return (id) => names.get(id);
}

/** Details of an application: its name and its id, or only the id. */
export function nameDetail(label: string, id: string | undefined, nameOf: NameOf): Detail {
  const name = id && nameOf(id);
  return name ? [label, name, id] : [label, id];
}

async function findByExternalId(
  { client, call }: ServiceContext,
  externalId: string,
): Promise<Application> {
  if (externalId === "") {
    throw new CommandError(`Pass an external id after ${externalPrefix}.`, "usage");
  }
  const { data } = await client.applications.listApplications({ externalId }, call);
  const [found] = data;
  if (!found) {
    throw notFound(`No application has the external id "${externalId}".`);
  }
  return found;
}

/** Lists the applications of exactly this name. */
export async function listNamed(
  { client, call }: ServiceContext,
  wanted: string,
): Promise<Application[]> {
  // Exact matches come first.
  const namePrefix = [...wanted].slice(0, maxPrefixLength).join("");
  const request = { namePrefix, size: maxPageSize };
  const { data } = await client.applications.listApplications(request, call);
  return data.filter(({ name }) => name === wanted);
}

async function findByName(context: ServiceContext, wanted: string): Promise<Application> {
  const found = await listNamed(context, wanted);
  const [first, ...others] = found;
  if (!first) {
    const similar = await findSimilarNames(context, wanted);
    throw notFound(`No application is named "${wanted}".`, similar);
  }
  if (others.length > 0) {
    const lines = found.map(
      ({ id, type, createdAt }) => `  ${id}  ${type}, created ${formatRelativeTime(createdAt)}`,
    );
    throw new CommandError(
      `Several applications are named "${wanted}".`,
      "usage",
      `Use an id:\n${lines.join("\n")}`,
    );
  }
  return first;
}

const maxSuggestions = 3;

/** Names that contain a text, ignoring case. */
async function findSimilarNames({ client, call }: ServiceContext, text: string): Promise<string[]> {
  const request = { q: text, size: maxPageSize };
  const { data } = await client.applications
    .listApplications(request, call)
    .catch(() => ({ data: [] }));
  const lowerCase = text.toLowerCase();
  const names = data.map(({ name }) => name);
  const similar = new Set(names.filter((name) => name.toLowerCase().includes(lowerCase)));
  return [...similar].slice(0, maxSuggestions);
}

function notFound(message: string, similar: readonly string[] = []): CommandError {
  const quoted = similar.map((name) => `"${name}"`).join(", ");
  const suggestion = quoted && `(Did you mean ${similar.length > 1 ? "one of " : ""}${quoted}?)\n`;
  const hint = `${suggestion}List them with ${latchkey("apps ls")}.`;
  return new CommandError(message, "notFound", hint);
}

const maxPrefixLength = maxLengthOf(ListApplicationsRequestSchema.field.namePrefix);
