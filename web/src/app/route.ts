/** Where the page is: the address behind `#`. A link to a session, a run or one item of it can be sent to anybody. */

import { useSyncExternalStore } from "react";

export interface Route {
  readonly sessionId: string | null;
  readonly runId: string | null;
  /** The place of an item in its run. */
  readonly item: number | null;
}

export const NOWHERE: Route = { sessionId: null, runId: null, item: null };

export function parseRoute(hash: string): Route {
  const [kind, sessionId, runId, item] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (kind !== "s" || !sessionId) return NOWHERE;
  return { sessionId, runId: runId || null, item: item && /^\d{1,9}$/.test(item) ? Number(item) : null };
}

export function hashOf(route: Partial<Route>): string {
  const { sessionId, runId, item } = { ...NOWHERE, ...route };
  if (sessionId === null) return "#/";
  const parts = [sessionId, runId, runId === null ? null : item].filter((part) => part !== null);
  return `#/s/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export function linkTo(route: Partial<Route>): string {
  return document.baseURI.replace(/#.*$/, "") + hashOf(route);
}

/** Go there; `replace` leaves no trace for the Back button. */
export function go(route: Partial<Route>, { replace = false } = {}): void {
  const hash = hashOf(route);
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

let last: { hash: string; route: Route } = { hash: "", route: NOWHERE };

function current(): Route {
  if (last.hash !== location.hash) last = { hash: location.hash, route: parseRoute(location.hash) };
  return last.route;
}

function watch(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  window.addEventListener("popstate", changed);
  return () => {
    window.removeEventListener("hashchange", changed);
    window.removeEventListener("popstate", changed);
  };
}

export function useRoute(): Route {
  return useSyncExternalStore(watch, current);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
