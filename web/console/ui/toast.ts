import { copy } from "../../common/clipboard.js";
import type * as toaster from "./toaster.js";

let loading: Promise<typeof toaster> | undefined;

/** Confirms an action with a short message that disappears by itself. */
export function toast(options: toaster.ToastOptions): void {
  loading ??= import("./toaster.js");
  void loading.then(({ showToast }) => showToast(options));
}

/** Removes all messages, so that nobody undoes an action of another key. */
export function dismissToasts(): void {
  void loading?.then(({ dismissAll }) => dismissAll());
}

/** Copies text to the clipboard and confirms it with a toast. */
export async function copyText(text: string, name: string): Promise<void> {
  toast(
    (await copy(text))
      ? { title: `${name} copied` }
      : { title: `${name} not copied`, description: "The browser blocks it.", tone: "danger" },
  );
}
