import { ChevronRight, ListTree } from "lucide-react";
import { memo, useId } from "react";
import type { PlanItem } from "../log/view";
import { Markdown } from "../text/Markdown";
import { straight } from "../text/visible";
import { useChat } from "./context";
import { useOpened } from "./opened";

/** What the agent means to do, in its own words. */
export const PlanCard = memo(function PlanCard({ item }: { item: PlanItem }) {
  const { focus } = useChat();
  const [isOpen, setOpen] = useOpened(item.key, !item.update || focus === item.key);
  const id = useId();
  return (
    <div className={`plan ${focus === item.key ? "focused" : ""}`} data-item={item.key}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <span className="state state-pending">
          <ListTree size={15} aria-hidden="true" />
        </span>
        <span className="tool-name quiet">{item.update ? "Plan changed" : "Plan"}</span>
        <span className="tool-about">
          {isOpen ? "" : straight(item.text).trim().replace(/\s+/g, " ").slice(0, 200)}
        </span>
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {isOpen && (
        <div id={id} className="thought-text">
          <Markdown text={item.text} streaming={false} />
        </div>
      )}
    </div>
  );
});
