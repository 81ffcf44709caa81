import { type RefObject, useCallback, useEffect, useRef } from "react";
import type { VirtualizerHandle } from "virtua";
import type { Route } from "../app/route";
import type { LiveSession } from "../client/sessionStore";
import { distanceToEnd } from "../ui/hooks";
import { type Row, rowIndexOf } from "./chatRows";
import { type AutoScroll, END_TOLERANCE, USER_INPUT } from "./useAutoScroll";

const STEP_MS = 50;
const MAX_STEPS = 40;
/** Number of consecutive checks with the same position after which the scroll target counts as settled. */
const STABLE_STEPS = 4;
const SEEK_MS = STEP_MS * MAX_STEPS;

/** Options of the input listeners: they run in the capture phase, before the listeners that scroll for the user. */
const CAPTURE = { capture: true, passive: true } as const;

type Align = "start" | "center";
type AtEnd = (() => void) | null;
type Scroll = (place: number, align: Align, key: string | null, atEnd: AtEnd) => void;

interface List {
  readonly rows: RefObject<VirtualizerHandle | null>;
  readonly box: RefObject<HTMLElement | null>;
}

/** Scrolls to the item that the URL names, or to the beginning of the newest answer. */
export function useScrollTo(
  live: LiveSession,
  rows: readonly Row[],
  route: Route,
  list: List,
  following: AutoScroll,
): void {
  const scrollUntilSettled = useScroller(list);
  useScrollToRoute(live, rows, route, scrollUntilSettled, following);
  useScrollToAnswer(live, rows, scrollUntilSettled, following);
}

/** Runs one scroll at a time; a new one cancels the previous one, and unmounting cancels all. */
function useScroller(list: List): Scroll {
  const cancel = useRef<() => void>(() => {});
  useEffect(() => () => cancel.current(), []);
  return useCallback(
    (place, align, key, atEnd) => {
      cancel.current();
      cancel.current = scrollUntilSettled(list, place, align, key, atEnd);
    },
    [list],
  );
}

/** Scrolls once to the run or item that the URL names. If it names none, to the last question of an ended session. */
function useScrollToRoute(
  live: LiveSession,
  rows: readonly Row[],
  route: Route,
  scrollUntilSettled: Scroll,
  { pause, toEnd }: AutoScroll,
) {
  const done = useRef<Route | null>(null);
  useEffect(() => {
    if (done.current === route || live.loading !== null || rows.length === 0) return;
    const isFirst = done.current === null;
    const newest = live.view.runs.at(-1);
    const run = live.view.runs.find((one) => one.runId === route.runId);
    const item = route.item === null ? undefined : run?.items[route.item];
    const question = (runId: string) => rows.findIndex((row) => row.kind === "user" && row.run.runId === runId);
    if (run === undefined) {
      done.current = route;
      if (!isFirst || newest === undefined || newest.endedAt === null || live.pending.length > 0) return;
      pause(SEEK_MS);
      scrollUntilSettled(question(newest.runId), "start", null, toEnd);
      return;
    }
    const place = item ? rowIndexOf(rows, run, item) : question(run.runId);
    if (place < 0) return;
    done.current = route;
    pause(SEEK_MS);
    scrollUntilSettled(place, item ? "center" : "start", item?.key ?? null, null);
  }, [live, rows, route, scrollUntilSettled, pause, toEnd]);
}

/** Scrolls to the beginning of an answer that was not streamed. */
function useScrollToAnswer(
  live: LiveSession,
  rows: readonly Row[],
  scrollUntilSettled: Scroll,
  { isFollowing, pause, toEnd }: AutoScroll,
) {
  const newest = live.view.runs.at(-1);
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
    pause(SEEK_MS);
    scrollUntilSettled(place, "start", null, toEnd);
  }, [newest, rows, scrollUntilSettled, isFollowing, pause, toEnd]);
}

/**
 * Scrolls repeatedly until the position of the target is stable or the user scrolls.
 *
 * Rows get their height only when they are mounted, and an item may be deep inside its row. Calls `atEnd` if the end
 * of the conversation is in sight afterwards.
 */
function scrollUntilSettled(list: List, place: number, align: Align, key: string | null, atEnd: AtEnd): () => void {
  let steps = 0;
  let stableSteps = 0;
  let last = Number.NaN;
  const cancel = () => {
    clearInterval(timer);
    for (const type of USER_INPUT) window.removeEventListener(type, end, CAPTURE);
  };
  const end = () => {
    cancel();
    const box = list.box.current;
    if (box !== null && distanceToEnd(box) < END_TOLERANCE) atEnd?.();
  };
  const step = () => {
    const element = key === null ? null : document.querySelector(`[data-item="${CSS.escape(key)}"]`);
    const box = list.box.current;
    const rows = list.rows.current;
    if (box === null || rows === null) return;
    // `scrollToIndex` of the list is not used: it would continue after the user starts to scroll.
    if (element === null) box.scrollTop = offsetOf(rows, place, align);
    else element.scrollIntoView({ block: "center" });
    const now = box.scrollTop;
    stableSteps = now === last ? stableSteps + 1 : 0;
    last = now;
    steps += 1;
    if ((stableSteps < STABLE_STEPS || (key !== null && element === null)) && steps < MAX_STEPS) return;
    end();
  };
  const timer = setInterval(step, STEP_MS);
  for (const type of USER_INPUT) window.addEventListener(type, end, CAPTURE);
  step();
  return cancel;
}

function offsetOf(rows: VirtualizerHandle, place: number, align: Align): number {
  const top = rows.getItemOffset(place);
  return align === "start" ? top : top - (rows.viewportSize - rows.getItemSize(place)) / 2;
}
