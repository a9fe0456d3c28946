import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { applicationText } from "./application-text.js";
import { findApplication } from "./find-application.js";

export async function getApplication(idOrName: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const application = await findApplication(calling, idOrName);
    calling.output.show(ApplicationSchema, application, (look) =>
      applicationText(application, look),
    );
  });
}
