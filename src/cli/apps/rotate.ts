import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { confirm } from "../prompt.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { findApplication } from "./find-application.js";
import { type NewKeyFlags, withNewKey } from "./new-key.js";

interface Flags extends CallingFlags, NewKeyFlags {
  /** Milliseconds. */
  readonly grace?: number;
  readonly yes?: boolean;
}

export async function rotateKey(idOrName: string, flags: Flags): Promise<void> {
  const { grace, yes } = flags;
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const { id, name, version } = await findApplication(calling, idOrName);
    if (grace === undefined) {
      await confirm(`The key of "${name}" will stop working at once (--grace lets it go on).`, {
        yes,
      });
    }
    const gracePeriod = grace === undefined ? {} : { gracePeriod: durationFromMs(grace) };
    // What was changed since it was shown keeps its key.
    const request = { id, ifMatch: version, ...gracePeriod };
    await withNewKey(flags, output, () =>
      client.applications.regenerateApplicationKey(request, call),
    );
  });
}
