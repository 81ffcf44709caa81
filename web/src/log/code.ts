/** Finds the code in the arguments of a call. The table of tools comes from the server. */

import type { JsonObject } from "../wire/events";
import table from "./panes.json";
import type { Args, ToolItem } from "./view";

export interface Code {
  readonly text: string;
  readonly language: string;
  /** False while the arguments are streaming. */
  readonly isComplete: boolean;
}

/** Whether a tool runs Python: by the agent's own list, or by the usual names if it has none. */
export function isPythonTool(name: string, ofAgent: readonly string[]): boolean {
  return (ofAgent.length > 0 ? ofAgent : table.python_tools).includes(name);
}

/** The code of a call: any argument of a Python tool, the argument `code` of other tools. */
export function codeOf(tool: Pick<ToolItem, "name" | "args" | "argsText" | "isPython">): Code | null {
  if (tool.args === null) {
    const text = partialCode(tool.argsText, keysOf(tool));
    return text === null ? null : { text, language: languageOf(tool.name, {}, tool.isPython), isComplete: false };
  }
  const named = typeof tool.args === "string" ? null : codeArgument(tool.args, keysOf(tool));
  if (!tool.isPython && named === null) return null;
  const text = named ?? (typeof tool.args === "string" ? tool.args : JSON.stringify(tool.args));
  return { text, language: languageOf(tool.name, tool.args, tool.isPython), isComplete: true };
}

/** The `source` or `script` of other tools may be a URL. */
function keysOf(tool: Pick<ToolItem, "isPython">): readonly string[] {
  return tool.isPython ? table.code_keys : ["code"];
}

function codeArgument(args: JsonObject, keys: readonly string[]): string | null {
  for (const key of keys) {
    const value = args[key];
    if (typeof value === "string") return value;
  }
  return null;
}

function languageOf(name: string, args: Args | JsonObject, isPython: boolean): string {
  if (isPython) return "python";
  const said = typeof args === "string" ? undefined : (args.language ?? args.lang);
  if (typeof said === "string" && said) return said.toLowerCase();
  if (/sql/i.test(name)) return "sql";
  if (/shell|bash|command|exec(?!.*py)/i.test(name)) return "bash";
  if (/js|javascript|node/i.test(name)) return "javascript";
  return "python";
}

/** The code in the beginning of a JSON text. */
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
