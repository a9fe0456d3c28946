import { createKeyHandlers } from "./key-handlers.js";
import { createReadHandlers } from "./read-handlers.js";
import {
  type ApplicationHandlerOptions,
  type ApplicationHandlers,
  createUpdateApplication,
} from "./update-application.js";
import { createWriteHandlers } from "./write-handlers.js";

export function createApplicationHandlers(options: ApplicationHandlerOptions): ApplicationHandlers {
  const updateOptions = {
    ...options,
    updateApplication: createUpdateApplication(options),
  };
  return {
    ...createReadHandlers(options),
    ...createWriteHandlers(updateOptions),
    ...createKeyHandlers(updateOptions),
  };
}
