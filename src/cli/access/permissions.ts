import {
  type KnownPermission,
  ListPermissionsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Column, tableText } from "../table.js";
import { type CallingFlags, withClient } from "../with-client.js";

const columns: readonly Column<KnownPermission>[] = [
  { title: "NAME", text: ({ name }) => name },
  { title: "ALLOWS", text: ({ allows }) => allows, shrinks: true },
  { title: "TYPES", text: ({ types }) => types.join(" "), isExtra: true },
];

export async function listPermissions(
  flags: CallingFlags & { readonly type?: string },
): Promise<void> {
  const { type } = flags;
  await withClient(flags, async ({ client, call, output }) => {
    const known = await client.access.listPermissions(type ? { type } : {}, call);
    output.show(ListPermissionsResponseSchema, known, (look) =>
      tableText(columns, known.data, look),
    );
  });
}
