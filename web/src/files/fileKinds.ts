/** Determines how a file is shown, from its media type and name. Pure. */

import { languageName } from "../text/programmingLanguages";

export type FileKind = "image" | "table" | "code" | "text" | "archive" | "other";

/** Media types that are shown in an <img> element, in which even SVG cannot run scripts or fetch anything. */
const IMAGES = /^image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml|x-icon)$/;
const ARCHIVES = /zip|x-tar|gzip|x-7z|x-rar|x-bzip|zstd/;
const TEXTUAL = /^text\/|[/+](?:json|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|x-python|csv|ndjson|jsonl)$/;
const PLAIN = /^(?:txt|log|md|markdown|rst|ini|toml|cfg|conf|env|tex|diff|patch)$/;

/** Size in bytes above which a text file is not shown. */
export const MAX_SHOWN = 1_000_000;

function typeOf(mediaType: string): string {
  return mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function endingOf(name: string): string {
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
  return TEXTUAL.test(type) || PLAIN.test(ending) ? "text" : "other";
}

/** The language for highlighting; "" for plain text. */
export function languageOf(mediaType: string, name: string): string {
  const type = typeOf(mediaType);
  const named = type.split("/")[1]?.replace(/^x-/, "").replace(/^.*\+/, "") ?? "";
  return languageName(endingOf(name)) ?? languageName(named) ?? "";
}

export function canShow(kind: FileKind, size: number | null): boolean {
  if (kind === "image") return true;
  return (kind === "table" || kind === "code" || kind === "text") && (size ?? 0) <= MAX_SHOWN;
}
