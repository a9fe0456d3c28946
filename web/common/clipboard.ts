/** Copies text, and returns whether the browser allowed it. Needs a click or a key press. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

/** Over plain HTTP, except on localhost, the browser copies only a selection. */
function copySelection(text: string): boolean {
  const holder = document.createElement("pre");
  holder.textContent = text;
  // Content outside of an open dialog cannot be selected.
  (document.querySelector("dialog[open], [aria-modal=true]") ?? document.body).append(holder);
  const write = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", write);
  try {
    getSelection()?.selectAllChildren(holder);
    return document.execCommand("copy");
  } finally {
    document.removeEventListener("copy", write);
    holder.remove();
  }
}
