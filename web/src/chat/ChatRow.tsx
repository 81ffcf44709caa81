import { ChevronRight } from "lucide-react";
import { memo } from "react";
import { callLine, formatDuration, plural } from "../log/displayText";
import { type Progress, type RunView, runningTools } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { useElapsed } from "../ui/clock";
import { Approval } from "./Approval";
import type { Row } from "./chatRows";
import { ItemBody } from "./ItemBody";
import { Message } from "./Message";
import { RunEnd } from "./RunEnd";
import { SubAgents } from "./SubAgents";
import { PendingMessage, UserMessage } from "./UserMessage";
import "./message.css";

interface Props {
  readonly run: RunView;
  readonly isExpanded: boolean;
  onToggle(run: RunView): void;
}

/** The line that expands and collapses the steps of a run. */
export const StepsHeader = memo(function StepsHeader({ run, isExpanded, onToggle }: Props) {
  const isLive = run.endedAt === null;
  const elapsed = useElapsed(run.startedAt, run.endedAt);
  const busy = isLive && !isExpanded ? runningTools(run).map(callLine) : [];
  return (
    <button type="button" className="steps-head" aria-expanded={isExpanded} onClick={() => onToggle(run)}>
      <ChevronRight className="chevron" size={15} aria-hidden="true" />
      <span className="steps-title">Execution steps{counts(run)}</span>
      <span className="tool-about">{escapeInvisible(busy.join(", "))}</span>
      <span className="time">{formatDuration(elapsed)}</span>
    </button>
  );
});

/** A summary of a run's steps: numbers of tool calls, failures and missing results. */
function counts(run: RunView): string {
  if (run.tools === 0) return "";
  const count = (state: Progress) =>
    run.endedAt === null ? 0 : run.items.filter((item) => item.kind === "tool" && item.state === state).length;
  const failed = count("failed");
  const unseen = count("unseen");
  const notes = [failed > 0 ? `, ${failed} failed` : "", unseen > 0 ? `, ${unseen} without a result` : ""];
  return ` (${plural(run.tools, "tool")}${notes.join("")})`;
}

/** One row of the chat: a message, an item, the steps header or the end of a run. */
export const ChatRow = memo(function ChatRow({ row, onToggle }: { row: Row; onToggle(run: RunView): void }) {
  return <div className={`row row-${row.kind}`}>{body(row, onToggle)}</div>;
});

function body(row: Row, onToggle: (run: RunView) => void) {
  switch (row.kind) {
    case "user":
      return <UserMessage run={row.run} />;
    case "steps":
      return <StepsHeader run={row.run} isExpanded={row.isExpanded} onToggle={onToggle} />;
    case "item":
      return (
        <div className={row.isAnswer || row.item.kind === "artifact" ? undefined : "step"}>
          {row.item.kind === "text" ? (
            <Message run={row.run} item={row.item} isAnswer={row.isAnswer} />
          ) : (
            <ItemBody run={row.run} item={row.item} />
          )}
        </div>
      );
    case "subAgents":
      return (
        <div className="step">
          <SubAgents run={row.run} items={row.items} />
        </div>
      );
    case "answer":
      return <Message run={row.run} item={null} isAnswer={true} />;
    case "approval":
      return <Approval run={row.run} approval={row.approval} />;
    case "end":
      return <RunEnd run={row.run} />;
    case "pending":
      return <PendingMessage message={row.message} />;
    case "gap":
      return (
        <p className="quiet">
          Records {row.from} to {row.to} are no longer kept.
        </p>
      );
  }
}
