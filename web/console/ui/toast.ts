import type { ToastOptions } from "./toaster.js";

/** Confirms an action with a short message that disappears by itself. */
export function toast(options: ToastOptions): void {
  void import("./toaster.js").then(({ showToast }) => showToast(options));
}

/** Copies text to the clipboard and confirms it with a toast. */
export async function copyText(text: string, name: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast({ title: `${name} copied` });
  } catch {
    // The clipboard needs a secure context: HTTPS or localhost.
    toast({ title: `${name} not copied`, description: "The browser blocks it.", tone: "danger" });
  }
}
