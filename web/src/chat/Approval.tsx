import { PauseCircle } from "lucide-react";
import { memo, useEffect, useId, useState } from "react";
import { argsText, bytes, duration } from "../log/readable";
import type { ApprovalItem, Args, RunView } from "../log/view";
import { Button } from "../parts/Button";
import { useNow } from "../parts/useNow";
import { CodeBlock } from "../text/CodeBlock";
import { Value } from "../text/Value";
import { api } from "../wire/api";
import type { JsonObject } from "../wire/events";
import { useChat } from "./context";
import "./approval.css";
import { visible } from "../text/visible";

/** The agent asks before it acts: approve, change what it will do, or reject. */
export const Approval = memo(function Approval({ run, asked }: { run: RunView; asked: ApprovalItem }) {
  const { store, deciding } = useChat();
  const [mode, setMode] = useState<"ask" | "edit" | "reject">("ask");
  const args = useWholeArgs(run, asked);
  const isSent = deciding.has(asked.approvalId);
  const may = (decision: "approve" | "edit" | "reject") => asked.decisions.includes(decision);
  const agent = run.agents.get(asked.agentId);
  return (
    <section className="approval" aria-label={`Approve ${visible(asked.name)}?`} data-item={asked.key}>
      <header className="approval-head">
        <PauseCircle size={16} aria-hidden="true" />
        <strong>Approve {visible(asked.name)}?</strong>
        {agent !== undefined && agent.agentId !== "" && <span className="quiet">asked by {visible(agent.name)}</span>}
        <Expiry asked={asked} />
      </header>
      {mode === "edit" ? (
        <EditArgs
          args={args}
          isSent={isSent}
          onCancel={() => setMode("ask")}
          onSend={(edited) => store.decide(asked, "edit", { args: edited })}
        />
      ) : (
        <>
          <ShownArgs args={args} cut={asked.argsCut !== null && args === asked.args ? asked.argsCut.size : 0} />
          {mode === "reject" ? (
            <RejectReason
              isSent={isSent}
              onCancel={() => setMode("ask")}
              onSend={(reason) => store.decide(asked, "reject", { reason })}
            />
          ) : (
            <div className="approval-buttons">
              {may("approve") && (
                <Button look="main" disabled={isSent} onClick={() => store.decide(asked, "approve")}>
                  Approve
                </Button>
              )}
              {may("edit") && (
                <Button disabled={isSent} onClick={() => setMode("edit")}>
                  Edit
                </Button>
              )}
              {may("reject") && (
                <Button look="danger" disabled={isSent} onClick={() => setMode("reject")}>
                  Reject
                </Button>
              )}
              {isSent && <span className="quiet">Sent …</span>}
            </div>
          )}
        </>
      )}
    </section>
  );
});

/** Long arguments come as a preview: nobody should agree to what they have not been able to read. */
function useWholeArgs(run: RunView, asked: ApprovalItem): Args {
  const [args, setArgs] = useState(asked.args);
  useEffect(() => {
    if (asked.argsCut === null) return;
    const leaving = new AbortController();
    api.approval(run.runId, asked.approvalId, leaving.signal).then(
      (whole) => setArgs(whole.args),
      () => {},
    );
    return () => leaving.abort();
  }, [run.runId, asked.approvalId, asked.argsCut]);
  return args;
}

function ShownArgs({ args, cut }: { args: Args; cut: number }) {
  const code = typeof args === "string" ? null : args.code;
  return (
    <>
      {typeof code === "string" && Object.keys(args).length === 1 ? (
        <CodeBlock code={code} language="python" />
      ) : (
        <Value value={args} />
      )}
      {cut > 0 && <p className="quiet">Only the beginning is shown, of {bytes(cut)}.</p>}
    </>
  );
}

function Expiry({ asked }: { asked: ApprovalItem }) {
  const now = useNow(asked.expiresAt !== null);
  if (asked.expiresAt === null) return null;
  const left = asked.expiresAt - now;
  return <span className="time">{left > 0 ? `${duration(left)} left` : "expired"}</span>;
}

interface EditProps {
  readonly args: Args;
  readonly isSent: boolean;
  onCancel(): void;
  onSend(args: JsonObject): void;
}

function EditArgs({ args, isSent, onCancel, onSend }: EditProps) {
  const [text, setText] = useState(() => argsText(args));
  const [wrong, setWrong] = useState<string | null>(null);
  const id = useId();
  const send = () => {
    const parsed = parseArgs(text);
    if (typeof parsed === "string") setWrong(parsed);
    else onSend(parsed);
  };
  return (
    <>
      <label className="unseen" htmlFor={id}>
        New arguments as JSON
      </label>
      <textarea
        id={id}
        className="approval-editor"
        value={text}
        rows={Math.min(16, text.split("\n").length + 1)}
        spellCheck={false}
        onChange={(event) => {
          setText(event.target.value);
          setWrong(null);
        }}
      />
      {wrong !== null && (
        <p className="tool-error" role="alert">
          {wrong}
        </p>
      )}
      <div className="approval-buttons">
        <Button look="main" disabled={isSent} onClick={send}>
          Approve with changes
        </Button>
        <Button look="quiet" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </>
  );
}

/** The object, or what is wrong with the text. */
function parseArgs(text: string): JsonObject | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
    return 'Arguments are a JSON object, like {"path": "report.md"}.';
  } catch (error) {
    return `This is no valid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function RejectReason(props: { isSent: boolean; onCancel(): void; onSend(reason: string): void }) {
  const [reason, setReason] = useState("");
  const id = useId();
  return (
    <form
      className="approval-buttons"
      onSubmit={(event) => {
        event.preventDefault();
        props.onSend(reason.trim());
      }}
    >
      <label className="unseen" htmlFor={id}>
        Why not (the agent reads it)
      </label>
      <input
        id={id}
        className="approval-reason"
        placeholder="Why not? The agent reads it (may be left out)"
        value={reason}
        maxLength={500}
        onChange={(event) => setReason(event.target.value)}
      />
      <Button look="danger" type="submit" disabled={props.isSent}>
        Reject
      </Button>
      <Button look="quiet" onClick={props.onCancel}>
        Cancel
      </Button>
    </form>
  );
}
