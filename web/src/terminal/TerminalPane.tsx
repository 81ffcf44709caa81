import "@xterm/xterm/css/xterm.css";
import { ArrowDownToLine, SquareTerminal } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import type { RunView } from "../log/view";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { Find } from "./FindBar";
import { TerminalText } from "./TerminalText";
import { plainTranscript, TerminalWriter } from "./transcript";
import { Screen } from "./xtermScreen";
import "./terminal.css";

const MOVES: Record<string, Parameters<Screen["scroll"]>[0]> = {
  PageUp: "page up",
  PageDown: "page down",
  Home: "begin",
  End: "end",
  ArrowUp: -1,
  ArrowDown: 1,
};

/** What the tools print, live. */
const TerminalPane = memo(function TerminalPane({ runs }: { runs: readonly RunView[] }) {
  const host = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const screen = useRef<Screen | null>(null);
  const writer = useRef<TerminalWriter | null>(null);
  const [isFollowing, setFollowing] = useState(true);
  const [hasSelection, setHasSelection] = useState(false);

  useEffect(() => {
    if (host.current === null) return;
    const made = new Screen(host.current, {
      onFollow: setFollowing,
      onSelect: setHasSelection,
    });
    screen.current = made;
    writer.current = new TerminalWriter();
    return () => {
      made.dispose();
      screen.current = null;
    };
  }, []);

  useEffect(() => {
    if (writer.current) screen.current?.write(writer.current.next(runs));
  }, [runs]);

  const press = (event: KeyboardEvent<HTMLElement>) => {
    delete event.currentTarget.dataset.by;
    const move = MOVES[event.key];
    const isCommand = event.ctrlKey || event.metaKey;
    if (move !== undefined && !isCommand && !event.altKey) screen.current?.scroll(move);
    else if (isCommand && event.key === "f") field.current?.focus();
    else if (isCommand && event.key === "a") screen.current?.selectAll();
    else return;
    event.preventDefault();
  };

  const jump = () => {
    screen.current?.scroll("end");
    // The button goes away; the keys are to be of use all the same.
    host.current?.parentElement?.focus({ preventScroll: true });
  };

  const isEmpty = runs.every((run) => run.terminal.length === 0);
  return (
    <div className="terminal-pane">
      <div className="terminal-bar">
        <Find field={field} onFind={(text, direction) => screen.current?.find(text, direction) ?? false} />
        {hasSelection && (
          <span className="terminal-copy">
            selection
            <CopyButton label="Copy the selection" text={() => screen.current?.selection ?? ""} />
          </span>
        )}
        <CopyButton label="Copy all as plain text" text={() => plainTranscript(runs)} />
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a region that takes keys has to be focusable */}
      <div
        className="terminal-screen"
        role="region"
        aria-label="Terminal output"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to get there
        tabIndex={0}
        onPointerDown={({ currentTarget }) => {
          currentTarget.dataset.by = "pointer";
        }}
        onBlur={({ currentTarget }) => {
          delete currentTarget.dataset.by;
        }}
        onKeyDown={press}
        onCopy={(event) => {
          const selection = screen.current?.selection;
          if (!selection) return;
          event.clipboardData.setData("text/plain", selection);
          event.preventDefault();
        }}
      >
        <div className="terminal-host" ref={host} aria-hidden="true" />
        <TerminalText runs={runs} />
      </div>
      {isEmpty && (
        <p className="terminal-empty">
          <SquareTerminal size={20} aria-hidden="true" />
          Nothing has been printed yet
        </p>
      )}
      {!isFollowing && !isEmpty && (
        <Button className="terminal-now" onClick={jump}>
          <ArrowDownToLine size={14} aria-hidden="true" />
          Jump to now
        </Button>
      )}
    </div>
  );
});

export default TerminalPane;
