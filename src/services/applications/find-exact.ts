import type { HandlerContext } from "@connectrpc/connect";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { callerHolds } from "../../auth/caller.js";
import type { Keyring } from "../../auth/keys.js";
import { callerOf } from "../../call.js";
import { containsKeyPrefix, parseKey } from "../../contract/key-format.js";
import { accessOf, methodName } from "../../contract/methods.js";
import { invalidRequest, type Problem } from "../../errors.js";
import { isId } from "../../lib/uuid-text.js";
import type { Store } from "../../store/port/store.js";

/**
 * Finds the application that a search text identifies: by its id, by the id of
 * one of its keys or of a session that it opened, or by a key. Returns the ids to list, none for a key that
 * belongs to no application of the tenant, or `undefined` for another text.
 * Only callers who may check keys find the key of another system: the result
 * confirms the entire key, so the search could be used to guess keys.
 */
type FindExact = (context: HandlerContext, text: string) => Promise<readonly string[] | undefined>;

const { permission: checkPermission } = accessOf(AccessService.method.checkAccess);

export function createFindExact({ applications, sessions }: Store, keyring: Keyring): FindExact {
  return async (context, text) => {
    const caller = callerOf(context);
    const { tenantId } = caller.application;
    const isUrl = context.requestMethod !== "POST";
    if (isUrl && containsKeyPrefix(text)) {
      throw keyInUrl();
    }
    const idInTenant = async (id: string | undefined) => {
      const found = id === undefined ? undefined : await applications.find(id);
      return found?.tenantId === tenantId ? found.id : undefined;
    };

    const key = parseKey(text);
    if (key) {
      // The secret is not compared: a replaced key is found as well.
      const isSessionKey = key.type === "ses" || key.type === "non";
      const session = isSessionKey ? await sessions.find(key.id) : undefined;
      const id = await idInTenant(isSessionKey ? session?.application.id : key.id);
      return id === undefined ? [] : [id];
    }
    if (isId(text)) {
      const id = text.toLowerCase();
      const query = { tenantId, filter: { keyId: id }, size: 1, from: { page: 1 } };
      const found =
        (await idInTenant(id)) ??
        (await applications.list(query, context.signal)).items[0]?.id ??
        (await idInTenant((await sessions.find(id))?.application.id));
      return found === undefined ? undefined : [found];
    }
    if (keyring.acceptsImported(text) && callerHolds(caller, checkPermission)) {
      const id = await idInTenant(await applications.findByImportedKey(keyring.hashes(text)));
      if (id !== undefined && isUrl) {
        throw keyInUrl();
      }
      return id === undefined ? undefined : [id];
    }
    return undefined;
  };
}

/** The text of the problem does not repeat the key. */
function keyInUrl(): Problem {
  const path = `/${methodName(ApplicationService.method.listApplications)}`;
  return invalidRequest({
    field: "q",
    message: `contains a key, and keys must not be in URLs: search for an id, or send the search as POST ${path}`,
  });
}
