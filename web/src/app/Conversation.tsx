import { memo, useCallback, useEffect, useState } from "react";
import { Chat } from "../chat/Chat";
import { Composer } from "../chat/Composer";
import { FilterBar } from "../chat/FilterBar";
import type { LiveSession, SessionStore } from "../client/session";
import { type Filter, NO_FILTER } from "../log/filter";
import type { Item, RunView } from "../log/view";
import { api } from "../wire/api";
import { Announcer } from "./Announcer";
import { Banner } from "./Banner";
import type { Route } from "./route";
import { UnderstudyNotice } from "./UnderstudyNotice";

interface Props {
  readonly live: LiveSession;
  readonly store: SessionStore;
  readonly route: Route;
  readonly isSearching: boolean;
  readonly asksToStop: boolean;
  /** The model of its agent is the stand-in. */
  readonly usesUnderstudy: boolean;
  onSearchEnd(): void;
  onSelect(run: RunView, item: Item | null): void;
  /** The user has asked something, and wants to see what comes of it. */
  onAsked(): void;
}

/** One session: what was said and done, and the field to go on. */
export const Conversation = memo(function Conversation(props: Props) {
  const { live, store, route, onSelect, onSearchEnd } = props;
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  useEffect(() => {
    if (!props.isSearching) setFilter(NO_FILTER);
  }, [props.isSearching]);
  const pick = useCallback(
    (run: RunView, item: Item | null) => {
      onSearchEnd();
      onSelect(run, item);
    },
    [onSelect, onSearchEnd],
  );
  const newest = live.view.runs[live.view.runs.length - 1];
  const isEnded = live.link.kind === "ended";
  return (
    <>
      {props.isSearching && (
        <FilterBar runs={live.view.runs} filter={filter} onChange={setFilter} onClose={onSearchEnd} />
      )}
      <Banner live={live} store={store} />
      <Announcer run={newest} />
      <div className="chat">
        {live.loading === null || live.view.seq > 0 || isEnded ? (
          <Chat live={live} store={store} route={route} filter={filter} onSelect={pick} />
        ) : (
          <Loading part={live.loading} />
        )}
      </div>
      <Composer
        key={live.sessionId}
        sessionId={live.sessionId}
        isBusy={newest !== undefined && newest.endedAt === null}
        isDisabled={isEnded}
        last={lastMessage(newest)}
        asksToStop={props.asksToStop}
        onSend={(text, ifBusy) => {
          props.onAsked();
          store.ask(text, ifBusy);
        }}
        onStop={() => store.stop()}
      >
        {props.usesUnderstudy && <UnderstudyNotice />}
      </Composer>
    </>
  );
});

/** The log has only the beginning of a long message. */
function lastMessage(run: RunView | undefined): string | (() => Promise<string>) {
  return run?.inputTruncation ? () => api.text(`runs/${run.runId}/input`) : (run?.input ?? "");
}

function Loading({ part }: { part: number }) {
  return (
    <div className="loading" role="status">
      <progress value={part} max={1} aria-label="Loading the conversation" />
      <span>Loading …</span>
    </div>
  );
}
