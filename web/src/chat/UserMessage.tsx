import { Link as LinkIcon } from "lucide-react";
import { memo, useState } from "react";
import { linkTo } from "../app/route";
import { AttachmentCard } from "../files/AttachmentCard";
import { bytes } from "../log/readable";
import type { RunView } from "../log/view";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/CopyButton";
import { straight } from "../text/visible";
import { api } from "../wire/api";
import { useChat } from "./context";

/** What the user asked. It is shown as it was typed. */
export const UserMessage = memo(function UserMessage({ run }: { run: RunView }) {
  const { store } = useChat();
  const [whole, setWhole] = useState<string | null>(null);
  return (
    <article className="user" aria-label="You asked">
      <div className="user-text">{straight(whole ?? run.input)}</div>
      {run.inputCut !== null && whole === null && (
        <Button onClick={async () => setWhole(await api.text(`runs/${run.runId}/input`))}>
          Show the whole message ({bytes(run.inputCut.size)})
        </Button>
      )}
      {run.attachments.map((attachment) => (
        <AttachmentCard key={attachment.artifact_id ?? attachment.url ?? attachment.name} attachment={attachment} />
      ))}
      <div className="user-tools">
        <CopyButton
          text={
            run.inputCut !== null && whole === null ? () => api.text(`runs/${run.runId}/input`) : (whole ?? run.input)
          }
          label="Copy message"
        />
        <a
          className="button button-quiet"
          href={linkTo({ sessionId: store.sessionId, runId: run.runId })}
          title="Link to this turn"
          aria-label="Link to this turn"
        >
          <LinkIcon size={14} aria-hidden="true" />
        </a>
      </div>
    </article>
  );
});
