import { memo, useState } from "react";
import { bytes, textOf } from "../log/readable";
import type { RunView, SourceItem } from "../log/view";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/CopyButton";
import { AnswerBody } from "../text/AnswerBody";
import { answerOf } from "../text/structured";
import { api } from "../wire/api";

/** The answer as a document: title, text, sources. */
export const Answer = memo(function Answer({ run }: { run: RunView }) {
  const [whole, setWhole] = useState<string | null>(null);
  const item = run.answer?.item == null ? undefined : run.items[run.answer.item];
  const spoken = item?.kind === "text" ? item.text : undefined;
  const answer = answerOf({
    content: whole ?? (run.answer?.cut ? (spoken ?? run.answer.content) : (run.answer?.content ?? spoken ?? "")),
    title: run.answer?.title ?? "",
    sources: run.answer?.sources ?? [],
  });
  const sources = [...new Set([...answer.sources, ...cited(run)])];
  const isCut = run.answer?.cut != null && spoken === undefined && whole === null;
  return (
    <article className="answer" aria-label="Answer" data-item={item?.key}>
      <AnswerBody title={answer.title} content={answer.content} sources={sources} streaming={false} />
      {isCut && (
        <Button onClick={async () => setWhole(await api.text(`runs/${run.runId}/answer`))}>
          Show the whole answer ({bytes(run.answer?.cut?.size ?? 0)})
        </Button>
      )}
      <div className="answer-tools">
        <CopyButton
          text={isCut ? () => api.text(`runs/${run.runId}/answer`) : textOf(answer.content)}
          label="Copy answer"
        />
      </div>
    </article>
  );
});

function cited(run: RunView): readonly string[] {
  const sources = run.items.filter((item): item is SourceItem => item.kind === "source");
  return sources.map((source) => source.url || source.title);
}
