import { PlugZap, Trash2, TriangleAlert } from "lucide-react";
import type { LiveSession, SessionStore } from "../client/session";
import { formatDuration } from "../log/format";
import { Button } from "../ui/Button";
import { useNow } from "../ui/useNow";

/** Says when the page is not connected, and since when; and what the server refused. */
export function Banner({ live, store }: { live: LiveSession; store: SessionStore }) {
  const { link, notice } = live;
  if (link.kind === "lost")
    return <Lost since={link.since} reason={link.reason ?? ""} onTry={() => store.reconnect()} />;
  if (link.kind === "ended")
    return (
      <p className="banner banner-bad" role="alert">
        {link.why === "deleted" ? (
          <Trash2 size={15} aria-hidden="true" />
        ) : (
          <TriangleAlert size={15} aria-hidden="true" />
        )}
        {link.why === "deleted"
          ? "This conversation was deleted. What you see is what was there."
          : `The server does not show this conversation: ${notice ?? link.reason}`}
        {link.why === "refused" && (
          <Button variant="quiet" onClick={() => store.reconnect()}>
            Try again
          </Button>
        )}
      </p>
    );
  if (notice === null) return null;
  return (
    <p className="banner banner-bad" role="alert">
      <TriangleAlert size={15} aria-hidden="true" />
      {notice}
      <Button variant="quiet" onClick={() => store.note(null)}>
        Dismiss
      </Button>
    </p>
  );
}

/** In place of a conversation that nobody could be asked for yet. */
export function Unreachable() {
  return (
    <p className="banner" role="status">
      <PlugZap size={15} aria-hidden="true" />
      The server cannot be reached; trying again.
    </p>
  );
}

function Lost({ since, reason, onTry }: { since: number; reason: string; onTry(): void }) {
  useNow();
  const ago = formatDuration(Date.now() - since);
  return (
    <p className="banner" role="status">
      <PlugZap size={15} aria-hidden="true" />
      <span>
        Disconnected since {new Date(since).toLocaleTimeString()} <span aria-hidden="true">({ago})</span>
        {reason === "" ? "" : `: ${reason.replace(/\.$/, "")}`}. It comes back by itself.
      </span>
      <Button variant="quiet" onClick={onTry}>
        Try now
      </Button>
    </p>
  );
}
