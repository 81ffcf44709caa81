import { memo, useState } from "react";
import { formatDuration, formatTokens, plural } from "../log/displayText";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { StateIcon } from "../ui/StateIcon";
import type { AgentSummary, Summary } from "./agentSummary";

const MAX_COLLAPSED = 6;

/** A table with the time, tool calls and tokens of each agent. */
export const AgentTable = memo(function AgentTable({ summary }: { summary: Summary }) {
  const [all, setAll] = useState(false);
  const { agents, tokens } = summary;
  const shown = all || agents.length <= MAX_COLLAPSED + 1 ? agents : agents.slice(0, MAX_COLLAPSED);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what may scroll must be reachable by keyboard
    <section className="timeline-agents" aria-label="Agents" tabIndex={0}>
      <table>
        <caption className="visually-hidden">Time, tools and tokens of each agent</caption>
        <thead>
          <tr>
            <th scope="col">Agent</th>
            <th scope="col" className="timeline-wide">
              Share of the run
            </th>
            <th scope="col">Time</th>
            <th scope="col">Tools</th>
            <th scope="col">Tokens in</th>
            <th scope="col">Out</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((agent) => (
            <AgentRow key={agent.agentId} agent={agent} />
          ))}
        </tbody>
        {agents.length > 1 && (
          <tfoot>
            <tr>
              <th scope="row">{plural(agents.length, "agent")}</th>
              <td className="timeline-wide" />
              <td>{formatDuration(summary.ms)}</td>
              <td>{summary.tools.toLocaleString("en")}</td>
              <td>{tokenCount(tokens.input)}</td>
              <td>{tokenCount(tokens.output)}</td>
            </tr>
          </tfoot>
        )}
      </table>
      {agents.length > MAX_COLLAPSED + 1 && (
        <Button variant="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer agents" : `Show all ${agents.length} agents`}
        </Button>
      )}
    </section>
  );
});

function AgentRow({ agent }: { agent: AgentSummary }) {
  const share = (
    <span className="timeline-share" title={`${Math.round(agent.share * 100)} % of the run`}>
      <span
        className={`timeline-share-part timeline-is-${agent.state}`}
        style={{ marginInlineStart: `${agent.offset * 100}%`, width: `${agent.share * 100}%` }}
      />
    </span>
  );
  return (
    <tr>
      <th scope="row">
        <span className="timeline-agent" style={{ paddingInlineStart: Math.min(agent.depth, 5) * 14 }}>
          <StateIcon state={agent.state} size={14} />
          <span className="timeline-agent-name">{escapeInvisible(agent.name)}</span>
          {agent.model && <span className="timeline-agent-model">{escapeInvisible(agent.model)}</span>}
        </span>
        <span className="timeline-narrow">{share}</span>
      </th>
      <td className="timeline-wide">{share}</td>
      <td>{formatDuration(agent.ms)}</td>
      <td>{agent.tools.toLocaleString("en")}</td>
      <td>{tokenCount(agent.tokens.input)}</td>
      <td>{tokenCount(agent.tokens.output)}</td>
    </tr>
  );
}

/** A number of tokens; a dash for 0, because the framework may not report tokens. */
function tokenCount(tokens: number): string {
  return tokens > 0 ? formatTokens(tokens) : "–";
}
