import { memo } from "react";
import type { RunView } from "../log/view";
import { Approval } from "./Approval";
import { ItemBody } from "./ItemBody";
import { Speech } from "./Message";
import { PendingMessage } from "./PendingMessage";
import { RunEnd } from "./RunEnd";
import type { Row } from "./rows";
import { StepsHeader } from "./StepsHeader";
import { Lanes } from "./SubAgents";
import { UserMessage } from "./UserMessage";
import "./message.css";

/** One row of the chat. */
export const RowView = memo(function RowView({ row, onToggle }: { row: Row; onToggle(run: RunView): void }) {
  return <div className={`row row-${row.kind}`}>{body(row, onToggle)}</div>;
});

function body(row: Row, onToggle: (run: RunView) => void) {
  switch (row.kind) {
    case "user":
      return <UserMessage run={row.run} />;
    case "steps":
      return <StepsHeader run={row.run} isOpen={row.open} onToggle={onToggle} />;
    case "item":
      return (
        <div className={row.isAnswer || row.item.kind === "artifact" ? undefined : "step"}>
          {row.item.kind === "text" ? (
            <Speech run={row.run} item={row.item} isAnswer={row.isAnswer} />
          ) : (
            <ItemBody run={row.run} item={row.item} />
          )}
        </div>
      );
    case "lanes":
      return (
        <div className="step">
          <Lanes run={row.run} items={row.items} />
        </div>
      );
    case "answer":
      return <Speech run={row.run} item={null} isAnswer={true} />;
    case "approval":
      return <Approval run={row.run} asked={row.asked} />;
    case "end":
      return <RunEnd run={row.run} />;
    case "pending":
      return <PendingMessage pending={row.pending} />;
    case "gap":
      return (
        <p className="quiet">
          Records {row.from} to {row.to} are no longer kept.
        </p>
      );
  }
}
