import { memo, useEffect, useMemo, useState } from "react";
import { VList } from "virtua";
import { SearchTexts, type SearchTextsState } from "../client/searchTexts";
import { useStore } from "../client/store";
import { plural } from "../log/displayText";
import { countTruncatedMessages, type Filter, failedAgents, findHits, type SearchHit } from "../log/search";
import type { MessageItem, RunView } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useChat } from "./chatContext";
import { ItemBody } from "./ItemBody";
import { Message } from "./Message";
import { RunEnd } from "./RunEnd";
import { UserMessage } from "./UserMessage";
import "./search.css";

/** The matches of the user's search in the conversation. `FilterBar` has the field of this search. */
export const ConversationSearchResults = memo(function ConversationSearchResults({
  runs,
  filter,
}: {
  runs: readonly RunView[];
  filter: Filter;
}) {
  const { select } = useChat();
  const [results] = useState(() => new SearchTexts());
  const full = useStore(results);
  useEffect(() => {
    if (filter.text !== "") results.request(runs);
    return () => results.cancelQueued();
  }, [results, runs, filter.text]);
  const hits = useMemo(() => runs.flatMap((run) => findHits(run, filter, full.textOf)), [runs, filter, full]);
  const unsearched =
    filter.text.trim() === "" ? [] : unsearchedParts(full, filter.tool === "" ? countTruncatedMessages(runs) : 0);
  return (
    <div className="hits">
      <p className="hits-count">
        <span role="status">
          {[hits.length === 0 ? "Nothing found" : plural(hits.length, "hit"), ...unsearched].join(" · ")}
        </span>
        {full.failed > 0 && (
          <Button variant="quiet" onClick={() => results.retry(runs)}>
            Try again
          </Button>
        )}
      </p>
      <VList className="hits-list">
        {hits.map((hit) => (
          <div className="row hit" key={hit.kind === "item" ? hit.item.key : `${hit.run.runId} ${hit.kind}`}>
            <p className="hit-where">
              Turn {hit.run.turn}
              {hit.item !== null && agentName(hit.run, hit.item.agentId)}
              <Button variant="quiet" onClick={() => select(hit.run, hit.item)}>
                Show in place
              </Button>
            </p>
            <SearchHitBody hit={hit} />
          </div>
        ))}
      </VList>
    </div>
  );
});

/** Notes about long results and messages that the search does not cover completely. */
function unsearchedParts({ pending, failed, tooLarge }: SearchTextsState, truncatedMessages: number): string[] {
  const parts: string[] = [];
  if (pending > 0) parts.push(`reading ${plural(pending, "long result")} …`);
  if (failed > 0) parts.push(`${plural(failed, "long result")} could not be read`);
  if (tooLarge > 0) parts.push(`only the beginning of ${plural(tooLarge, "very long result")} was searched`);
  if (truncatedMessages > 0)
    parts.push(`only the beginning of ${plural(truncatedMessages, "long message")} was searched`);
  return parts;
}

function agentName(run: RunView, agentId: string): string {
  return agentId === "" ? "" : ` · ${escapeInvisible(run.agents.get(agentId)?.label ?? "")}`;
}

/** The streamed text of the answer, if there is one. */
function streamedAnswer(run: RunView): MessageItem | null {
  const item = run.answer?.item == null ? undefined : run.items[run.answer.item];
  return item?.kind === "text" ? item : null;
}

function SearchHitBody({ hit }: { hit: SearchHit }) {
  switch (hit.kind) {
    case "question":
      return <UserMessage run={hit.run} />;
    case "answer":
      return <Message run={hit.run} item={streamedAnswer(hit.run)} isAnswer />;
    case "failure":
      return <RunEnd run={hit.run} />;
    case "item":
      return (
        <>
          <ItemBody run={hit.run} item={hit.item} />
          {failedAgents(hit.item, hit.run).map((agent) => (
            <p key={agent.agentId} className="tool-error">
              {escapeInvisible(agent.name)} failed{agent.error === null ? "" : `: ${escapeInvisible(agent.error)}`}
            </p>
          ))}
        </>
      );
  }
}
