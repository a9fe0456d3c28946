import {
  type ApplicationKey,
  ListApplicationKeysResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Column, tableText } from "../table.js";
import { relativeText } from "../time-text.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { findApplicationId } from "./find-application.js";

const keyColumns: readonly Column<ApplicationKey>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "CREATED", text: ({ createdAt }) => relativeText(createdAt) },
  { title: "ENDS", text: ({ expiresAt }) => relativeText(expiresAt) },
  { title: "LAST USED", text: ({ lastUsedAt }) => relativeText(lastUsedAt, Date.now(), "never") },
];

export async function listKeys(idOrName: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    const keys = await client.applications.listApplicationKeys({ id }, call);
    output.show(ListApplicationKeysResponseSchema, keys, (look) =>
      tableText(keyColumns, keys.data, look),
    );
  });
}

export async function endKey(idOrName: string, keyId: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    await client.applications.deleteApplicationKey({ id, keyId }, call);
    output.showValue({ id, key_id: keyId }, () => `The key ${keyId} has ended.\n`);
  });
}
