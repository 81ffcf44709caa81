import { ChevronRight } from "lucide-react";
import { memo, useId, useState } from "react";
import { callLine, formatDuration, plural } from "../log/displayText";
import { type AgentView, type Item, type RunView, startedAgents } from "../log/viewModel";
import { Button } from "../ui/Button";
import { useElapsed } from "../ui/clock";
import { StateIcon } from "../ui/StateIcon";
import { useChat, useExpanded } from "./chatContext";
import { groupSubAgents, visibleItems } from "./chatRows";
import { ItemBody } from "./ItemBody";
import { ToolRow } from "./ToolRow";
import "./subAgents.css";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";

/** Number of steps of a sub-agent that are shown before the user asks for more. There may be thousands. */
const INITIAL_STEPS = 40;

interface SubAgent {
  readonly agent: AgentView;
  readonly starter: Item;
}

/** Shows sub-agents that worked at the same time, side by side where there is room. */
export const SubAgents = memo(function SubAgents({ run, items }: { run: RunView; items: readonly Item[] }) {
  const subAgents = items.flatMap((item) => subAgentsOf(run, item));
  return (
    <div className={subAgents.length > 1 ? "lanes lanes-many" : "lanes"}>
      {subAgents.map((subAgent) => (
        <SubAgentPanel key={subAgent.agent.agentId} run={run} subAgent={subAgent} />
      ))}
    </div>
  );
});

function subAgentsOf(run: RunView, item: Item): readonly SubAgent[] {
  return startedAgents(run, item).map((agent) => ({ agent, starter: item }));
}

function SubAgentPanel({ run, subAgent: { agent, starter } }: { run: RunView; subAgent: SubAgent }) {
  const { focus } = useChat();
  const [isOpen, setOpen] = useExpanded(`${run.runId} lane ${agent.agentId}`, true);
  const [showsAll, setShowsAll] = useState(false);
  const id = useId();
  const items = visibleItems(run, agent.agentId);
  const hidden = showsAll || focus !== null ? 0 : Math.max(0, items.length - INITIAL_STEPS);
  return (
    <section
      className={`lane lane-${agent.state}`}
      aria-label={`${agent.isBranch ? "Branch" : "Sub-agent"} ${escapeInvisible(agent.label)}`}
      data-item={starter.key}
    >
      <button
        type="button"
        className="lane-head"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <StateIcon state={agent.state} />
        <span className="lane-name ellipsis">{escapeInvisible(agent.label)}</span>
        <SubAgentActivity run={run} agent={agent} />
        <SubAgentTime agent={agent} />
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {agent.task !== "" && <p className="lane-task">{escapeBidi(agent.task)}</p>}
      {isOpen && (
        <div id={id} className="lane-items">
          {hidden > 0 && (
            <Button variant="quiet" onClick={() => setShowsAll(true)}>
              Show {plural(hidden, "earlier step")}
            </Button>
          )}
          {groupSubAgents(run, items.slice(hidden)).map(({ first, subAgents }) =>
            subAgents !== null ? (
              <SubAgents key={first.key} run={run} items={subAgents} />
            ) : (
              <ItemBody key={first.key} run={run} item={first} isNested />
            ),
          )}
          {starter.kind === "tool" && starter.endedAt !== null && <ToolRow run={run} tool={starter} title="Report" />}
        </div>
      )}
    </section>
  );
}

/** The current activity of a sub-agent. */
function SubAgentActivity({ run, agent }: { run: RunView; agent: AgentView }) {
  if (agent.endedAt !== null)
    return (
      <span className="lane-now">
        {agent.error === null ? plural(agent.tools, "tool") : escapeInvisible(agent.error)}
      </span>
    );
  const last = run.items[agent.items.at(-1) ?? -1];
  const activity =
    last?.kind === "tool" && last.endedAt === null
      ? callLine(last)
      : last?.kind === "text" || last?.kind === "thought"
        ? last.kind === "text"
          ? "writing"
          : "thinking"
        : agent.status;
  return <span className="lane-now">{escapeInvisible(activity)}</span>;
}

function SubAgentTime({ agent }: { agent: AgentView }) {
  return <span className="time">{formatDuration(useElapsed(agent.startedAt, agent.endedAt))}</span>;
}
