import {
  type Application,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../field-facts.js";
import { isId } from "../../ids.js";
import { CommandFailure } from "../failure.js";
import type { Calling } from "../with-client.js";

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
