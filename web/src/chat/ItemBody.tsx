import { memo } from "react";
import { FileCard } from "../files/FileCard";
import { plural } from "../log/plainText";
import type { Item, RunView } from "../log/view";
import { Markdown } from "../text/Markdown";
import { useChat } from "./context";
import { Decided } from "./DecisionLine";
import { PlanCard } from "./PlanCard";
import { Thought } from "./Reasoning";
import { StepLine } from "./StepLine";
import { Todos } from "./Todos";
import { ToolRow } from "./ToolRow";
import "./steps.css";
import { straight, visible } from "../text/invisibleCharacters";

interface Props {
  readonly run: RunView;
  readonly item: Item;
  readonly isNested?: boolean;
}

/** An item tells all of itself: it is drawn again when it changes, and not whenever its run does. */
export function isSameItem(one: Props, other: Props): boolean {
  return one.item === other.item && one.run.runId === other.run.runId && one.isNested === other.isNested;
}

/** One thing that an agent did, in the form that fits it. */
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
      return <Thought item={item} />;
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
          {straight(item.text)}
        </p>
      );
    case "approval":
      return (
        <div {...place}>
          <p className="quiet">Asked for {visible(item.name)}</p>
          <Decided asked={item} />
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
          Cited {straight(item.title)}
        </p>
      );
    case "agent":
      return <p className="status-line">{plural(1, "sub-agent")}</p>;
    default:
      item satisfies never;
      return null;
  }
}, isSameItem);
