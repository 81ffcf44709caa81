/** Copies a text to the clipboard. Returns whether it succeeded. */
export async function copyText(text: string): Promise<boolean> {
  // Without https the browser has no clipboard API.
  if (navigator.clipboard === undefined) return copySelected(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Copies a text by selecting it in a temporary field. */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.style.cssText = "position: fixed; top: 0; opacity: 0";
  // If a dialog or menu is open, the field must be inside of it: it takes the focus away from elements outside.
  (before?.closest('[role="dialog"], [role="alertdialog"], [role="menu"]') ?? document.body).append(field);
  try {
    field.focus({ preventScroll: true });
    field.select();
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}
