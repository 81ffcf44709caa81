import { straight } from "../text/invisibleCharacters";

/** What a text says, in a line: how it begins, or its last words while it grows. */
export function gist(text: string, isGrowing: boolean): string {
  const line = straight(text).trim().replace(/\s+/g, " ");
  return isGrowing && line.length > 120 ? `…${line.slice(-120)}` : line.slice(0, 200);
}
