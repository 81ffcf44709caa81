/**
 * Converts ANSI text to spans with class names. Pure.
 *
 * Each colour maps to the nearest of eight colours that are readable in both themes. After a carriage return, new text
 * replaces the line, and a backspace removes a character, as progress bars expect.
 */

import { ALLOWED_SEQUENCE, sanitizeAnsi } from "./sanitizeAnsi";

export interface AnsiSpan {
  readonly text: string;
  /** Class names of the style; "" for plain text. */
  readonly className: string;
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
type Name = (typeof NAMES)[number];

interface Style {
  colour: Name | "";
  ground: Name | "";
  flags: Set<string>;
}

/** Class names of text styles, such as bold, by the ANSI code that turns them on. */
const FLAGS_ON: Record<number, string> = {
  1: "bold",
  2: "dim",
  3: "italic",
  4: "underline",
  7: "inverse",
  9: "struck",
};
/** Class names of text styles, such as bold, by the ANSI code that turns them off. */
const FLAGS_OFF: Record<number, readonly string[]> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["underline"],
  27: ["inverse"],
  29: ["struck"],
};

/** Splits a text at escape sequences, line feeds, carriage returns and backspaces. Keeps the separators. */
const SPLIT = new RegExp(`(${ALLOWED_SEQUENCE.source}|[\\n\\r\\b])`);

export function ansiSpans(text: string): AnsiSpan[] {
  const style: Style = { colour: "", ground: "", flags: new Set() };
  const done: AnsiSpan[] = [];
  let line: AnsiSpan[] = [];
  /** Whether the last control was a carriage return. The line is cleared when more text arrives. */
  let isReturned = false;
  for (const part of sanitizeAnsi(text).replaceAll(/\r+\n/g, "\n").split(SPLIT)) {
    if (part === "\n") {
      done.push(...line, { text: "\n", className: "" });
      line = [];
      isReturned = false;
    } else if (part === "\r") isReturned = true;
    else if (part === "\b") line = isReturned ? line : withoutLastCharacter(line);
    else if (part.startsWith("\u001b")) {
      if (part.endsWith("m")) applyCodes(style, part.slice(2, -1));
      else if (isReturned) line = [];
    } else if (part !== "") {
      if (isReturned) line = [];
      isReturned = false;
      line.push({ text: part, className: classOf(style) });
    }
  }
  return joined([...done, ...line]);
}

interface AnsiTail {
  readonly spans: readonly AnsiSpan[];
  /** Whether the text has more characters before these spans. */
  readonly isTruncated: boolean;
}

/** Number of characters that are read for each character to show, because progress bars overwrite most output. */
const OVERPRINT_FACTOR = 16;

/** The last `length` visible characters of an ANSI text, after carriage returns and backspaces are applied. */
export function ansiTail(text: string, length: number): AnsiTail {
  const room = length * OVERPRINT_FACTOR;
  const isLong = text.length > room;
  // Starts at the beginning of a line if possible, so that no escape sequence is split.
  const found = isLong ? ansiSpans(text.slice(-room).replace(/^[^\n\r]{0,400}[\n\r]/, "")) : ansiSpans(text);
  let left = length;
  const kept: AnsiSpan[] = [];
  for (const span of found.toReversed()) {
    if (left <= 0) return { spans: kept, isTruncated: true };
    if (span.text.length > left) {
      // Removes the second half of a split surrogate pair.
      kept.unshift({ ...span, text: span.text.slice(-left).replace(/^[\udc00-\udfff]/, "") });
      return { spans: kept, isTruncated: true };
    }
    kept.unshift(span);
    left -= span.text.length;
  }
  return { spans: kept, isTruncated: isLong };
}

function withoutLastCharacter(line: readonly AnsiSpan[]): AnsiSpan[] {
  const last = line.at(-1);
  if (last === undefined) return [];
  const text = [...last.text].slice(0, -1).join("");
  return text === "" ? line.slice(0, -1) : [...line.slice(0, -1), { ...last, text }];
}

function joined(list: readonly AnsiSpan[]): AnsiSpan[] {
  const result: AnsiSpan[] = [];
  for (const span of list) {
    const last = result.at(-1);
    if (last?.className === span.className) result[result.length - 1] = { ...last, text: last.text + span.text };
    else result.push(span);
  }
  return result;
}

function classOf({ colour, ground, flags }: Style): string {
  const names = [...flags].sort().map((flag) => `ansi-${flag}`);
  if (colour) names.push(`ansi-${colour}`);
  if (ground) names.push(`ansi-on-${ground}`);
  return names.join(" ");
}

function applyCodes(style: Style, parameters: string): void {
  const codes = parameters.split(";");
  for (let at = 0; at < codes.length; at++) {
    const parts = (codes[at] ?? "").split(":").map(Number);
    const code = parts[0] ?? 0;
    if (code === 38 || code === 48 || code === 58) {
      const size = codes[at + 1] === "5" ? 2 : 4;
      const values = parts.length > 1 ? parts.slice(1) : codes.slice(at + 1, at + 1 + size).map(Number);
      if (parts.length === 1) at += size;
      const name = values[0] === 5 ? paletteColour(values[1] ?? 0) : nearestColour(values.slice(-3));
      if (code === 38) style.colour = name;
      if (code === 48) style.ground = name;
    } else applyCode(style, code, parts[1]);
  }
}

function applyCode(style: Style, code: number, detail: number | undefined): void {
  const flag = FLAGS_ON[code];
  if (code === 0) {
    style.colour = "";
    style.ground = "";
    style.flags.clear();
  } else if (flag !== undefined) {
    if (detail === 0) style.flags.delete(flag);
    else style.flags.add(flag);
  } else if (FLAGS_OFF[code]) for (const off of FLAGS_OFF[code]) style.flags.delete(off);
  else if (code === 39) style.colour = "";
  else if (code === 49) style.ground = "";
  else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) style.colour = NAMES[code % 10] ?? "";
  else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) style.ground = NAMES[code % 10] ?? "";
}

/** The name of a colour of the 256-colour palette: 16 basic colours, a 6 × 6 × 6 cube, and greys. */
function paletteColour(index: number): Name | "" {
  if (index < 16) return NAMES[index % 8] ?? "";
  if (index >= 232) return index < 244 ? "black" : "white";
  const cube = index - 16;
  return nearestColour([Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51]);
}

/** Returns the name of the colour that is nearest to an RGB value. */
function nearestColour([red = 0, green = 0, blue = 0]: readonly number[]): Name {
  const high = Math.max(red, green, blue);
  const low = Math.min(red, green, blue);
  if (high - low < 40) return high < 128 ? "black" : "white";
  const middle = (high + low) / 2;
  const index = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return NAMES[index] ?? "white";
}
