/** Finds the code in the arguments of a call. The server decides which calls have code, and in which argument. */

import table from "./v2Components.json";
import type { ToolItem } from "./viewModel";

export interface Code {
  readonly text: string;
  readonly language: string;
  /** Whether all of the code has arrived: false while the arguments are streaming. */
  readonly isComplete: boolean;
}

/** The fields of a call that contain its code, and the server's information where the code is. */
export type CodeCall = Pick<ToolItem, "args" | "argsText" | "language" | "codeKey">;

/**
 * The code of a call: the argument `codeKey`, or all arguments without such an argument. Null if the call has none.
 *
 * While the arguments of a Python tool are streaming, its code is the first of `table.code_keys` that has text. Other
 * tools have no code until the server names it. `tests/code_arguments.json` has cases, which the server also passes.
 */
export function codeOf(call: CodeCall): Code | null {
  const { args, language, codeKey } = call;
  if (language === "") return null;
  if (args === null) {
    const text = firstText(call.argsText, table.code_keys);
    return text === null ? null : { text, language, isComplete: false };
  }
  // Arguments that are a text are incomplete, as after Stop or if the log has only their beginning, or not valid.
  if (typeof args === "string") {
    const text = firstText(args, codeKey === "" ? table.code_keys : [codeKey]) ?? args;
    return { text, language, isComplete: true };
  }
  const named = args[codeKey];
  return { text: typeof named === "string" ? named : JSON.stringify(args), language, isComplete: true };
}

const SPACE = /[ \t\r\n]*/y;
/** Matches the beginning of a JSON string, up to its closing quote or the last character that has arrived completely. */
const STRING = /"([^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*)("?)/y;
const SCALAR = /[\w+.-]+/y;
/** Matches a part of a list or an object: a string, a bracket, or anything else. */
const NESTED = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|[{}[\]]|[^"{}[\]]+/y;

/**
 * Returns the text that has arrived of the first of these keys that has text, in the text of a JSON object that may
 * still be arriving. Null if none has. Keys of nested objects do not count. After invalid JSON there is no more text.
 */
export function firstText(json: string, keys: readonly string[]): string | null {
  const seen = new Set<string>();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(json);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const takeCharacter = (character: string): boolean => {
    take(SPACE);
    const isThere = json[at] === character;
    if (isThere) at += 1;
    return isThere;
  };
  if (!takeCharacter("{")) return null;
  do {
    take(SPACE);
    const key = take(STRING);
    if (key?.[2] !== '"' || !takeCharacter(":")) return null;
    take(SPACE);
    const name = unescaped(key[1] ?? "");
    if (json[at] === '"') {
      const value = take(STRING);
      if (keys.includes(name) && !seen.has(name) && value?.[1]) {
        const text = unescaped(value[1], value[2] === "");
        if (text !== "") return text;
      }
      if (value?.[2] !== '"') return null;
    } else if (!(json[at] === "{" || json[at] === "[" ? skipNested(take) : take(SCALAR))) return null;
    seen.add(name);
  } while (takeCharacter(","));
  return null;
}

/** Skips an object or a list. Returns whether it is complete. */
function skipNested(take: (pattern: RegExp) => RegExpExecArray | null): boolean {
  let depth = 0;
  do {
    const part = take(NESTED)?.[0];
    if (part === undefined) return false;
    if (part === "{" || part === "[") depth += 1;
    if (part === "}" || part === "]") depth -= 1;
  } while (depth > 0);
  return true;
}

/** The text of a JSON string. The first half of a surrogate pair waits for the second; other halves become "?". */
function unescaped(string: string, isPart = false): string {
  const text = JSON.parse(`"${string}"`) as string;
  return (isPart ? text.replace(/[\ud800-\udbff]$/, "") : text).replace(/\p{Surrogate}/gu, "?");
}
