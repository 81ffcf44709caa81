import { useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import type { SessionEntry } from "../wire/api";
import "./sessions.css";

interface Props {
  /** The one to be renamed; null if none is. */
  entry: Pick<SessionEntry, "session_id" | "title"> | null;
  onClose: () => void;
  onRename: (id: string, title: string) => void;
}

/** Renames a conversation from anywhere, also where the list is out of sight. */
export function RenameDialog({ entry, onClose, onRename }: Props) {
  return (
    <Dialog open={entry !== null} onOpenChange={(open) => open || onClose()} title="Rename this conversation">
      {entry && (
        <Fields
          key={entry.session_id}
          title={entry.title}
          onCancel={onClose}
          onDone={(title) => {
            onRename(entry.session_id, title);
            onClose();
          }}
        />
      )}
    </Dialog>
  );
}

function Fields({ title, onDone, onCancel }: { title: string; onDone: (title: string) => void; onCancel: () => void }) {
  const [text, setText] = useState(title);
  const wanted = text.trim();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (wanted) onDone(wanted);
      }}
    >
      <input
        className="sessions-field"
        aria-label="Title"
        maxLength={200}
        value={text}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setText(event.target.value)}
      />
      <footer className="dialog-foot">
        <Button onClick={onCancel}>Cancel</Button>
        <Button look="main" type="submit" disabled={!wanted}>
          Rename
        </Button>
      </footer>
    </form>
  );
}
