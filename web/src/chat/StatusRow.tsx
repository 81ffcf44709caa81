import { ChevronRight, type LucideIcon } from "lucide-react";
import { useId } from "react";
import { Markdown } from "../text/Markdown";
import { useChat } from "./context";
import { useOpened } from "./useCollapsed";

interface Props {
  readonly itemKey: string;
  readonly kind: "plan" | "thought";
  readonly icon: LucideIcon;
  readonly title: string;
  /** What it says, in a line, while it is closed. */
  readonly gist: string;
  readonly text: string;
  readonly time?: string;
  readonly isGrowing?: boolean;
  /** Open until the user says otherwise. */
  readonly isOpenAtFirst?: boolean;
}

/** A text beside the work, a thought or a plan: one quiet line that opens. */
export function QuietRow({ itemKey, kind, icon: Icon, title, gist, text, time, ...rest }: Props) {
  const { isGrowing = false, isOpenAtFirst = false } = rest;
  const { focus } = useChat();
  const isFocused = focus === itemKey;
  const [isOpen, setOpen] = useOpened(itemKey, isOpenAtFirst || isFocused);
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
        <span className="tool-about">{isOpen ? "" : gist}</span>
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
