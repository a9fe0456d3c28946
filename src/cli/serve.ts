import { readSettings } from "../config.js";

/** Runs the service, and loads only what this process needs for its part in it. */
export async function serve(): Promise<void> {
  const settings = readSettings();
  if (settings.workers > 1) {
    const { supervise } = await import("../workers/supervise.js");
    await supervise(settings);
  } else {
    const { serveAlone } = await import("../serve-alone.js");
    await serveAlone(settings);
  }
}
