import { visible } from "../../transfer/visible.js";
import { findApplication } from "../apps/find-application.js";
import { CommandFailure } from "../failure.js";
import { confirm } from "../prompt.js";
import { type Calling, type CallingFlags, withClient } from "../with-client.js";

interface Flags extends CallingFlags {
  readonly all?: boolean;
  readonly application?: string;
  readonly yes?: boolean;
}

export async function removeSession(id: string | undefined, flags: Flags): Promise<void> {
  const { all = false, application } = flags;
  if (id !== undefined && !all && application === undefined) {
    await withClient(flags, (calling) => removeOne(id, calling));
  } else if (id === undefined && all && application !== undefined) {
    await withClient(flags, (calling) => removeAll(application, flags, calling));
  } else {
    throw new CommandFailure(
      "Say which session by its id, or --all --application APPLICATION for all of an application.",
      "usage",
    );
  }
}

async function removeOne(id: string, { client, call, output }: Calling): Promise<void> {
  await client.sessions.deleteSession({ id }, call);
  output.showValue({ id }, () => `The session ${id} has ended.\n`);
}

async function removeAll(application: string, { yes }: Flags, calling: Calling): Promise<void> {
  const { client, call, output } = calling;
  const { id, name } = await findApplication(calling, application);
  await confirm(`All sessions of "${name}" (${id}) will end.`, { yes });
  await client.sessions.revokeAllSessions({ id }, call);
  output.showValue(
    { application_id: id },
    () => `All sessions of "${visible(name)}" have ended.\n`,
  );
}
