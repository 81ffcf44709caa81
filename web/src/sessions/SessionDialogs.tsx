import { AlertDialog } from "radix-ui";
import { type RefObject, useRef, useState } from "react";
import type { SessionEntry } from "../client/api";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import "./sessions.css";

interface RenameProps {
  /** The session; null while the dialog is closed. */
  entry: Pick<SessionEntry, "session_id" | "title"> | null;
  onClose: () => void;
  onRename: (id: string, title: string) => void;
}

/** A dialog that renames a session. */
export function RenameDialog({ entry, onClose, onRename }: RenameProps) {
  const field = useRef<HTMLInputElement>(null);
  const done = (title: string) => {
    if (entry && title !== entry.title) onRename(entry.session_id, title);
    onClose();
  };
  return (
    <Dialog
      open={entry !== null}
      onOpenChange={(open) => open || onClose()}
      title="Rename this conversation"
      initialFocus={field}
    >
      {entry && <Fields field={field} title={entry.title} onDone={done} onCancel={onClose} />}
    </Dialog>
  );
}

interface FieldsProps {
  field: RefObject<HTMLInputElement | null>;
  title: string;
  onDone: (title: string) => void;
  onCancel: () => void;
}

function Fields({ field, title, onDone, onCancel }: FieldsProps) {
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
        ref={field}
        className="sessions-field"
        aria-label="Title"
        maxLength={200}
        value={text}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setText(event.target.value)}
      />
      <footer className="dialog-foot">
        <Button onClick={onCancel}>Cancel</Button>
        <Button variant="main" type="submit" disabled={!wanted}>
          Rename
        </Button>
      </footer>
    </form>
  );
}

interface DeleteProps {
  /** The session; null while the dialog is closed. */
  entry: Pick<SessionEntry, "session_id" | "title" | "state"> | null;
  onClose: () => void;
  onDelete: (id: string) => void;
}

/** A dialog that asks before a session is deleted. Cancel has the focus, so that Enter does not delete. */
export function DeleteDialog({ entry, onClose, onDelete }: DeleteProps) {
  return (
    <AlertDialog.Root open={entry !== null} onOpenChange={(open) => open || onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className="dialog-veil" />
        <AlertDialog.Content className="dialog dialog-confirm">
          <AlertDialog.Title className="dialog-title">Delete this conversation?</AlertDialog.Title>
          <AlertDialog.Description className="dialog-description">
            “{entry?.title || "New conversation"}” and all its results and files will be gone for good.
            {entry?.state === "processing" && " The agent is still at work and will be stopped."}
          </AlertDialog.Description>
          <footer className="dialog-foot">
            <AlertDialog.Cancel asChild>
              <Button>Cancel</Button>
            </AlertDialog.Cancel>
            <AlertDialog.Action asChild>
              <Button variant="danger" onClick={() => entry && onDelete(entry.session_id)}>
                Delete
              </Button>
            </AlertDialog.Action>
          </footer>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
