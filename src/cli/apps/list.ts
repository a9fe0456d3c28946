import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ListApplicationsResponseSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type ListFlags, moreNote, readPages } from "../pages.js";
import { tableText } from "../table.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { applicationColumns } from "./application-text.js";

interface Flags extends CallingFlags, ListFlags {
  readonly type?: string;
  readonly status?: string;
  readonly permission?: string;
  readonly name?: string;
  readonly expiresBefore?: Date;
  readonly unusedSince?: Date;
  readonly order?: string;
}

export async function listApplications(flags: Flags): Promise<void> {
  const { type, status, permission, name: namePrefix, order, expiresBefore, unusedSince } = flags;
  const search = {
    ...(type && { type }),
    ...(status && { status }),
    ...(permission && { permission }),
    ...(namePrefix && { namePrefix }),
    ...(order && { order }),
    ...(expiresBefore && { expiresBefore: timestampFromDate(expiresBefore) }),
    ...(unusedSince && { lastUsedBefore: timestampFromDate(unusedSince) }),
  };
  await withClient(flags, async ({ client, call, output }) => {
    const found = await readPages(flags, (place) =>
      client.applications.listApplications({ ...search, ...place }, call),
    );
    output.show(ListApplicationsResponseSchema, found, (look) =>
      tableText(applicationColumns, found.data, look),
    );
    output.note(moreNote(found));
  });
}
