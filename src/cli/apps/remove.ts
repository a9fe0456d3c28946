import { visible } from "../../transfer/visible.js";
import { confirm } from "../prompt.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { findApplication } from "./find-application.js";

export async function removeApplication(
  idOrName: string,
  flags: CallingFlags & { readonly yes?: boolean },
): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const { id, name, type, version } = await findApplication(calling, idOrName);
    await confirm(
      `The ${type} application "${name}" (${id}) will be deleted, with its keys and sessions.`,
      { yes: flags.yes, answer: name },
    );
    // What was changed since it was shown is not deleted.
    await client.applications.deleteApplication({ id, ifMatch: version }, call);
    output.showValue({ id }, () => `"${visible(name)}" (${id}) is deleted.\n`);
  });
}
