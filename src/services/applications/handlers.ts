import type { Dependencies } from "../../dependencies.js";
import { createKeyHandlers } from "./key-handlers.js";
import { createReadHandlers } from "./read-handlers.js";
import type { ApplicationHandlers } from "./update-application.js";
import { createWriteHandlers } from "./write-handlers.js";

export function createApplicationHandlers(
  dependencies: Pick<
    Dependencies,
    "store" | "keyring" | "grantGuard" | "commit" | "clock" | "createSealer" | "settings"
  >,
): ApplicationHandlers {
  return {
    ...createReadHandlers(dependencies),
    ...createWriteHandlers(dependencies),
    ...createKeyHandlers(dependencies),
  };
}
