import { memo, useRef, useState } from "react";
import { api } from "../client/api";
import { valueText } from "../log/format";
import type { MessageItem, RunView, SourceItem } from "../log/viewModel";
import { AnswerBody } from "../text/AnswerBody";
import { CopyButton } from "../ui/CopyButton";
import type { JsonValue } from "../wire/events";
import { useChat } from "./chatContext";
import { LoadCompleteButton } from "./LoadCompleteButton";

const NO_SOURCES: readonly string[] = [];

interface Props {
  readonly run: RunView;
  /** The streamed text; null for an answer that was not streamed. */
  readonly item: MessageItem | null;
  readonly isAnswer: boolean;
}

/**
 * A text of the agent, and its answer as a document with title, text and sources.
 *
 * One component renders both, so that a text that turns out to be the answer stays mounted.
 */
export const Message = memo(function Message({ run, item, isAnswer }: Props) {
  const { focus } = useChat();
  const [full, setFull] = useState<string | null>(null);
  const answer = isAnswer ? run.answer : null;
  const streamed =
    item !== null && (answer === null || !answer.truncation || isComplete(item.text, answer.content))
      ? item.text
      : null;
  const content = full ?? (answer?.truncation ? (streamed ?? answer.content) : (answer?.content ?? streamed ?? ""));
  const cited = answer === null ? NO_SOURCES : [...new Set([...answer.sources, ...citedSources(run)])];
  const sources = useStableList(cited);
  const load = () => api.text(`runs/${run.runId}/answer?text=1`);
  const isTruncated = answer?.truncation != null && streamed === null && full === null;
  return (
    <article
      className={`${answer === null ? "speech" : "answer"} ${item !== null && item.key === focus ? "focused" : ""}`}
      aria-label={answer === null ? undefined : "Answer"}
      data-item={item?.key}
    >
      <AnswerBody
        title={answer?.title ?? ""}
        content={content}
        sources={sources}
        streaming={answer === null && item?.endedAt === null}
      />
      {isTruncated && (
        <LoadCompleteButton what="the whole answer" size={answer.truncation?.size} load={load} onLoaded={setFull} />
      )}
      {answer !== null && (
        <div className="answer-tools">
          <CopyButton text={isTruncated ? load : valueText(content)} label="Copy answer" />
        </div>
      )}
    </article>
  );
});

/** Whether the streamed text is the complete text of the answer, of which the log has only the beginning. */
function isComplete(text: string, beginning: JsonValue): boolean {
  return (
    typeof beginning === "string" && text.length > beginning.length && text.startsWith(beginning.replace(/…$/, ""))
  );
}

function citedSources(run: RunView): readonly string[] {
  const sources = run.items.filter((item): item is SourceItem => item.kind === "source");
  return sources.map((source) => source.url || source.title);
}

/** Returns the previous list if the new one has equal elements, so that memoized components do not render again. */
function useStableList<T>(list: readonly T[]): readonly T[] {
  const last = useRef(list);
  const isSame = list.length === last.current.length && list.every((one, index) => one === last.current[index]);
  if (!isSame) last.current = list;
  return last.current;
}
