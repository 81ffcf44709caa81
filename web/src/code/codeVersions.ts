/** Collects all versions of the code that the agents of a session ran, in order of their start. Pure. */

import { type Code, codeOf } from "../log/codeArguments";
import { type RunView, runningTools, type ToolItem } from "../log/viewModel";
import { fileExtension } from "../text/programmingLanguages";

export interface Version {
  readonly key: string;
  readonly turn: number;
  readonly item: ToolItem;
  readonly code: Code;
}

/** A cache of versions by call, so that an unchanged call keeps its object and is not rendered again. */
export type VersionCache = WeakMap<ToolItem, Version | null>;

export function versionsOf(runs: readonly RunView[], cache: VersionCache = new WeakMap()): Version[] {
  return runs.flatMap((run) =>
    [...run.codes, ...incompleteCalls(run)]
      .toSorted((one, other) => one - other)
      .flatMap((index) => {
        const version = versionAt(run, index, cache);
        return version === null ? [] : [version];
      }),
  );
}

/** Indices of the calls whose arguments are still streaming. */
function incompleteCalls(run: RunView): number[] {
  return runningTools(run).flatMap((tool) => (tool.args === null ? [tool.index] : []));
}

function versionAt(run: RunView, index: number, cache: VersionCache): Version | null {
  const item = run.items[index];
  if (item?.kind !== "tool") return null;
  const before = cache.get(item);
  if (before !== undefined) return before;
  const code = codeOf(item);
  const version = code === null ? null : { key: item.key, turn: run.turn, item, code };
  cache.set(item, version);
  return version;
}

/** The first line of the code that is neither a comment nor, if possible, an import. Used as a title. */
export function firstLine(code: string): string {
  const lines = code.split("\n").filter((line) => /\w/.test(line) && !/^\s*(#|\/\/|--)/.test(line));
  const line = lines.find((one) => !/^\s*(import|from|use|using)\b/.test(one)) ?? lines[0] ?? code;
  return line.trim();
}

export function codeFileName(number: number, language: string): string {
  return `step-${number}.${fileExtension(language)}`;
}
