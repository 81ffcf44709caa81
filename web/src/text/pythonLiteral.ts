/** Parses Python literals, which agents print instead of JSON. Pure. */

import type { JsonObject, JsonValue } from "../wire/events";

const NAMES: Record<string, JsonValue> = { True: true, False: false, None: null };
const ESCAPES: Record<string, string> = {
  n: "\n",
  r: "\r",
  t: "\t",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "0": "\0",
  "\n": "",
};
const DEPTH = 100;

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  parse(): JsonValue {
    const value = this.value(0);
    this.space();
    if (this.at < this.text.length) throw new SyntaxError("more than one value");
    return value;
  }

  private space() {
    while (/\s/.test(this.text[this.at] ?? "")) this.at += 1;
  }

  private take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match) this.at += match[0].length;
    return match;
  }

  private takes(char: string): boolean {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  private value(depth: number): JsonValue {
    if (depth > DEPTH) throw new SyntaxError("too deep");
    this.space();
    if (this.takes("{")) return this.dict(depth);
    if (this.takes("[")) return this.list("]", depth);
    if (this.takes("(")) return this.list(")", depth);
    const text = this.strings();
    if (text !== null) return text;
    const number = this.take(/[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y);
    if (number) return Number(number[0].replaceAll("_", ""));
    const name = this.take(/True|False|None/y)?.[0];
    if (name === undefined) throw new SyntaxError("not a literal");
    return NAMES[name] ?? null;
  }

  private dict(depth: number): JsonObject {
    const entries: [string, JsonValue][] = [];
    while (!this.takes("}")) {
      const key = this.value(depth + 1);
      if (!this.takes(":")) throw new SyntaxError("no colon");
      entries.push([typeof key === "string" ? key : JSON.stringify(key), this.value(depth + 1)]);
      if (!this.takes(",") && this.text[this.at] !== "}") throw new SyntaxError("no comma");
    }
    return Object.fromEntries(entries);
  }

  private list(end: string, depth: number): JsonValue[] {
    const values: JsonValue[] = [];
    while (!this.takes(end)) {
      values.push(this.value(depth + 1));
      if (!this.takes(",") && this.text[this.at] !== end) throw new SyntaxError("no comma");
    }
    return values;
  }

  /** A string, or adjacent strings, which Python joins. */
  private strings(): string | null {
    let text: string | null = null;
    for (;;) {
      this.space();
      const open = this.take(/(?:[uU])?("""|'''|"|')/y)?.[1];
      if (open === undefined) return text;
      text = (text ?? "") + this.string(open);
    }
  }

  private string(quote: string): string {
    let text = "";
    for (;;) {
      if (this.at >= this.text.length) throw new SyntaxError("a string without an end");
      if (this.text.startsWith(quote, this.at)) {
        this.at += quote.length;
        return text;
      }
      const code = this.take(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8}))/y);
      if (code) {
        text += String.fromCodePoint(Number.parseInt(code[1] ?? code[2] ?? code[3] ?? "0", 16));
        continue;
      }
      const char = this.text[this.at] ?? "";
      if (char === "\n" && quote.length === 1) throw new SyntaxError("a string over two lines");
      if (char !== "\\") {
        text += char;
        this.at += 1;
        continue;
      }
      const escaped = this.text[this.at + 1] ?? "";
      text += ESCAPES[escaped] ?? (/["'\\]/.test(escaped) ? escaped : `\\${escaped}`);
      this.at += 2;
    }
  }
}

/** The value of a literal. Throws if the text is not one. */
export function pythonLiteral(text: string): JsonValue {
  return new Reader(text).parse();
}
