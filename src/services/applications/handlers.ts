import { createChangeHandlers } from "./changes.js";
import { createKeyHandlers } from "./keys.js";
import { createReadHandlers } from "./queries.js";
import {
  type ApplicationHandlerOptions,
  type ApplicationHandlers,
  createChangeApplication,
} from "./update.js";

export function createApplicationHandlers(options: ApplicationHandlerOptions): ApplicationHandlers {
  const { trailOf, store } = options;
  const { applications } = store;
  const changing = {
    ...options,
    changeApplication: createChangeApplication({ applications, trailOf }),
  };
  return {
    ...createReadHandlers(options),
    ...createChangeHandlers(changing),
    ...createKeyHandlers(changing),
  };
}
