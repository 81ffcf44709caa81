import { Link as LinkIcon } from "lucide-react";
import { memo, useState } from "react";
import { linkTo } from "../app/route";
import { AttachmentCard } from "../files/AttachmentCard";
import type { RunView } from "../log/view";
import { straight } from "../text/invisibleCharacters";
import { CopyButton } from "../ui/CopyButton";
import { api } from "../wire/api";
import { useChat } from "./context";
import { WholeButton } from "./LoadFullButton";

/** What the user asked. It is shown as it was typed. */
export const UserMessage = memo(function UserMessage({ run }: { run: RunView }) {
  const { store } = useChat();
  const [whole, setWhole] = useState<string | null>(null);
  const load = () => api.text(`runs/${run.runId}/input`);
  return (
    <article className="user" aria-label="You asked">
      <div className="user-text" dir="auto">
        {straight(whole ?? run.input)}
      </div>
      {run.inputCut !== null && whole === null && (
        <WholeButton what="the whole message" size={run.inputCut.size} load={load} onWhole={setWhole} />
      )}
      {run.attachments.map((attachment) => (
        <AttachmentCard key={attachment.artifact_id ?? attachment.url ?? attachment.name} attachment={attachment} />
      ))}
      <div className="user-tools">
        <CopyButton text={run.inputCut !== null && whole === null ? load : (whole ?? run.input)} label="Copy message" />
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
