import { Menu as MenuIcon, PanelRight, Search } from "lucide-react";
import { useState } from "react";
import type { LiveSession } from "../client/session";
import { formatDuration } from "../log/format";
import type { Progress, RunView } from "../log/view";
import { escapeBidi } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { StateIcon } from "../ui/StateIcon";
import { useNow } from "../ui/useNow";

interface Props {
  readonly live: LiveSession | null;
  /** The address names no session that there is. */
  readonly isMissing: boolean;
  readonly title: string;
  readonly agent: string;
  readonly hasSide: boolean;
  onRename(title: string): void;
  onMenu(): void;
  onSearch(): void;
  onSide(): void;
}

/** The line above the conversation: what it is, who works, since when. */
export function SessionHeader(props: Props) {
  const { live, title, agent } = props;
  const run = live?.view.runs[live.view.runs.length - 1];
  return (
    <header className="session-head">
      <Button variant="quiet" className="only-narrow" aria-label="Conversations" onClick={props.onMenu}>
        <MenuIcon size={18} aria-hidden="true" />
      </Button>
      {live === null ? (
        <h1 className="session-title">{props.isMissing ? "Not found" : "New conversation"}</h1>
      ) : (
        <Title title={title} onRename={props.onRename} />
      )}
      <span className="session-agent">{agent}</span>
      {run !== undefined && <RunClock run={run} />}
      {live !== null && (
        <Button
          variant="quiet"
          aria-label="Search in steps and results"
          title="Search in steps and results ( / )"
          onClick={props.onSearch}
        >
          <Search size={16} aria-hidden="true" />
        </Button>
      )}
      {live !== null && (
        <Button
          variant="quiet"
          className="only-wide"
          aria-label={props.hasSide ? "Hide the side" : "Show the side"}
          aria-pressed={props.hasSide}
          onClick={props.onSide}
        >
          <PanelRight size={16} aria-hidden="true" />
        </Button>
      )}
    </header>
  );
}

const STATES: Record<RunView["state"], Progress> = {
  running: "running",
  waiting: "waiting",
  finished: "done",
  failed: "failed",
  cancelled: "stopped",
};

function RunClock({ run }: { run: RunView }) {
  const now = useNow(run.endedAt === null);
  return (
    <span className="session-clock">
      <StateIcon state={STATES[run.state]} />
      {formatDuration((run.endedAt ?? Math.max(now, run.startedAt)) - run.startedAt)}
    </span>
  );
}

function Title({ title, onRename }: { title: string; onRename(title: string): void }) {
  const [draft, setDraft] = useState<string | null>(null);
  const save = () => {
    if (draft !== null && draft.trim() !== "" && draft.trim() !== title) onRename(draft.trim());
    setDraft(null);
  };
  if (draft === null)
    return (
      <h1 className="session-title">
        <button type="button" title="Rename" onClick={() => setDraft(title)}>
          {escapeBidi(title) || "Untitled"}
        </button>
      </h1>
    );
  return (
    <input
      className="session-title session-title-edit"
      aria-label="Title"
      // biome-ignore lint/a11y/noAutofocus: the user has just asked to type here
      autoFocus
      value={draft}
      maxLength={200}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.key === "Enter") save();
        if (event.key === "Escape") {
          event.stopPropagation();
          setDraft(null);
        }
      }}
    />
  );
}
