/** Decides which URLs of a text may be linked and which images may be shown. Pure; everything else is refused. */

/** Characters that browsers ignore or do not show, and that can disguise a URL. */
const INVISIBLE = /[\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\\]/;
const LINKABLE = /^(?:https?:\/\/[^/]|mailto:[^/])/i;
const ARTIFACT = /^(?:\.?\/)?artifacts\/[\w.~/-]+$/;
const DATA_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const DATA_LIMIT = 300_000;

function parseUrl(address: string): URL | null {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

/** The URL if it may be linked: absolute, http, https or mailto, without credentials. Otherwise null. */
export function safeUrl(address: string): string | null {
  if (INVISIBLE.test(address) || !LINKABLE.test(address)) return null;
  const url = parseUrl(address);
  if (!url || url.username || url.password) return null;
  return url.href;
}

/** The anchor that a link such as `#name` points to; null for any other link. */
export function anchorOf(address: string): string | null {
  if (!address.startsWith("#") || address.length < 2) return null;
  try {
    return decodeURIComponent(address.slice(1));
  } catch {
    return null;
  }
}

export function hostname(address: string): string {
  return parseUrl(address)?.host ?? "";
}

/** The URL of an image if it may be shown: an artifact of this server, or a small data URL. Otherwise null. */
export function safeImage(address: string): string | null {
  if (ARTIFACT.test(address) && !address.split("/").includes("..") && !address.includes("//")) return address;
  return address.length <= DATA_LIMIT && DATA_IMAGE.test(address) ? address : null;
}

/** Whether a link's text names another host than its target. */
export function isMisleading(label: string, address: string): boolean {
  const shownHost = /^\s*(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})(?=[/:?#\s]|$)/i.exec(label)?.[1];
  const bare = (host: string) =>
    host
      .toLowerCase()
      .replace(/^www\./, "")
      .replace(/:\d+$/, "");
  const host = hostname(address);
  return shownHost !== undefined && host !== "" && bare(shownHost) !== bare(host);
}

/** The anchor of a heading, by GitHub's rule. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}
