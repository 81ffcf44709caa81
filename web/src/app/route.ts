/** The route: the part of the page's URL after `#`, which names a session, a run and an item. Users can share it. */

import { useMemo, useSyncExternalStore } from "react";

export interface Route {
  readonly sessionId: string | null;
  readonly runId: string | null;
  /** Index of an item in its run. */
  readonly item: number | null;
}

export const HOME: Route = { sessionId: null, runId: null, item: null };

function parseRoute(hash: string): Route {
  const [kind, sessionId, runId, item] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (kind !== "s" || !sessionId) return HOME;
  return { sessionId, runId: runId || null, item: item && /^\d{1,9}$/.test(item) ? Number(item) : null };
}

export function hashOf(route: Partial<Route>): string {
  const { sessionId, runId, item } = { ...HOME, ...route };
  if (sessionId === null) return "#/";
  const parts = [sessionId, runId, runId === null ? null : item].filter((part) => part !== null);
  return `#/s/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export function linkTo(route: Partial<Route>): string {
  return document.baseURI.replace(/#.*$/, "") + hashOf(route);
}

/** Changes the URL. With `replace`, the browser's history gets no new entry. */
export function navigate(route: Partial<Route>, { replace = false } = {}): void {
  const hash = hashOf(route);
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

function onHashChange(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  window.addEventListener("popstate", listener);
  return () => {
    window.removeEventListener("hashchange", listener);
    window.removeEventListener("popstate", listener);
  };
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(onHashChange, () => location.hash);
  return useMemo(() => parseRoute(hash), [hash]);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
