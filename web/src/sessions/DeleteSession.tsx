import { ConfirmDialog } from "../ui/ConfirmDialog";
import type { SessionEntry } from "../wire/api";

interface Props {
  /** The one to be deleted; null if none is. */
  entry: Pick<SessionEntry, "session_id" | "title" | "state"> | null;
  onClose: () => void;
  onDelete: (id: string) => void;
}

/** Asks before a conversation is deleted. */
export function DeleteSession({ entry, onClose, onDelete }: Props) {
  return (
    <ConfirmDialog
      open={entry !== null}
      onOpenChange={(open) => open || onClose()}
      title="Delete this conversation?"
      confirm="Delete"
      danger
      onConfirm={() => entry && onDelete(entry.session_id)}
    >
      “{entry?.title || "New conversation"}” and all its results and files will be gone for good.
      {entry?.state === "processing" && " The agent is still at work and will be stopped."}
    </ConfirmDialog>
  );
}
