import { memo, useRef, useState } from "react";
import { api } from "../client/api";
import { valueText } from "../log/displayText";
import type { AnswerView, MessageItem, RunView, SourceItem } from "../log/viewModel";
import { AnswerBody } from "../text/AnswerBody";
import { CopyButton } from "../ui/CopyButton";
import type { JsonValue, SourceLink } from "../wire/events";
import { useChat } from "./chatContext";
import { LoadCompleteButton } from "./LoadCompleteButton";

const NO_SOURCES: readonly SourceLink[] = [];

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
  const sources = useStableList(answer === null ? NO_SOURCES : answerSources(answer, run));
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

/** Whether the streamed text is the complete answer, if the log contains only the beginning of the answer. */
function isComplete(text: string, beginning: JsonValue): boolean {
  return (
    typeof beginning === "string" && text.length > beginning.length && text.startsWith(beginning.replace(/…$/, ""))
  );
}

/** The sources of the answer, and then those that only the agent's work has cited. */
function answerSources(answer: AnswerView, run: RunView): readonly SourceLink[] {
  const cited = run.items.filter((item): item is SourceItem => item.kind === "source");
  const listed = new Set(answer.sourceLinks.map((source) => source.url || source.title));
  const others = cited.filter(({ title, url }) => {
    const isNew = !listed.has(url || title);
    listed.add(url || title);
    return isNew;
  });
  return [...answer.sourceLinks, ...others.map(({ title, url }) => ({ title, url }))];
}

/** Returns the previous list if the new one has equal sources, so that memoized components do not render again. */
function useStableList(list: readonly SourceLink[]): readonly SourceLink[] {
  const last = useRef(list);
  const isSame =
    list.length === last.current.length &&
    list.every(({ title, url }, index) => title === last.current[index]?.title && url === last.current[index]?.url);
  if (!isSame) last.current = list;
  return last.current;
}
