/** A final answer as title, content and sources, whatever form the agent gave it. The same rules as in Web API v2. */

import type { JsonObject, JsonValue } from "../wire/events";
import { pythonLiteral } from "./pythonLiteral";

const PREFIX = "Final answer:";

export interface Given {
  readonly content: JsonValue;
  readonly title: string;
  readonly sources: readonly string[];
}

export interface Answer {
  readonly title: string;
  readonly content: JsonValue;
  readonly sources: readonly string[];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function stripped(text: string): string {
  const start = text.trimStart();
  return start.startsWith(PREFIX) ? start.slice(PREFIX.length).trimStart() : text;
}

/** An object, also from a string with JSON or a Python literal. */
function objectOf(content: JsonValue): JsonObject | null {
  if (typeof content !== "string") return isObject(content) ? content : null;
  const text = stripped(content).trim();
  if (!text.startsWith("{") || !text.endsWith("}")) return null;
  for (const parse of [JSON.parse as (text: string) => JsonValue, pythonLiteral]) {
    try {
      const found = parse(text);
      if (isObject(found)) return found;
    } catch {
      // Try the next format.
    }
  }
  return null;
}

function sourcesOf(value: JsonValue | undefined): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.map((source) => (typeof source === "string" ? source : JSON.stringify(source)));
}

/** Fields of the event win; an object with `content` is taken apart; any other object is a value. */
export function answerOf({ content, title, sources }: Given): Answer {
  const value = objectOf(content);
  if (value === null || !Object.hasOwn(value, "content")) {
    if (typeof content !== "string") return { title, content, sources };
    // Parsing would change long numbers.
    return { title, content: value === null || /\d{16}/.test(content) ? stripped(content) : value, sources };
  }
  const named = value.title;
  return {
    title: title || (named ? (typeof named === "string" ? named : JSON.stringify(named)) : ""),
    content: value.content ?? null,
    sources: sources.length > 0 ? sources : sourcesOf(value.sources),
  };
}

export interface Source {
  readonly title: string;
  /** "" if there is no URL. */
  readonly address: string;
}

/** Parses a source: a URL, text with a URL, a Markdown link, or JSON with a title and a URL. */
export function sourceOf(text: string): Source {
  const link = /^\s*(?:[-*]\s+|\[\d+\]\s*)?\[([^\]]+)\]\(\s*<?(\S+?)>?\s*\)\s*$/.exec(text);
  if (link) return { title: link[1] ?? "", address: link[2] ?? "" };
  const object = objectOf(text);
  if (object !== null) {
    const first = (keys: readonly string[]) =>
      keys
        .map((key) => (Object.hasOwn(object, key) ? object[key] : ""))
        .find((part) => typeof part === "string" && part);
    const address = first(["url", "link", "href", "source"]);
    if (typeof address === "string") return { title: String(first(["title", "name"]) ?? ""), address };
    return { title: text, address: "" };
  }
  const found = /\bhttps?:\/\/[^\s<>"]+/i.exec(text);
  if (!found) return { title: text.trim(), address: "" };
  const address = found[0].replace(/[).,;\]]+$/, (end) => (end.startsWith(")") && found[0].includes("(") ? end : ""));
  const words = text.replace(address, "").replace(/^[\s\-–—:|([]+|[\s\-–—:|)\]([,.]+$/g, "");
  return { title: words, address };
}
