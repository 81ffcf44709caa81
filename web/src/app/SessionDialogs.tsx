import type { SessionStore } from "../client/session";
import type { SessionList } from "../client/sessionList";
import { DeleteDialog, RenameDialog } from "../sessions/SessionDialogs";

interface Props {
  readonly list: SessionList;
  readonly store: SessionStore | null;
  readonly title: string;
  readonly asked: "rename" | "delete" | null;
  onClose(): void;
  onRemoved(sessionId: string): void;
}

/** What is asked before the shown conversation gets another name, or goes. */
export function SessionDialogs({ list, store, title, asked, onClose, onRemoved }: Props) {
  const state = store?.getSnapshot().info?.state ?? "idle";
  const entry = store === null ? null : { session_id: store.sessionId, title, state };
  const rename = (id: string, wanted: string) =>
    list.rename(id, wanted).catch((reason: Error) => store?.note(`Not renamed: ${reason.message}`));
  const remove = (id: string) =>
    list.remove(id).then(
      () => onRemoved(id),
      (reason: Error) => store?.note(`Not deleted: ${reason.message}`),
    );
  return (
    <>
      <RenameDialog entry={asked === "rename" ? entry : null} onClose={onClose} onRename={rename} />
      <DeleteDialog entry={asked === "delete" ? entry : null} onClose={onClose} onDelete={remove} />
    </>
  );
}
