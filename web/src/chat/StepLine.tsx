import { memo } from "react";
import { duration, tokenCount } from "../log/plainText";
import type { StepItem } from "../log/view";
import { visible } from "../text/invisibleCharacters";

/** Where a round of the agent's loop begins, and what it cost. */
export const StepLine = memo(function StepLine({ item }: { item: StepItem }) {
  const name = item.stepKind === "planning" ? "Planning" : `Step ${item.number}`;
  const took = item.durationMs ?? (item.endedAt === null ? null : item.endedAt - item.at);
  return (
    <p className="step-line" data-item={item.key}>
      <span>{name}</span>
      {item.error !== null && <span className="step-error">{visible(item.error)}</span>}
      <span className="time">
        {item.tokens !== null && `${tokenCount(item.tokens.input + item.tokens.output)} tokens · `}
        {took !== null && duration(took)}
      </span>
    </p>
  );
});
