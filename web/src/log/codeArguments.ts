/** Finds the code in the arguments of a call. The server decides which calls have code, and in which argument. */

import table from "./v2Components.json";
import type { Args, ToolItem } from "./viewModel";

/** The language of streaming code before the server has named its language. */
const UNKNOWN = "text";

export interface Code {
  readonly text: string;
  readonly language: string;
  /** Whether all of the code has arrived: false while the arguments are streaming. */
  readonly isComplete: boolean;
}

/** The fields of a call that contain its code, and the server's information where the code is. */
export type CodeCall = Pick<ToolItem, "args" | "argsText" | "language" | "codeKey">;

/** The code of a call: the argument `codeKey`, or all arguments without such an argument. Null if the call has none. */
export function codeOf(call: CodeCall): Code | null {
  const { args, language, codeKey } = call;
  if (args === null) {
    const text = partialCode(call.argsText, language === "" ? ["code"] : table.code_keys);
    return text === null ? null : { text, language: language || UNKNOWN, isComplete: false };
  }
  if (language === "") return null;
  const named = typeof args === "string" ? undefined : args[codeKey];
  return { text: typeof named === "string" ? named : textOf(args), language, isComplete: true };
}

function textOf(args: Args): string {
  return typeof args === "string" ? args : JSON.stringify(args);
}

/** The code in incomplete JSON arguments: the value of the first of these keys, as far as it has arrived. */
export function partialCode(argsText: string, keys: readonly string[] = table.code_keys): string | null {
  const begin = new RegExp(`"(?:${keys.join("|")})"\\s*:\\s*"`).exec(argsText);
  if (begin === null) return null;
  const rest = argsText.slice(begin.index + begin[0].length);
  const string = /^[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*/.exec(rest)?.[0] ?? "";
  try {
    return JSON.parse(`"${string}"`) as string;
  } catch {
    return null;
  }
}
