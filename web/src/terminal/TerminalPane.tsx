import { ArrowDownToLine, ChevronDown, ChevronUp, Search, SquareTerminal } from "lucide-react";
import { type KeyboardEvent, memo, type RefObject, useEffect, useRef, useState } from "react";
import type { RunView } from "../log/viewModel";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { plainEnd, plainTranscript, TerminalWriter } from "./terminalWriter";
import { XtermScreen } from "./xtermScreen";
import "@xterm/xterm/css/xterm.css";
import "./terminal.css";

interface FindBarProps {
  readonly field: RefObject<HTMLInputElement | null>;
  /** Selects the next match; returns false if there is none. */
  readonly onFind: (text: string, direction: "typed" | "next" | "previous") => boolean;
}

/** The search field of the terminal. */
function FindBar({ field, onFind }: FindBarProps) {
  const [text, setText] = useState("");
  const [isFound, setFound] = useState(true);
  const onInput = (typed: string) => {
    setText(typed);
    setFound(onFind(typed, "typed"));
  };
  const findAgain = (direction: "next" | "previous") => setFound(onFind(text, direction));
  return (
    <div className="terminal-find">
      <Search size={14} aria-hidden="true" />
      <input
        ref={field}
        type="text"
        aria-label="Find in the terminal"
        placeholder="Find"
        value={text}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => onInput(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") findAgain(event.shiftKey ? "previous" : "next");
          if (event.key === "Escape") onInput("");
        }}
      />
      <span className="terminal-matches" aria-live="polite">
        {text !== "" && !isFound && "not found"}
      </span>
      {text !== "" && isFound && (
        <>
          <Button
            variant="quiet"
            aria-label="Previous match"
            title="Previous match"
            onClick={() => findAgain("previous")}
          >
            <ChevronUp size={14} />
          </Button>
          <Button variant="quiet" aria-label="Next match" title="Next match" onClick={() => findAgain("next")}>
            <ChevronDown size={14} />
          </Button>
        </>
      )}
    </div>
  );
}

const MAX_TEXT = 10_000;
const UPDATE_INTERVAL_MS = 1000;

/** The end of the terminal's content as hidden text for screen readers, updated at most once a second. */
const TerminalText = memo(function TerminalText({ runs }: { runs: readonly RunView[] }) {
  const [shown, setShown] = useState(runs);
  const newest = useRef(runs);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  newest.current = runs;
  useEffect(() => {
    if (runs === shown || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setShown(newest.current);
    }, UPDATE_INTERVAL_MS);
  }, [runs, shown]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return <Lines runs={shown} />;
});

const Lines = memo(function Lines({ runs }: { runs: readonly RunView[] }) {
  const last = runs.findLast((run) => run.terminal.length > 0);
  return <pre className="visually-hidden">{last ? plainEnd(last, MAX_TEXT) : ""}</pre>;
});

const MOVES: Record<string, Parameters<XtermScreen["scroll"]>[0]> = {
  PageUp: "page up",
  PageDown: "page down",
  Home: "begin",
  End: "end",
  ArrowUp: -1,
  ArrowDown: 1,
};

/** The terminal pane: all tool calls with their output, results and errors. */
const TerminalPane = memo(function TerminalPane({ runs }: { runs: readonly RunView[] }) {
  const host = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const screen = useRef<XtermScreen | null>(null);
  const writer = useRef<TerminalWriter | null>(null);
  const [isFollowing, setFollowing] = useState(true);
  const [hasSelection, setHasSelection] = useState(false);

  useEffect(() => {
    if (host.current === null) return;
    const made = new XtermScreen(host.current, {
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

  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    delete event.currentTarget.dataset.by;
    const move = MOVES[event.key];
    const isCommand = event.ctrlKey || event.metaKey;
    if (move !== undefined && !isCommand && !event.altKey) screen.current?.scroll(move);
    else if (isCommand && event.key === "f") field.current?.focus();
    else if (isCommand && event.key === "a") screen.current?.selectAll();
    else return;
    event.preventDefault();
  };

  const jumpToEnd = () => {
    screen.current?.scroll("end");
    // The clicked button disappears, so the focus moves to the terminal.
    host.current?.parentElement?.focus({ preventScroll: true });
  };

  const isEmpty = runs.every((run) => run.terminal.length === 0);
  return (
    <div className="terminal-pane">
      <div className="terminal-bar">
        <FindBar field={field} onFind={(text, direction) => screen.current?.find(text, direction) ?? false} />
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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        tabIndex={0}
        onPointerDown={({ currentTarget }) => {
          currentTarget.dataset.by = "pointer";
        }}
        onBlur={({ currentTarget }) => {
          delete currentTarget.dataset.by;
        }}
        onKeyDown={onKeyDown}
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
        <Button className="terminal-now" onClick={jumpToEnd}>
          <ArrowDownToLine size={14} aria-hidden="true" />
          Jump to now
        </Button>
      )}
    </div>
  );
});

export default TerminalPane;
