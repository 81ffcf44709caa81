import { Brain, ChevronRight, ListTree, type LucideIcon } from "lucide-react";
import { memo, type ReactNode, useId } from "react";
import { FileCard } from "../files/FileCard";
import { formatDuration, formatTokens, plural } from "../log/displayText";
import type { Item, MessageItem, PlanItem, RunView, StepItem, TodosItem } from "../log/viewModel";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { Markdown } from "../text/Markdown";
import { useElapsed } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";
import type { TodoStatus } from "../wire/events";
import { approvalSummary, DecisionLine } from "./Approval";
import { useChat, useExpanded } from "./chatContext";
import { ToolRow } from "./ToolRow";
import "./steps.css";

/** Matches "Thought:", with which some models begin a thought. It is removed, because the row has this title. */
const THOUGHT_PREFIX = /^\s*thoughts?:\s*/i;

/** A one-line preview of a text: its beginning, or its end while the text grows. */
function preview(text: string, isGrowing: boolean): string {
  const line = escapeBidi(text.replace(THOUGHT_PREFIX, "")).trim().replace(/\s+/g, " ");
  return isGrowing && line.length > 120 ? `…${line.slice(-120)}` : line.slice(0, 200);
}

interface StatusRowProps {
  readonly item: PlanItem | MessageItem;
  readonly icon: LucideIcon;
  readonly title: string;
  readonly isGrowing: boolean;
  readonly isOpenAtFirst?: boolean;
  readonly children?: ReactNode;
}

/** A row of a plan or a thought: one line that expands to the text. `children` are shown at the end of the line. */
function StatusRow({ item, icon: Icon, title, isGrowing, isOpenAtFirst = false, children }: StatusRowProps) {
  const { focus } = useChat();
  const isFocused = focus === item.key;
  const [isOpen, setOpen] = useExpanded(item.key, isOpenAtFirst || isFocused);
  const id = useId();
  return (
    <div className={`${item.kind} ${isFocused ? "focused" : ""}`} data-item={item.key}>
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
        <span className="tool-about">{isOpen ? "" : preview(item.text, isGrowing)}</span>
        {children}
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {isOpen && (
        <div id={id} className="thought-text">
          <Markdown text={item.text} streaming={isGrowing} />
        </div>
      )}
    </div>
  );
}

function PlanRow({ item }: { item: PlanItem }) {
  const title = item.update ? "Plan changed" : "Plan";
  return (
    <StatusRow item={item} icon={ListTree} title={title} isGrowing={item.isGrowing} isOpenAtFirst={!item.update} />
  );
}

function ThoughtRow({ item }: { item: MessageItem }) {
  const isGrowing = item.endedAt === null;
  const elapsed = useElapsed(item.at, item.endedAt);
  return (
    <StatusRow item={item} icon={Brain} title={isGrowing ? "Thinking" : "Thought"} isGrowing={isGrowing}>
      <span className="time">{formatDuration(elapsed)}</span>
    </StatusRow>
  );
}

/** The heading of a step of the agent's loop, with the step's tokens and duration. */
function StepLine({ item }: { item: StepItem }) {
  const isNamed = item.stepKind !== "action" && item.stepKind !== "";
  const number = `Step ${item.number}`;
  const name = item.stepKind === "planning" ? "Planning" : isNamed ? `${number} · ${item.stepKind}` : number;
  const duration = item.durationMs ?? (item.endedAt === null ? null : item.endedAt - item.at);
  return (
    <p className="step-line" data-item={item.key}>
      <span>{escapeInvisible(name)}</span>
      {item.error !== null && <span className="step-error ellipsis">{escapeInvisible(item.error)}</span>}
      <span className="time">
        {item.tokens !== null && `${formatTokens(item.tokens.input + item.tokens.output)} tokens · `}
        {duration !== null && formatDuration(duration)}
      </span>
    </p>
  );
}

/** Returns the state that a to-do entry shows. An entry in progress is shown as running only while its agent runs. */
function stateOf(status: TodoStatus, list: TodosItem["state"]): "pending" | TodosItem["state"] {
  if (status === "completed") return "done";
  if (status === "pending" || list === "done") return "pending";
  return list;
}

function Todos({ item }: { item: TodosItem }) {
  const { focus } = useChat();
  const done = item.todos.filter((todo) => todo.status === "completed").length;
  return (
    <section className={`todos ${focus === item.key ? "focused" : ""}`} aria-label="To do" data-item={item.key}>
      <p className="todos-count">
        {done} of {item.todos.length} done
      </p>
      <ul>
        {item.todos.map((todo, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: each update replaces the whole list, so the index identifies an entry
          <li key={place} className={`todo todo-${todo.status}`}>
            <StateIcon state={stateOf(todo.status, item.state)} size={14} />
            <span>{escapeBidi(todo.content)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Props {
  readonly run: RunView;
  readonly item: Item;
  readonly isNested?: boolean;
}

/** Whether two sets of props show the same item, so that it is not rendered again when only the run has changed. */
function isSameItem(one: Props, other: Props): boolean {
  return one.item === other.item && one.run.runId === other.run.runId && one.isNested === other.isNested;
}

/** The content of one item of a run: a message, thought, plan, tool call, step, file or another. */
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
      return <ThoughtRow item={item} />;
    case "tool":
      return <ToolRow run={run} tool={item} />;
    case "plan":
      return <PlanRow item={item} />;
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
          <p className="quiet">{approvalSummary(item)}</p>
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
