import { memo, useMemo, useState } from "react";
import { textOf } from "../log/readable";
import type { RunView, SourceItem } from "../log/view";
import { CopyButton } from "../parts/CopyButton";
import { AnswerBody } from "../text/AnswerBody";
import { answerOf } from "../text/structured";
import { api } from "../wire/api";
import { WholeButton } from "./WholeButton";

/** The answer as a document: title, text, sources. */
export const Answer = memo(function Answer({ run }: { run: RunView }) {
  const [whole, setWhole] = useState<string | null>(null);
  const item = run.answer?.item == null ? undefined : run.items[run.answer.item];
  const spoken = item?.kind === "text" ? item.text : undefined;
  const given = run.answer;
  const content = whole ?? (given?.cut ? (spoken ?? given.content) : (given?.content ?? spoken ?? ""));
  const answer = useMemo(
    () => answerOf({ content, title: given?.title ?? "", sources: given?.sources ?? [] }),
    [content, given],
  );
  // The same list while it says the same: the body of an answer is drawn again when it is another.
  const listed = JSON.stringify([...new Set([...answer.sources, ...cited(run)])]);
  const sources = useMemo(() => JSON.parse(listed) as readonly string[], [listed]);
  const load = () => api.text(`runs/${run.runId}/answer`);
  const isCut = run.answer?.cut != null && spoken === undefined && whole === null;
  return (
    <article className="answer" aria-label="Answer" data-item={item?.key}>
      <AnswerBody title={answer.title} content={answer.content} sources={sources} streaming={false} />
      {isCut && (
        <WholeButton what="the whole answer" size={run.answer?.cut?.size ?? 0} load={load} onWhole={setWhole} />
      )}
      <div className="answer-tools">
        <CopyButton text={isCut ? async () => readable(await load()) : textOf(answer.content)} label="Copy answer" />
      </div>
    </article>
  );
});

/** A whole answer as the page shows it: of an object only its content. */
function readable(content: string): string {
  return textOf(answerOf({ content, title: "", sources: [] }).content);
}

function cited(run: RunView): readonly string[] {
  const sources = run.items.filter((item): item is SourceItem => item.kind === "source");
  return sources.map((source) => source.url || source.title);
}
