import { Brain, ChevronRight } from "lucide-react";
import { memo, useId } from "react";
import { duration } from "../log/readable";
import type { MessageItem } from "../log/view";
import { useNow } from "../parts/useNow";
import { Markdown } from "../text/Markdown";
import { straight } from "../text/visible";
import { useChat } from "./context";
import { useOpened } from "./opened";

/** What the agent thinks: a quiet line that opens. While it thinks, the end of the thought can be read in the line. */
export const Thought = memo(function Thought({ item }: { item: MessageItem }) {
  const { focus } = useChat();
  const [isOpen, setOpen] = useOpened(item.key, focus === item.key);
  const id = useId();
  const isThinking = item.endedAt === null;
  const now = useNow(isThinking);
  const took = duration((item.endedAt ?? Math.max(now, item.at)) - item.at);
  return (
    <div className={`thought ${focus === item.key ? "focused" : ""}`} data-item={item.key}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={`state ${isThinking ? "state-running still" : "state-pending"}`}>
          <Brain size={15} aria-hidden="true" />
        </span>
        <span className="tool-name quiet">{isThinking ? "Thinking" : "Thought"}</span>
        <span className="tool-about">{isOpen ? "" : gist(item.text, isThinking)}</span>
        <span className="time">{took}</span>
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {isOpen && (
        <div id={id} className="thought-text">
          <Markdown text={item.text} streaming={isThinking} />
        </div>
      )}
    </div>
  );
});

/** Its first line, or its last words while it grows. */
function gist(text: string, isGrowing: boolean): string {
  // Some models say what it is, which the row says already.
  const line = straight(text)
    .trim()
    .replace(/^thoughts?:\s*/i, "")
    .replace(/\s+/g, " ");
  return isGrowing && line.length > 120 ? `…${line.slice(-120)}` : line.slice(0, 200);
}
