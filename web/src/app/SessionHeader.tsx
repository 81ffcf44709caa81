import { Menu as MenuIcon, PanelRight, Search } from "lucide-react";
import { useState } from "react";
import { formatDuration } from "../log/displayText";
import type { Progress, RunView } from "../log/viewModel";
import { RenameField } from "../sessions/SessionRows";
import { useSessionActions } from "../sessions/useSessionActions";
import { escapeBidi } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useElapsed } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";
import { useLayout } from "./LayoutContext";
import { useNavigation } from "./NavigationContext";
import { useCurrentSession } from "./SessionContext";

/** The line above the conversation: title, agent and duration of the newest run. */
export function SessionHeader() {
  const { live, isMissing, newest, title, agent, showNotice } = useCurrentSession();
  const { setDrawerOpen } = useNavigation();
  const { hasSidePanel, toggleSidePanel, isSearching, setSearching } = useLayout();
  const { rename } = useSessionActions(showNotice);
  return (
    <header className="session-head">
      <Button variant="quiet" className="only-narrow" aria-label="Conversations" onClick={() => setDrawerOpen(true)}>
        <MenuIcon size={18} aria-hidden="true" />
      </Button>
      {live === null ? (
        <h1 className="session-title ellipsis">{isMissing ? "Not found" : "New conversation"}</h1>
      ) : (
        <Title title={title} onRename={(wanted) => rename(live.sessionId, wanted)} />
      )}
      <span className="session-agent">{agent}</span>
      {newest !== undefined && <RunClock run={newest} />}
      {live !== null && (
        <Button
          variant="quiet"
          aria-label="Search in steps and results"
          title="Search in steps and results ( / )"
          onClick={() => setSearching(!isSearching)}
        >
          <Search size={16} aria-hidden="true" />
        </Button>
      )}
      {live !== null && (
        <Button
          variant="quiet"
          className="only-wide"
          aria-label={hasSidePanel ? "Hide the side" : "Show the side"}
          aria-pressed={hasSidePanel}
          onClick={toggleSidePanel}
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
  return (
    <span className="session-clock">
      <StateIcon state={STATES[run.state]} />
      {formatDuration(useElapsed(run.startedAt, run.endedAt))}
    </span>
  );
}

function Title({ title, onRename }: { title: string; onRename(title: string): void }) {
  const [isEditing, setEditing] = useState(false);
  if (isEditing)
    return (
      <RenameField
        className="session-title session-title-edit"
        title={title}
        onRename={onRename}
        onClose={() => setEditing(false)}
      />
    );
  return (
    <h1 className="session-title ellipsis">
      <button type="button" className="ellipsis" title="Rename" onClick={() => setEditing(true)}>
        {escapeBidi(title) || "Untitled"}
      </button>
    </h1>
  );
}
