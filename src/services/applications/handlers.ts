import { createChangeHandlers } from "./changes.js";
import { createKeyHandlers } from "./keys.js";
import { createQueryHandlers } from "./queries.js";
import {
  type ApplicationHandlerOptions,
  type ApplicationHandlers,
  createUpdateApplication,
} from "./update.js";

export function createApplicationHandlers(options: ApplicationHandlerOptions): ApplicationHandlers {
  const { audit, store } = options;
  const { applications } = store;
  const changing = {
    ...options,
    updateApplication: createUpdateApplication({ applications, audit }),
  };
  return {
    ...createQueryHandlers(options),
    ...createChangeHandlers(changing),
    ...createKeyHandlers(changing),
  };
}
