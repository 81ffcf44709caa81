/** Parses the sources of an answer. */

export interface Source {
  readonly title: string;
  /** The URL; "" if the source has none. */
  readonly address: string;
}

/** Parses a source: a URL, text with a URL, or a Markdown link. */
export function sourceOf(text: string): Source {
  const link = /^\s*(?:[-*]\s+|\[\d+\]\s*)?\[([^\]]+)\]\(\s*<?(\S+?)>?\s*\)\s*$/.exec(text);
  if (link) return { title: link[1] ?? "", address: link[2] ?? "" };
  const found = /\bhttps?:\/\/[^\s<>"]+/i.exec(text);
  if (!found) return { title: text.trim(), address: "" };
  const address = found[0].replace(/[).,;\]]+$/, (end) => (end.startsWith(")") && found[0].includes("(") ? end : ""));
  const words = text.replace(address, "").replace(/^[\s\-–—:|([]+|[\s\-–—:|)\]([,.]+$/g, "");
  return { title: words, address };
}
