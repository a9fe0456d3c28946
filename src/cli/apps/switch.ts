import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { visible } from "../../transfer/visible.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { findApplicationId } from "./find-application.js";

export const disableApplication = (idOrName: string, flags: CallingFlags) =>
  switchApplication("disableApplication", idOrName, flags);

export const enableApplication = (idOrName: string, flags: CallingFlags) =>
  switchApplication("enableApplication", idOrName, flags);

async function switchApplication(
  method: "disableApplication" | "enableApplication",
  idOrName: string,
  flags: CallingFlags,
): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    const after = await client.applications[method]({ id }, call);
    output.show(ApplicationSchema, after, () => `"${visible(after.name)}" is ${after.status}.\n`);
  });
}
