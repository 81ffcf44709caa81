/**
 * Removes dangerous ANSI escape sequences and control characters from untrusted text.
 *
 * A terminal executes the sequences that it receives: they can set the title and the clipboard, make links, request
 * answers that arrive as typed input, hide text or make the screen unusable. Only text styles and "erase in line" pass;
 * everything else is removed.
 */

const ESC = "\u001b";
const ALLOWED_CONTROLS = new Set(["\n", "\r", "\t", "\b"]);
const STRING_INTRODUCERS = new Set(["]", "P", "X", "^", "_"]);
const STRING_TERMINATORS = new Set(["\u0007", "\u009c", "\u0018", "\u001a"]);
/** The 8-bit form of `ESC [`. */
const CSI_8BIT = "\u009b";
/** The 8-bit forms of `ESC ]` and `ESC P`. */
const STRINGS_8BIT = new Set(["\u009d", "\u0090"]);
/** Characters that change the direction of the following text, so that it is displayed in another order. */
export const BIDI_OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/g;
const REPLACEMENT = "\ufffd";
/** Matches text without control characters, which is processed at once. */
const PLAIN_RUN = /[^\u0000-\u0007\u000b\u000c\u000e-\u001f\u007f-\u009f]+/y;
/** Matches a complete ANSI style sequence, which is processed at once. */
const STYLE_RUN = /\u001b\[([0-9;:]{0,32})m/y;

/** Length above which a sequence is invalid, so that an unterminated sequence does not remove all following text. */
const MAX_SEQUENCE = 64;
/** Length above which a control string, e.g. a title, is invalid. */
const MAX_STRING = 4096;

type State = "text" | "escape" | "designation" | "control" | "string" | "string end";

/** The rules of a sanitizer: what remains of text, control characters and `ESC [` sequences. */
interface Policy {
  /** Whether 8-bit control characters start sequences too. */
  readonly isEightBit: boolean;
  text(run: string): string;
  control(char: string): string;
  /** Returns the text that replaces the sequence `ESC [ parameters final`: an allowed sequence, or "". */
  csi(parameters: string, final: string): string;
}

const STYLES_ONLY: Policy = {
  isEightBit: false,
  text: (run) => run.replace(BIDI_OVERRIDES, REPLACEMENT),
  control: (char) => (ALLOWED_CONTROLS.has(char) ? char : ""),
  csi: (parameters, final) => {
    if (final === "m") return allowedStyle(parameters);
    return final === "K" && /^[012]?$/.test(parameters) ? `${ESC}[${parameters}K` : "";
  },
};

const TEXT_ONLY: Policy = { isEightBit: true, text: (run) => run, control: (char) => char, csi: () => "" };

/** Sanitizes one stream of text. Its pieces may be split anywhere, also within a sequence. */
export class AnsiSanitizer {
  private state: State = "text";
  private parameters = "";
  private skipped = 0;

  constructor(private readonly policy: Policy = STYLES_ONLY) {}

  /** Sanitizes the next piece of the stream. */
  feed(piece: string): string {
    let out = "";
    for (let at = 0; at < piece.length; at++) {
      if (this.state === "text") {
        PLAIN_RUN.lastIndex = at;
        const run = PLAIN_RUN.exec(piece)?.[0];
        if (run !== undefined) {
          out += this.policy.text(run);
          at += run.length - 1;
          continue;
        }
        STYLE_RUN.lastIndex = at;
        const style = STYLE_RUN.exec(piece);
        if (style !== null) {
          out += this.policy.csi(style[1] ?? "", "m");
          at += style[0].length - 1;
          continue;
        }
      }
      out += this.take(piece.charAt(at));
    }
    return out;
  }

  /** Ends the stream. Returns a final ESC if it started no sequence and the policy allows it. */
  end(): string {
    const rest = this.state === "escape" ? this.policy.control(ESC) : "";
    this.enter("text");
    return rest;
  }

  private take(char: string): string {
    switch (this.state) {
      case "text":
        return this.text(char);
      case "escape":
        return this.escape(char);
      case "designation":
        if (this.isTooLong(MAX_SEQUENCE) || !/[ -~]/.test(char)) return this.abort(char);
        return /[ -/]/.test(char) ? "" : this.enter("text");
      case "control":
        return this.control(char);
      case "string":
        return this.string(char);
      case "string end":
        return char === "\\" ? this.enter("text") : this.escape(char);
    }
  }

  private text(char: string): string {
    if (char === ESC) return this.enter("escape");
    if (this.policy.isEightBit && char === CSI_8BIT) return this.enter("control");
    if (this.policy.isEightBit && STRINGS_8BIT.has(char)) return this.enter("string");
    return /[\u0000-\u001f\u007f-\u009f]/.test(char) ? this.policy.control(char) : this.policy.text(char);
  }

  /** Handles a character after ESC. */
  private escape(char: string): string {
    if (char === ESC) return this.enter("escape");
    if (char === "[") return this.enter("control");
    if (STRING_INTRODUCERS.has(char)) return this.enter("string");
    if (/[ -/]/.test(char)) return this.enter("designation");
    return /[0-~]/.test(char) ? this.enter("text") : this.abort(char);
  }

  /** Handles a character after `ESC [`: a parameter, or the final letter that names the function. */
  private control(char: string): string {
    if (/[ -?]/.test(char)) {
      if (this.isTooLong(MAX_SEQUENCE)) return this.abort(char);
      this.parameters += char;
      return "";
    }
    if (!/[@-~]/.test(char)) return this.abort(char);
    const { parameters } = this;
    this.enter("text");
    return this.policy.csi(parameters, char);
  }

  /** Handles a character of a control string, e.g. a title or a link. A line feed makes the string invalid. */
  private string(char: string): string {
    if (char === ESC) return this.enter("string end");
    if (STRING_TERMINATORS.has(char)) return this.enter("text");
    return char === "\n" || this.isTooLong(MAX_STRING) ? this.abort(char) : "";
  }

  private isTooLong(limit: number): boolean {
    this.skipped += 1;
    return this.skipped > limit;
  }

  private enter(state: State): string {
    this.state = state;
    this.parameters = "";
    this.skipped = 0;
    return "";
  }

  /** Ends an invalid sequence. `char` is the first character after it. */
  private abort(char: string): string {
    return this.end() + this.take(char);
  }
}

/** Removes all escape sequences except styles and "erase in line", and most control characters. */
export function sanitizeAnsi(text: string): string {
  return new AnsiSanitizer().feed(text);
}

/** Matches the sequences that `sanitizeAnsi` leaves in a text. */
export const ALLOWED_SEQUENCE = /\u001b\[[0-9;:]*[mK]/g;

/** Sanitizes a text and removes its styles too. */
export function stripAnsi(text: string): string {
  return sanitizeAnsi(text).replace(ALLOWED_SEQUENCE, "");
}

/** Removes all escape sequences from a text. Other control characters stay. */
export function removeEscapeSequences(text: string): string {
  if (!/[\u001b\u0090\u009b\u009d]/.test(text)) return text;
  const filter = new AnsiSanitizer(TEXT_ONLY);
  return filter.feed(text) + filter.end();
}

const STYLES = /^(?:[0123479]|2[1-579]|3[0-79]|4[0-79]|5[359]|9[0-7]|10[0-7])$/;
const COLON_STYLES = /^(?:4:[0-5]|[345]8:5:\d{1,3}|[345]8:2:\d{0,3}(?::\d{1,3}){3}|[345]8:2(?::\d{1,3}){3})$/;

const styleCache = new Map<string, string>();

/** The style sequence without codes that make text blink or hide it. Cached. */
function allowedStyle(parameters: string): string {
  const cached = styleCache.get(parameters);
  if (cached !== undefined) return cached;
  const style = readableStyle(parameters);
  if (styleCache.size < 1000) styleCache.set(parameters, style);
  return style;
}

function readableStyle(parameters: string): string {
  if (parameters === "") return `${ESC}[m`;
  if (!/^[0-9;:]*$/.test(parameters)) return "";
  const codes = parameters.split(";").map((code) => code.replace(/^0+(?=\d)/, "") || "0");
  const kept: string[] = [];
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? "";
    if (code === "38" || code === "48" || code === "58") {
      const size = codes[at + 1] === "5" ? 3 : codes[at + 1] === "2" ? 5 : 0;
      const colour = codes.slice(at, at + size);
      // After an invalid colour, it is unknown which of the following numbers are styles.
      if (size === 0 || colour.length < size || !colour.every((part) => /^\d+$/.test(part) && Number(part) < 256))
        break;
      kept.push(...colour);
      at += size - 1;
    } else if (STYLES.test(code) || COLON_STYLES.test(code)) kept.push(code);
  }
  return kept.length > 0 ? `${ESC}[${kept.join(";")}m` : "";
}
