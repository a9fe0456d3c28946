import { copy } from "../../common/clipboard.js";
import { createLoader } from "./preload.js";
import type { ToastOptions } from "./toaster.js";

const loadToaster = createLoader(() => import("./toaster.js"));

/** Confirms an action with a short message that disappears by itself. */
export function toast(options: ToastOptions): void {
  void loadToaster().then(({ showToast }) => showToast(options));
}

/** Removes all messages, so that nobody undoes an action of another key. */
export function dismissToasts(): void {
  void loadToaster().then(({ dismissAll }) => dismissAll());
}

/** Copies text to the clipboard and confirms it with a toast. */
export async function copyText(text: string, name: string): Promise<void> {
  toast(
    (await copy(text))
      ? { title: `${name} copied` }
      : { title: `${name} not copied`, description: "The browser blocks it.", tone: "danger" },
  );
}
