import type { RunView } from "../log/view";
import { escapeInvisible } from "../text/invisibleCharacters";

/** Tells those who cannot see the page what matters: that the agent works, asks, or is done. */
export function Announcer({ run }: { run: RunView | undefined }) {
  return (
    <p className="visually-hidden" role="status">
      {run === undefined ? "" : said(run)}
    </p>
  );
}

function said(run: RunView): string {
  switch (run.state) {
    case "running":
      return "The agent works.";
    case "waiting":
      return "The agent asks for a decision.";
    case "finished":
      return "The agent has answered.";
    case "failed":
      return `The run failed: ${escapeInvisible(run.failure?.message ?? "")}`;
    case "cancelled":
      return "The agent was stopped.";
  }
}
