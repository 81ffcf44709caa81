/** Give the browser a file to save. */
export function download(name: string, parts: BlobPart[], mediaType: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read by then; at once would be too early for some.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name for a file that every system takes, from any text. */
export function fileName(title: string, ending: string): string {
  const plain = title
    .normalize("NFC")
    .replace(/[\p{C}\\/:*?"<>|]+/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/^\.+|[. ]+$/g, "");
  return `${[...plain].slice(0, 60).join("").trim() || "conversation"}.${ending}`;
}
