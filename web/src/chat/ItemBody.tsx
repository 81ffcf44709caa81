import { Brain, ChevronRight, ListTree, type LucideIcon } from "lucide-react";
import { memo, useId } from "react";
import { FileCard } from "../files/FileCard";
import { formatDuration, formatTokens, plural } from "../log/format";
import type { Item, MessageItem, PlanItem, RunView, StepItem, TodosItem } from "../log/view";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { Markdown } from "../text/Markdown";
import { useNow } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";
import type { TodoStatus } from "../wire/events";
import { DecisionLine } from "./Approval";
import { useChat, useExpanded } from "./chatContext";
import { ToolRow } from "./ToolRow";
import "./steps.css";

/** A text in one line: its beginning, or its end while it grows. */
export function preview(text: string, isGrowing: boolean): string {
  const line = escapeBidi(text).trim().replace(/\s+/g, " ");
  return isGrowing && line.length > 120 ? `…${line.slice(-120)}` : line.slice(0, 200);
}

interface StatusRowProps {
  readonly itemKey: string;
  readonly kind: "plan" | "thought";
  readonly icon: LucideIcon;
  readonly title: string;
  /** The text in one line, shown while the row is collapsed. */
  readonly preview: string;
  readonly text: string;
  readonly time?: string;
  readonly isGrowing?: boolean;
  readonly isOpenAtFirst?: boolean;
}

/** A plan or a thought: one line that expands to the text. */
export function StatusRow({ itemKey, kind, icon: Icon, title, preview, text, time, ...rest }: StatusRowProps) {
  const { isGrowing = false, isOpenAtFirst = false } = rest;
  const { focus } = useChat();
  const isFocused = focus === itemKey;
  const [isOpen, setOpen] = useExpanded(itemKey, isOpenAtFirst || isFocused);
  const id = useId();
  return (
    <div className={`${kind} ${isFocused ? "focused" : ""}`} data-item={itemKey}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={`state ${isGrowing ? "state-running still" : "state-pending"}`}>
          <Icon size={15} aria-hidden="true" />
        </span>
        <span className="tool-name quiet">{title}</span>
        <span className="tool-about">{isOpen ? "" : preview}</span>
        {time !== undefined && <span className="time">{time}</span>}
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {isOpen && (
        <div id={id} className="thought-text">
          <Markdown text={text} streaming={isGrowing} />
        </div>
      )}
    </div>
  );
}

export const PlanCard = memo(function PlanCard({ item }: { item: PlanItem }) {
  return (
    <StatusRow
      itemKey={item.key}
      kind="plan"
      icon={ListTree}
      title={item.update ? "Plan changed" : "Plan"}
      preview={preview(item.text, item.isGrowing)}
      text={item.text}
      isGrowing={item.isGrowing}
      isOpenAtFirst={!item.update}
    />
  );
});

/** Some models begin a thought with its name, which the row already shows. */
const NAME = /^\s*thoughts?:\s*/i;

export const Reasoning = memo(function Reasoning({ item }: { item: MessageItem }) {
  const isThinking = item.endedAt === null;
  const now = useNow(isThinking);
  return (
    <StatusRow
      itemKey={item.key}
      kind="thought"
      icon={Brain}
      title={isThinking ? "Thinking" : "Thought"}
      preview={preview(item.text.replace(NAME, ""), isThinking)}
      text={item.text}
      time={formatDuration((item.endedAt ?? Math.max(now, item.at)) - item.at)}
      isGrowing={isThinking}
    />
  );
});

/** The start of a step of the agent's loop, with its cost. */
export const StepLine = memo(function StepLine({ item }: { item: StepItem }) {
  const name = item.stepKind === "planning" ? "Planning" : `Step ${item.number}`;
  const took = item.durationMs ?? (item.endedAt === null ? null : item.endedAt - item.at);
  return (
    <p className="step-line" data-item={item.key}>
      <span>{name}</span>
      {item.error !== null && <span className="step-error">{escapeInvisible(item.error)}</span>}
      <span className="time">
        {item.tokens !== null && `${formatTokens(item.tokens.input + item.tokens.output)} tokens · `}
        {took !== null && formatDuration(took)}
      </span>
    </p>
  );
});

/** An entry in progress is shown as running only while its list's agent runs. */
function stateOf(status: TodoStatus, list: TodosItem["state"]): "pending" | TodosItem["state"] {
  if (status === "completed") return "done";
  if (status === "pending" || list === "done") return "pending";
  return list;
}

export const Todos = memo(function Todos({ item }: { item: TodosItem }) {
  const { focus } = useChat();
  const done = item.todos.filter((todo) => todo.status === "completed").length;
  return (
    <section className={`todos ${focus === item.key ? "focused" : ""}`} aria-label="To do" data-item={item.key}>
      <p className="todos-count">
        {done} of {item.todos.length} done
      </p>
      <ul>
        {item.todos.map((todo, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list is replaced as a whole, its places are what stays
          <li key={place} className={`todo todo-${todo.status}`}>
            <StateIcon state={stateOf(todo.status, item.state)} size={14} />
            <span>{escapeBidi(todo.content)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
});

interface Props {
  readonly run: RunView;
  readonly item: Item;
  readonly isNested?: boolean;
}

/** Renders an item again only when it changes, not whenever its run does. */
export function isSameItem(one: Props, other: Props): boolean {
  return one.item === other.item && one.run.runId === other.run.runId && one.isNested === other.isNested;
}

/** One item of a run. */
export const ItemBody = memo(function ItemBody({ run, item, isNested = false }: Props) {
  const { focus } = useChat();
  const place = { "data-item": item.key, className: focus === item.key ? "focused" : undefined };
  switch (item.kind) {
    case "text":
      return (
        <div {...place} className={`speech ${isNested ? "speech-nested" : ""} ${place.className ?? ""}`}>
          <Markdown text={item.text} streaming={item.endedAt === null} />
        </div>
      );
    case "thought":
      return <Reasoning item={item} />;
    case "tool":
      return <ToolRow run={run} tool={item} />;
    case "plan":
      return <PlanCard item={item} />;
    case "todos":
      return <Todos item={item} />;
    case "step":
      return <StepLine item={item} />;
    case "status":
      return (
        <p {...place} className={`status-line ${place.className ?? ""}`}>
          {escapeBidi(item.text)}
        </p>
      );
    case "approval":
      return (
        <div {...place}>
          <p className="quiet">Asked for {escapeInvisible(item.name)}</p>
          <DecisionLine approval={item} />
        </div>
      );
    case "artifact":
      return (
        <div {...place}>
          <FileCard item={item} />
        </div>
      );
    case "source":
      return (
        <p {...place} className="status-line">
          Cited {escapeBidi(item.title)}
        </p>
      );
    case "agent":
      return <p className="status-line">{plural(1, "sub-agent")}</p>;
    default:
      item satisfies never;
      return null;
  }
}, isSameItem);
