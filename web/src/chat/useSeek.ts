import { type RefObject, useEffect, useRef } from "react";
import type { VirtualizerHandle } from "virtua";
import type { Route } from "../app/route";
import type { LiveSession } from "../live/session";
import { type Row, rowOf } from "./rows";
import type { Following } from "./useFollow";

const LOOK_EVERY = 50;
const MOST_LOOKS = 40;
/** So many looks in a row at the same place mean that all heights are known. */
const STILL = 4;
const SEEKING = LOOK_EVERY * MOST_LOOKS;

interface List {
  readonly rows: RefObject<VirtualizerHandle | null>;
  readonly box: RefObject<HTMLElement | null>;
}

/** Takes the reader to what they want to see: what the address names, or where the newest answer begins. */
export function useSeek(live: LiveSession, rows: readonly Row[], route: Route, list: List, following: Following): void {
  useAddress(live, rows, route, list, following);
  useAnswerThatCameWhole(live, rows, list, following);
}

/** Goes to what the address names, once for each address; without one to the last question of what is over. */
function useAddress(live: LiveSession, rows: readonly Row[], route: Route, list: List, { stay, toEnd }: Following) {
  const done = useRef<Route | null>(null);
  useEffect(() => {
    if (done.current === route || live.loading !== null || rows.length === 0) return;
    const isFirst = done.current === null;
    const newest = live.view.runs[live.view.runs.length - 1];
    const run = live.view.runs.find((one) => one.runId === route.runId);
    const item = route.item === null ? undefined : run?.items[route.item];
    const question = (runId: string) => rows.findIndex((row) => row.kind === "user" && row.run.runId === runId);
    if (run === undefined) {
      done.current = route;
      if (!isFirst || newest === undefined || newest.endedAt === null || live.pending.length > 0) return;
      stay(SEEKING);
      return settle(list, question(newest.runId), "start", null, toEnd);
    }
    const place = item ? rowOf(rows, run, item) : question(run.runId);
    if (place < 0) return;
    done.current = route;
    stay(SEEKING);
    return settle(list, place, item ? "center" : "start", item?.key ?? null, null);
  }, [live, rows, route, list, stay, toEnd]);
}

/** An answer that was never streamed is there at once: it is read from its beginning. */
function useAnswerThatCameWhole(live: LiveSession, rows: readonly Row[], list: List, { isFollowing, stay }: Following) {
  const newest = live.view.runs[live.view.runs.length - 1];
  const watched = useRef<string | null>(null);
  useEffect(() => {
    if (newest === undefined) return;
    if (newest.endedAt === null) {
      watched.current = newest.runId;
      return;
    }
    if (watched.current !== newest.runId) return;
    watched.current = null;
    const place = rows.findIndex((row) => row.kind === "answer" && row.run.runId === newest.runId);
    if (place < 0 || !isFollowing) return;
    stay(SEEKING);
    return settle(list, place, "start", null, null);
  }, [newest, rows, list, isFollowing, stay]);
}

/**
 * Rows find their height only when they are shown, and an item may stand deep inside its row: so look again until it
 * stays where it is, or the reader takes over.
 */
function settle(list: List, place: number, align: "start" | "center", key: string | null, atEnd: (() => void) | null) {
  let looks = 0;
  let still = 0;
  let last = Number.NaN;
  const end = () => clearInterval(timer);
  const look = () => {
    const element = key === null ? null : document.querySelector(`[data-item="${CSS.escape(key)}"]`);
    const box = list.box.current;
    const rows = list.rows.current;
    if (box === null || rows === null) return;
    // Not the list's own way to scroll to a row: that goes on in the background, also when the reader has taken over.
    if (element === null) box.scrollTop = offsetOf(rows, place, align);
    else element.scrollIntoView({ block: "center" });
    const now = box.scrollTop;
    still = now === last ? still + 1 : 0;
    last = now;
    looks += 1;
    if ((still < STILL || (key !== null && element === null)) && looks < MOST_LOOKS) return;
    end();
    if (atEnd !== null && box.scrollHeight - now - box.clientHeight < 48) atEnd();
  };
  const timer = setInterval(look, LOOK_EVERY);
  look();
  for (const hand of ["wheel", "touchmove", "pointerdown", "keydown"])
    window.addEventListener(hand, end, { once: true, passive: true });
}

function offsetOf(rows: VirtualizerHandle, place: number, align: "start" | "center"): number {
  const top = rows.getItemOffset(place);
  return align === "start" ? top : top - (rows.viewportSize - rows.getItemSize(place)) / 2;
}
