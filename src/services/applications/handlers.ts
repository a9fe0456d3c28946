import { createKeyHandlers } from "./key-handlers.js";
import { createReadHandlers } from "./read-handlers.js";
import {
  type ApplicationHandlerOptions,
  type ApplicationHandlers,
  createUpdateApplication,
} from "./update-application.js";
import { createWriteHandlers } from "./write-handlers.js";

export function createApplicationHandlers(options: ApplicationHandlerOptions): ApplicationHandlers {
  const { audit, store } = options;
  const { applications } = store;
  const updateOptions = {
    ...options,
    updateApplication: createUpdateApplication({ applications, audit }),
  };
  return {
    ...createReadHandlers(options),
    ...createWriteHandlers(updateOptions),
    ...createKeyHandlers(updateOptions),
  };
}
