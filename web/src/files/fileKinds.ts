/** What a file is, from its media type and name, and how it can be shown. Pure. */

import { languageName } from "../text/languages";

export type FileKind = "image" | "table" | "code" | "text" | "archive" | "other";

/** What a browser draws in an <img>: there not even SVG can run anything or fetch from elsewhere. */
const IMAGES = /^image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml|x-icon)$/;
const ARCHIVES = /zip|x-tar|gzip|x-7z|x-rar|x-bzip|zstd/;
const TEXTUAL = /^text\/|[/+](?:json|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|x-python|csv|ndjson|jsonl)$/;
const PLAIN = new Set([
  "txt",
  "log",
  "md",
  "markdown",
  "rst",
  "ini",
  "toml",
  "cfg",
  "conf",
  "env",
  "tex",
  "diff",
  "patch",
]);

/** Texts up to this size are shown. */
export const MAX_SHOWN = 1_000_000;

export function typeOf(mediaType: string): string {
  return mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function endingOf(name: string): string {
  return /\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1]?.toLowerCase() ?? "";
}

export function kindOf(mediaType: string, name: string): FileKind {
  const type = typeOf(mediaType);
  const ending = endingOf(name);
  if (IMAGES.test(type)) return "image";
  if (type === "text/csv" || type === "text/tab-separated-values") return "table";
  const isKnown = type !== "" && type !== "application/octet-stream";
  if (isKnown && !TEXTUAL.test(type)) return ARCHIVES.test(type) ? "archive" : "other";
  if (ending === "csv" || ending === "tsv") return "table";
  const language = languageOf(mediaType, name);
  if (language !== "") return language === "markdown" ? "text" : "code";
  return TEXTUAL.test(type) || PLAIN.has(ending) ? "text" : "other";
}

/** The language to highlight it in; "" for plain text. */
export function languageOf(mediaType: string, name: string): string {
  const type = typeOf(mediaType);
  const named = type.split("/")[1]?.replace(/^x-/, "").replace(/^.*\+/, "") ?? "";
  return languageName(endingOf(name)) ?? languageName(named) ?? "";
}

export function canShow(kind: FileKind, size: number | null): boolean {
  if (kind === "image") return true;
  return (kind === "table" || kind === "code" || kind === "text") && (size ?? 0) <= MAX_SHOWN;
}
