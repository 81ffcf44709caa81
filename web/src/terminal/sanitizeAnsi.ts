/**
 * What programs print, without what could harm: text, line feeds, tabs, colours and "erase this line" pass.
 *
 * A terminal obeys whoever writes to it: sequences set titles and the clipboard, make links, ask questions whose answers
 * are typed, hide text or leave the screen unusable. Only what stands in the lists below gets through. Pure; one object
 * for one stream, which may be cut anywhere.
 */

const ESC = "\u001b";
const PASSING = new Set(["\n", "\r", "\t", "\b"]);
const STRING_BEGINS = new Set(["]", "P", "X", "^", "_"]);
const STRING_ENDS = new Set(["\u0007", "\u009c", "\u0018", "\u001a"]);
/** Characters that turn the direction of text, so that it reads otherwise than it is. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;
const SHOWN = "\ufffd";
/** A run of characters that mean nothing but themselves, and a whole sequence for colours: most of what is ever printed. */
const PLAIN = /[^\u0000-\u0007\u000b\u000c\u000e-\u001f\u007f-\u009f]+/y;
const COLOUR = /\u001b\[([0-9;:]{0,32})m/y;

/** So long may a sequence be; what claims to be longer is text again, so that nothing is swallowed for ever. */
const MAX_SEQUENCE = 64;
const MAX_STRING = 4096;

type State = "text" | "escape" | "designation" | "control" | "string" | "string end";

export class AnsiSanitizer {
  private state: State = "text";
  private sequence = "";
  private skipped = 0;

  /** What may be shown of the next piece. */
  feed(piece: string): string {
    let out = "";
    for (let at = 0; at < piece.length; at++) {
      if (this.state === "text") {
        PLAIN.lastIndex = at;
        const run = PLAIN.exec(piece)?.[0];
        if (run !== undefined) {
          out += run.replace(TURNING, SHOWN);
          at += run.length - 1;
          continue;
        }
        COLOUR.lastIndex = at;
        const colour = COLOUR.exec(piece);
        if (colour !== null) {
          out += colours(colour[1] ?? "");
          at += colour[0].length - 1;
          continue;
        }
      }
      out += this.take(piece.charAt(at));
    }
    return out;
  }

  private take(char: string): string {
    switch (this.state) {
      case "text":
        if (char === ESC) return this.go("escape");
        if (PASSING.has(char)) return char;
        return /[\u0000-\u001f\u007f-\u009f]/.test(char) ? "" : char.replace(TURNING, SHOWN);
      case "escape":
        return this.escape(char);
      case "designation":
        if (this.isTooLong(MAX_SEQUENCE) || !/[ -~]/.test(char)) return this.again(char);
        return /[ -/]/.test(char) ? "" : this.go("text");
      case "control":
        return this.control(char);
      case "string":
        return this.string(char);
      case "string end":
        return char === "\\" ? this.go("text") : this.escape(char);
    }
  }

  /** Behind ESC. */
  private escape(char: string): string {
    if (char === ESC) return this.go("escape");
    if (char === "[") return this.go("control");
    if (STRING_BEGINS.has(char)) return this.go("string");
    if (/[ -/]/.test(char)) return this.go("designation");
    return /[0-~]/.test(char) ? this.go("text") : this.again(char);
  }

  /** Behind ESC [ there are parameters, and the letter that says what is to be done. */
  private control(char: string): string {
    if (/[ -?]/.test(char)) {
      if (this.isTooLong(MAX_SEQUENCE)) return this.again(char);
      this.sequence += char;
      return "";
    }
    if (!/[@-~]/.test(char)) return this.again(char);
    const parameters = this.sequence;
    this.go("text");
    if (char === "m") return colours(parameters);
    return char === "K" && /^[012]?$/.test(parameters) ? `${ESC}[${parameters}K` : "";
  }

  /** A title, a link or data for a device. It has no line feed: where one comes, its end was forgotten. */
  private string(char: string): string {
    if (char === ESC) return this.go("string end");
    if (STRING_ENDS.has(char)) return this.go("text");
    return char === "\n" || this.isTooLong(MAX_STRING) ? this.again(char) : "";
  }

  private isTooLong(limit: number): boolean {
    this.skipped += 1;
    return this.skipped > limit;
  }

  private go(state: State): string {
    this.state = state;
    this.sequence = "";
    this.skipped = 0;
    return "";
  }

  /** The sequence is over or broken, and this is the first character behind it. */
  private again(char: string): string {
    this.go("text");
    return this.take(char);
  }
}

export function sanitizeAnsi(text: string): string {
  return new AnsiSanitizer().feed(text);
}

/** The text alone. */
export function stripAnsi(text: string): string {
  return sanitizeAnsi(text).replace(/\u001b\[[0-9;:]*[mK]/g, "");
}

const STYLES = /^(?:[0123479]|2[1-579]|3[0-79]|4[0-79]|5[359]|9[0-7]|10[0-7])$/;
const WITH_COLON = /^(?:4:[0-5]|[345]8:5:\d{1,3}|[345]8:2:\d{0,3}(?::\d{1,3}){3}|[345]8:2(?::\d{1,3}){3})$/;

/** Of "select graphic rendition" what can be read: neither blinking nor hidden text. */
function colours(parameters: string): string {
  const before = known.get(parameters);
  if (before !== undefined) return before;
  const shown = readable(parameters);
  if (known.size < 1000) known.set(parameters, shown);
  return shown;
}

const known = new Map<string, string>();

function readable(parameters: string): string {
  if (parameters === "") return `${ESC}[m`;
  if (!/^[0-9;:]*$/.test(parameters)) return "";
  const given = parameters.split(";").map((one) => one.replace(/^0+(?=\d)/, "") || "0");
  const kept: string[] = [];
  for (let at = 0; at < given.length; at++) {
    const one = given[at] ?? "";
    if (one === "38" || one === "48" || one === "58") {
      const size = given[at + 1] === "5" ? 3 : given[at + 1] === "2" ? 5 : 0;
      const colour = given.slice(at, at + size);
      // Without its colour nobody knows which of the numbers that follow are styles.
      if (size === 0 || colour.length < size || !colour.every((part) => /^\d+$/.test(part) && Number(part) < 256))
        break;
      kept.push(...colour);
      at += size - 1;
    } else if (STYLES.test(one) || WITH_COLON.test(one)) kept.push(one);
  }
  return kept.length > 0 ? `${ESC}[${kept.join(";")}m` : "";
}
