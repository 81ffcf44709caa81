import { ArrowDown } from "lucide-react";
import { memo, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { Route } from "../app/route";
import type { LiveSession, SessionStore } from "../client/session";
import { type Filter, isActive, searchTerms } from "../log/filter";
import type { Item, RunView } from "../log/view";
import { Button } from "../ui/Button";
import { ListContainer } from "../ui/ListContainer";
import { folds } from "./collapsed";
import { type ChatContext, ChatProvider } from "./context";
import { RowView } from "./RowView";
import { rowsOf } from "./rows";
import { SearchResults } from "./SearchResults";
import { useAutoScroll } from "./useAutoScroll";
import { useScrollTo } from "./useScrollTo";
import "./chat.css";

interface Props {
  readonly live: LiveSession;
  readonly store: SessionStore;
  readonly route: Route;
  readonly filter: Filter;
  onSelect(run: RunView, item: Item | null): void;
}

/** The browser's own mark of when all of the history can be read; benchmarks look at it. */
const LOADED = "limelight:loaded";

/** The conversation: a virtual list that follows its end while the user is there. */
export const Chat = memo(function Chat({ live, store, route, filter, onSelect }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const following = useAutoScroll(box, inner);
  const { isFollowing, toEnd } = following;
  const { isOpen, toggle } = useFolds(live, isFollowing, route);
  const rows = useMemo(() => rowsOf(live.view, live.pending, isOpen), [live.view, live.pending, isOpen]);
  const context = useMemo<ChatContext>(
    () => ({ store, deciding: live.deciding, focus: focusKey(route), words: searchTerms(filter.text), pick: onSelect }),
    [store, live.deciding, route, filter, onSelect],
  );
  const places = useMemo(() => ({ rows: list, box }), []);
  useScrollTo(live, rows, route, places, following);
  useToEndWhenAsked(live.pending.length, toEnd);
  const isLoaded = live.loading === null;
  useEffect(() => {
    if (isLoaded) performance.mark(LOADED);
  }, [isLoaded]);

  // The conversation stays below what a search shows, so that it keeps its place and goes on following.
  const isSearching = isActive(filter);
  return (
    <ChatProvider value={context}>
      {isSearching && <SearchResults runs={live.view.runs} filter={filter} />}
      <div
        className="chat-scroll"
        ref={box}
        role="log"
        aria-live="off"
        aria-label="Conversation"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box has to be reachable by keyboard
        tabIndex={0}
        inert={isSearching}
      >
        <div ref={inner}>
          <Virtualizer ref={list} data={rows} scrollRef={box} bufferSize={400} as={ListContainer}>
            {(row) => <RowView key={row.key} row={row} onToggle={toggle} />}
          </Virtualizer>
          <div className="chat-foot" />
        </div>
      </div>
      {!isFollowing && !isSearching && (
        <Button className="to-now" onClick={toEnd}>
          <ArrowDown size={14} aria-hidden="true" /> Jump to now
        </Button>
      )}
    </ChatProvider>
  );
});

function focusKey(route: Route): string | null {
  return route.runId !== null && route.item !== null ? `${route.runId}/${route.item}` : null;
}

/** Which runs have their steps open: running ones, those a link points into, and those that the user opened. */
function useFolds(live: LiveSession, isFollowing: boolean, route: Route) {
  const chosen = useSyncExternalStore(folds.subscribe, folds.getSnapshot);
  const newest = live.view.runs[live.view.runs.length - 1];
  const stays = useStaysOpen(newest, isFollowing);
  const focused = route.item === null ? null : route.runId;
  const isOpen = useCallback(
    (run: RunView) => chosen.get(run.runId) ?? (run.endedAt === null || run.runId === stays || run.runId === focused),
    [chosen, stays, focused],
  );
  const toggle = useCallback((run: RunView) => folds.choose([run], !isOpen(run)), [isOpen]);
  return { isOpen, toggle };
}

/** The run whose end the user did not follow: they would be thrown off their place if its steps folded under them. */
function useStaysOpen(newest: RunView | undefined, isFollowing: boolean): string | null {
  const [stays, setStays] = useState<string | null>(null);
  const runId = newest?.runId ?? null;
  const isLive = newest !== undefined && newest.endedAt === null;
  if (isLive && stays !== runId) setStays(runId);
  else if (!isLive && isFollowing && stays !== null) setStays(null);
  return stays;
}

/** Whoever asks something wants to see it. */
function useToEndWhenAsked(count: number, toEnd: () => void): void {
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current) toEnd();
    before.current = count;
  }, [count, toEnd]);
}
