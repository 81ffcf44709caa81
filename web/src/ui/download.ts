/** Saves a file through the browser's download. */
export function download(name: string, parts: BlobPart[], mediaType: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Some browsers start to read the file only after a delay.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Makes a file name from any text that is valid on all systems. */
export function fileName(title: string, ending: string): string {
  const plain = title
    .normalize("NFC")
    .replace(/[\p{C}\\/:*?"<>|]+/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/^\.+|[. ]+$/g, "");
  return `${[...plain].slice(0, 60).join("").trim() || "conversation"}.${ending}`;
}
