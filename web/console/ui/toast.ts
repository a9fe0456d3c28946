import type { ToastOptions } from "./toaster.js";

/** Confirms an action with a short message that disappears by itself. */
export function toast(options: ToastOptions): void {
  void import("./toaster.js").then(({ showToast }) => showToast(options));
}
