import { artifactAddress } from "../wire/api";
import { MAX_SHOWN } from "./fileKinds";

export class Unreadable extends Error {}

/** The text of a kept file, if it is one and not too long. How long it is may only be known by reading. */
export async function readText(artifactId: string, signal: AbortSignal, max = MAX_SHOWN): Promise<string> {
  const response = await fetch(artifactAddress(artifactId), { signal });
  if (response.status === 404) throw new Unreadable("This file is no longer kept.");
  if (!response.ok || response.body === null) throw new Unreadable(`The server answered ${response.status}.`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.byteLength;
    if (size > max) {
      await reader.cancel();
      throw new Unreadable("This file is too long to be shown here.");
    }
    text += decoder.decode(part.value, { stream: true });
  }
  text += decoder.decode();
  if (text.includes("\0")) throw new Unreadable("This file is no text.");
  return text;
}
