/** Which addresses of a text may be followed, and which images may be fetched. Pure; everything that is not known is refused. */

/** What a browser would drop or not show: with one of these an address is not what it seems. */
const HIDDEN = /[\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\\]/;
const FOLLOWED = /^(?:https?:\/\/[^/]|mailto:[^/])/i;
const ARTIFACT = /^(?:\.?\/)?artifacts\/[\w.~/-]+$/;
const DATA_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const DATA_LIMIT = 300_000;

function parsed(address: string): URL | null {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

/** An address that a link may have: http, https or mailto, written out and without a name and password. Else null. */
export function safeUrl(address: string): string | null {
  if (HIDDEN.test(address) || !FOLLOWED.test(address)) return null;
  const url = parsed(address);
  if (!url || url.username || url.password) return null;
  return url.href;
}

/** The place within the same text that a link names; null if it is none. */
export function anchorOf(address: string): string | null {
  if (!address.startsWith("#") || address.length < 2) return null;
  try {
    return decodeURIComponent(address.slice(1));
  } catch {
    return null;
  }
}

export function hostname(address: string): string {
  return parsed(address)?.host ?? "";
}

/** An image that may be shown at once: one of this server's artifacts, or a small one that is in the text itself. */
export function safeImage(address: string): string | null {
  if (ARTIFACT.test(address) && !address.split("/").includes("..") && !address.includes("//")) return address;
  return address.length <= DATA_LIMIT && DATA_IMAGE.test(address) ? address : null;
}

/** Whether what a link says is an address of another host than the one that it leads to. */
export function isMisleading(label: string, address: string): boolean {
  const said = /^\s*(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})(?=[/:?#\s]|$)/i.exec(label)?.[1];
  const bare = (host: string) =>
    host
      .toLowerCase()
      .replace(/^www\./, "")
      .replace(/:\d+$/, "");
  const host = hostname(address);
  return said !== undefined && host !== "" && bare(said) !== bare(host);
}

/** The name under which a heading can be linked to, as GitHub makes it. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}
