import { ChevronRight } from "lucide-react";
import { memo, useId } from "react";
import { formatDuration } from "../log/displayText";
import { highlightMatches } from "../log/search";
import type { RunView, ToolItem } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { useNow } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";
import { useChat, useExpanded } from "./chatContext";
import { ToolDetails } from "./ToolDetails";

/** Shows a text in which the terms of the current search are highlighted. */
export function SearchHighlight({ text }: { text: string }) {
  const { searchTerms } = useChat();
  const shown = escapeInvisible(text);
  if (searchTerms.length === 0) return shown;
  let at = 0;
  return highlightMatches(shown, searchTerms).map((part) => {
    const key = at;
    at += part.text.length;
    return part.hit ? <mark key={key}>{part.text}</mark> : <span key={key}>{part.text}</span>;
  });
}

interface Props {
  readonly run: RunView;
  readonly tool: ToolItem;
  /** Text that is shown instead of the tool's name and summary. */
  readonly title?: string;
}

/** Whether two sets of props show the same state of a call. Its item also changes whenever its approval does. */
function isSameCall(one: Props, other: Props): boolean {
  return one.tool === other.tool && one.run.runId === other.run.runId;
}

/** One tool call: a line with state, name, main argument and duration, which expands to its details. */
export const ToolRow = memo(function ToolRow({ run, tool, title }: Props) {
  const { focus } = useChat();
  const isFocused = focus === tool.key;
  const [isOpen, setOpen] = useExpanded(tool.key, tool.state === "failed" || isFocused);
  const id = useId();
  return (
    <div className={`tool tool-${tool.state} ${isFocused ? "focused" : ""}`} data-item={tool.key}>
      <button
        type="button"
        className="tool-line"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <StateIcon state={tool.state} />
        <span className="tool-name">
          <SearchHighlight text={title ?? tool.name} />
        </span>
        <span className="tool-about">
          <SearchHighlight text={title === undefined ? tool.summary : ""} />
        </span>
        <ToolTime tool={tool} />
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {isOpen && (
        <div id={id} className="tool-details">
          <ToolDetails run={run} tool={tool} />
        </div>
      )}
    </div>
  );
}, isSameCall);

/** The duration of a call, counting up while it runs. */
function ToolTime({ tool }: { tool: ToolItem }) {
  const isRunning = tool.endedAt === null && tool.state !== "waiting";
  const now = useNow(isRunning);
  if (tool.state === "waiting") return <span className="time">waits for you</span>;
  // Without a visible result the end of the call is not known.
  if (tool.state === "unseen") return <span className="time">No result seen</span>;
  const took = tool.durationMs ?? (tool.endedAt ?? Math.max(now, tool.ranAt)) - tool.ranAt;
  const word = tool.state === "stopped" ? "stopped · " : tool.state === "rejected" ? "rejected · " : "";
  return (
    <span className="time">
      {word}
      {formatDuration(took)}
    </span>
  );
}
