import { memo, useSyncExternalStore } from "react";
import type { Pending } from "../client/outbox";
import { Button } from "../ui/Button";
import { useChat } from "./context";

/** A message that is no run yet: on its way, waiting for its turn, or refused. */
export const PendingMessage = memo(function PendingMessage({ pending }: { pending: Pending }) {
  const { store } = useChat();
  const isBehind = useSyncExternalStore(store.subscribe, () =>
    store.getSnapshot().view.runs.some((run) => run.endedAt === null),
  );
  const word = pending.error !== null ? `Not sent: ${pending.error}` : isBehind ? "Waits for its turn" : "Sending …";
  return (
    <article className="user user-pending" aria-label="Message that waits">
      <div className="user-text">{pending.text}</div>
      <p className={pending.error === null ? "quiet" : "tool-error"}>
        {word}
        {pending.error !== null && (
          <Button look="quiet" onClick={() => store.retry(pending)}>
            Try again
          </Button>
        )}
        <Button look="quiet" onClick={() => store.withdraw(pending)}>
          Withdraw
        </Button>
      </p>
    </article>
  );
});
