import { memo } from "react";
import { callLine, formatDuration, formatTokens, plural } from "../log/displayText";
import { type RunView, runningTools, tokensOfRun } from "../log/viewModel";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { useElapsed } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";

const LIMITS: Record<string, string> = { max_steps: "The agent reached its step limit; this is its answer so far." };

/** The last row of a run: its outcome, duration and tokens, or its current activity while it runs. */
export const RunEnd = memo(function RunEnd({ run }: { run: RunView }) {
  if (run.endedAt === null) return <RunActivity run={run} />;
  const tokens = tokensOfRun(run);
  const cost = [
    formatDuration(run.endedAt - run.startedAt),
    run.tools > 0 ? plural(run.tools, "tool") : "",
    tokens.input + tokens.output > 0 ? `${formatTokens(tokens.input)} in, ${formatTokens(tokens.output)} out` : "",
  ];
  return (
    <footer className="run-end">
      {run.failure !== null && (
        <div className="run-failure" role="note">
          <StateIcon state="failed" />
          <div>
            <strong>{run.failure.code === "interrupted" ? "Interrupted" : "The run failed"}</strong>
            <p>{escapeInvisible(run.failure.message)}</p>
            <p className="quiet">
              {run.failure.code}
              {run.failure.errorId !== "" && ` · ${run.failure.errorId} in the server's log`}
            </p>
          </div>
        </div>
      )}
      {run.state === "cancelled" && (
        <p className="run-stopped">
          <StateIcon state="stopped" /> {run.reason === "" ? "Stopped" : `Stopped: ${escapeBidi(run.reason)}`}
        </p>
      )}
      {run.code !== "" && <p className="run-stopped">{LIMITS[run.code] ?? `It ended with: ${run.code}`}</p>}
      <p className="run-cost">{cost.filter((part) => part !== "").join(" · ")}</p>
    </footer>
  );
});

function RunActivity({ run }: { run: RunView }) {
  const elapsed = useElapsed(run.startedAt, run.endedAt);
  const busy = runningTools(run);
  const last = run.items.at(-1);
  const main = run.agents.get("");
  const activity =
    run.state === "waiting"
      ? "Waits for you"
      : busy.length > 0
        ? busy.map(callLine).join(", ")
        : last?.kind === "text" && last.endedAt === null
          ? "Writing"
          : main?.status || "Thinking";
  return (
    <p className="alive" aria-live="off">
      <StateIcon state={run.state === "waiting" ? "waiting" : "running"} />
      <span className="ellipsis">{escapeInvisible(activity)}</span>
      <span className="time">{formatDuration(elapsed)}</span>
    </p>
  );
}
