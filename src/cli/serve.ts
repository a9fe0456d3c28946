import { readSettings } from "../config/settings.js";

/** Runs the service, and loads only what this process needs for its part in it. */
export async function serve(): Promise<void> {
  const settings = readSettings();
  if (settings.workers > 1) {
    const { supervise } = await import("../cluster/supervisor.js");
    await supervise(settings);
  } else {
    const { serveAlone } = await import("../serve.js");
    await serveAlone(settings);
  }
}
