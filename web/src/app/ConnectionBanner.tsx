import { PlugZap, Trash2, TriangleAlert } from "lucide-react";
import type { LiveSession, SessionStore } from "../client/sessionStore";
import { formatDuration } from "../log/displayText";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";

/** A banner that shows that the connection to the server is lost or ended, or the server's last error message. */
export function ConnectionBanner({ live: { connection, notice }, store }: { live: LiveSession; store: SessionStore }) {
  if (connection.kind === "lost")
    return (
      <Banner icon={PlugZap}>
        <Disconnected since={connection.since} reason={connection.reason ?? ""} />
        <Button variant="quiet" onClick={() => store.reconnect()}>
          Try now
        </Button>
      </Banner>
    );
  if (connection.kind === "ended" && connection.why === "deleted")
    return (
      <Banner icon={Trash2} isError>
        This conversation was deleted. What you see is what was there.
      </Banner>
    );
  if (connection.kind === "ended")
    return (
      <Banner icon={TriangleAlert} isError>
        The server does not show this conversation: {notice ?? connection.reason}
        <Button variant="quiet" onClick={() => store.reconnect()}>
          Try again
        </Button>
      </Banner>
    );
  if (notice === null) return null;
  return (
    <Banner icon={TriangleAlert} isError>
      {notice}
      <Button variant="quiet" onClick={() => store.showNotice(null)}>
        Dismiss
      </Button>
    </Banner>
  );
}

function Disconnected({ since, reason }: { since: number; reason: string }) {
  useNow();
  return (
    <span>
      Disconnected since {new Date(since).toLocaleTimeString()}{" "}
      <span aria-hidden="true">({formatDuration(Date.now() - since)})</span>
      {reason === "" ? "" : `: ${reason.replace(/\.$/, "")}`}. It comes back by itself.
    </span>
  );
}
