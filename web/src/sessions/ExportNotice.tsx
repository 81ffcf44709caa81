import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { sessionExport } from "../client/sessionExport";
import { Button } from "../ui/Button";
import "./sessions.css";

/** How far an export has come, or why it failed; nothing if there is none. */
export function ExportNotice() {
  const state = useSyncExternalStore(sessionExport.subscribe, sessionExport.getSnapshot);
  return (
    <div role="status">
      {state && (
        <div className={`sessions-notice ${state.error ? "sessions-bad" : ""}`}>
          <span className="sessions-notice-words">
            {state.error ? `Export failed: ${state.error}` : `Exporting “${state.title}”`}
          </span>
          <Button look="quiet" aria-label={state.error ? "Dismiss" : "Stop the export"} onClick={sessionExport.cancel}>
            <X size={14} aria-hidden="true" />
          </Button>
          {!state.error && <progress aria-label="Export" value={state.share} max={1} />}
        </div>
      )}
    </div>
  );
}
