import { ArrowDown } from "lucide-react";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useLayout } from "../app/LayoutContext";
import { useNavigation } from "../app/NavigationContext";
import { useStores } from "../app/pageStores";
import type { Route } from "../app/route";
import type { LiveSession, SessionStore } from "../client/sessionStore";
import { useStore } from "../client/store";
import { type Filter, isActive, searchTerms } from "../log/search";
import { isRunning, type RunView } from "../log/viewModel";
import { Button } from "../ui/Button";
import { ListContainer } from "../ui/ListContainer";
import { ChatRow } from "./ChatRow";
import { ConversationSearchResults } from "./ConversationSearchResults";
import { ChatContext, type ChatState, type ChatValue } from "./chatContext";
import { RowBuilder } from "./chatRows";
import { useAutoScroll } from "./useAutoScroll";
import { useScrollTo } from "./useScrollTo";
import "./chat.css";

interface Props {
  readonly live: LiveSession;
  readonly store: SessionStore;
  readonly filter: Filter;
}

/** Name of the performance mark that the page sets when the complete history is shown. Benchmarks wait for it. */
const LOADED_MARK = "limelight:loaded";

/** The conversation: a virtual list that scrolls along with new rows while the user is at its end. */
export const Chat = memo(function Chat({ live, store, filter }: Props) {
  const { route } = useNavigation();
  const { selectItem, setSearching } = useLayout();
  const { chat: state } = useStores();
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const following = useAutoScroll(box, inner);
  const { isFollowing, toEnd } = following;
  const { isExpanded, toggle } = useExpandedRuns(state, live, isFollowing, route);
  const [builder] = useState(() => new RowBuilder());
  const rows = useMemo(
    () => builder.build(live.view, live.pending, isExpanded),
    [builder, live.view, live.pending, isExpanded],
  );
  const context = useMemo<ChatValue>(
    () => ({
      store,
      state,
      deciding: live.deciding,
      focus: focusKey(route),
      searchTerms: searchTerms(filter.text),
      select: (run, item) => {
        setSearching(false);
        selectItem(run, item);
      },
    }),
    [store, state, live.deciding, route, filter, selectItem, setSearching],
  );
  const elements = useMemo(() => ({ rows: list, box }), []);
  useScrollTo(live, rows, route, elements, following);
  useScrollOnSend(live.pending.length, toEnd);
  const isLoaded = live.loading === null;
  useEffect(() => {
    if (isLoaded) performance.mark(LOADED_MARK);
  }, [isLoaded]);

  // The conversation stays mounted below the search results, so that it keeps its scroll position.
  const isSearching = isActive(filter);
  return (
    <ChatContext value={context}>
      {isSearching && <ConversationSearchResults runs={live.view.runs} filter={filter} />}
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
            {(row) => <ChatRow key={row.key} row={row} onToggle={toggle} />}
          </Virtualizer>
          <div className="chat-foot" />
        </div>
      </div>
      {!isFollowing && !isSearching && (
        <Button className="to-now" onClick={toEnd}>
          <ArrowDown size={14} aria-hidden="true" /> Jump to now
        </Button>
      )}
    </ChatContext>
  );
});

function focusKey(route: Route): string | null {
  return route.runId !== null && route.item !== null ? `${route.runId}/${route.item}` : null;
}

/** Decides which runs show their steps: by the user's choice, otherwise live runs and the run in the URL. */
function useExpandedRuns(state: ChatState, live: LiveSession, isFollowing: boolean, route: Route) {
  const choices = useStore(state.expandedRuns);
  const newest = live.view.runs.at(-1);
  const unfollowed = useUnfollowedRun(newest, isFollowing);
  const focused = route.item === null ? null : route.runId;
  const isExpanded = useCallback(
    ({ runId, endedAt }: RunView) =>
      choices.get(runId) ?? (endedAt === null || runId === unfollowed || runId === focused),
    [choices, unfollowed, focused],
  );
  const toggle = useCallback((run: RunView) => state.setExpanded([run], !isExpanded(run)), [state, isExpanded]);
  return { isExpanded, toggle };
}

/**
 * Id of the newest run from its start until the user is at the end of the chat after the run has ended. Its steps stay
 * expanded until then, because collapsing them would move the text that the user reads.
 */
function useUnfollowedRun(newest: RunView | undefined, isFollowing: boolean): string | null {
  const [unfollowed, setUnfollowed] = useState<string | null>(null);
  const runId = newest?.runId ?? null;
  if (isRunning(newest) && unfollowed !== runId) setUnfollowed(runId);
  else if (!isRunning(newest) && isFollowing && unfollowed !== null) setUnfollowed(null);
  return unfollowed;
}

/** Scrolls to the end when the user sends a message. */
function useScrollOnSend(count: number, toEnd: () => void): void {
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current) toEnd();
    before.current = count;
  }, [count, toEnd]);
}
