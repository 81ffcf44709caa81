import { Link as LinkIcon } from "lucide-react";
import { memo, useState, useSyncExternalStore } from "react";
import { linkTo } from "../app/route";
import { api } from "../client/api";
import type { OutboxMessage } from "../client/outbox";
import { AttachmentCard } from "../files/FileCard";
import { inputText } from "../form/agentFields";
import { valueText } from "../log/displayText";
import type { RunView } from "../log/viewModel";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { useChat } from "./chatContext";
import { LoadCompleteButton } from "./LoadCompleteButton";

/** A message of the user as plain text, with its attachments. */
export const UserMessage = memo(function UserMessage({ run }: { run: RunView }) {
  const { store } = useChat();
  const [full, setFull] = useState<string | null>(null);
  const load = () => api.text(`runs/${run.runId}/input`);
  return (
    <article className="user" aria-label="You asked">
      <div className="user-text" dir="auto">
        {escapeBidi(full ?? run.input)}
      </div>
      <InputValues run={run} />
      {run.inputTruncation !== null && full === null && (
        <LoadCompleteButton what="the whole message" size={run.inputTruncation.size} load={load} onLoaded={setFull} />
      )}
      {run.attachments.map((attachment) => (
        <AttachmentCard key={attachment.artifact_id ?? attachment.url ?? attachment.name} attachment={attachment} />
      ))}
      <div className="user-tools">
        <CopyButton
          text={run.inputTruncation !== null && full === null ? load : (full ?? run.input)}
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

/** The values of an input object, unless the message already names them. */
function InputValues({ run }: { run: RunView }) {
  const values = Object.entries(run.inputValues ?? {});
  if (values.every(([name]) => run.input.includes(name))) return null;
  return (
    <dl className="user-values" aria-label="Input values">
      {values.map(([name, value]) => (
        <div key={name}>
          <dt>{escapeInvisible(name)}</dt>
          <dd dir="auto">{escapeBidi(valueText(value))}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A message of the user without a run: it is being sent, is queued, or was refused. */
export const PendingMessage = memo(function PendingMessage({ message }: { message: OutboxMessage }) {
  const { store } = useChat();
  const isBehind = useSyncExternalStore(store.subscribe, () =>
    store.getSnapshot().view.runs.some((run) => run.endedAt === null),
  );
  const word = message.error !== null ? `Not sent: ${message.error}` : isBehind ? "Waits for its turn" : "Sending …";
  return (
    <article className="user user-pending" aria-label="Message that waits">
      <div className="user-text">{message.text}</div>
      {message.values?.input !== undefined && !message.isForm && (
        <p className="quiet">{inputText(message.values.input)}</p>
      )}
      <p className={message.error === null ? "quiet" : "tool-error"}>
        {word}
        {message.error !== null && (
          <Button variant="quiet" onClick={() => store.retry(message)}>
            Try again
          </Button>
        )}
        <Button variant="quiet" onClick={() => store.withdraw(message)}>
          Withdraw
        </Button>
      </p>
    </article>
  );
});
