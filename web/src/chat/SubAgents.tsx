import { ChevronRight } from "lucide-react";
import { memo, useId, useState } from "react";
import { duration, plural, task, telling } from "../log/format";
import type { AgentView, Item, RunView } from "../log/view";
import { Button } from "../ui/Button";
import { StateIcon } from "../ui/StateIcon";
import { useNow } from "../ui/useNow";
import { useChat } from "./context";
import { ItemBody } from "./ItemBody";
import { grouped, itemsOf } from "./rows";
import { ToolRow } from "./ToolRow";
import { useOpened } from "./useCollapsed";
import "./subAgents.css";
import { straight, visible } from "../text/invisibleCharacters";

/** A lane shows so many of its steps at first; a sub-agent may take thousands. */
const FIRST = 40;

interface Lane {
  readonly agent: AgentView;
  readonly task: string;
  readonly starter: Item;
}

/** Sub-agents that worked at the same time: a lane each, side by side where there is room. */
export const Lanes = memo(function Lanes({ run, items }: { run: RunView; items: readonly Item[] }) {
  const lanes = items.flatMap((item) => lanesOf(run, item));
  return (
    <div className={lanes.length > 1 ? "lanes lanes-many" : "lanes"}>
      {lanes.map((lane) => (
        <LaneView key={lane.agent.agentId} run={run} lane={lane} />
      ))}
    </div>
  );
});

function lanesOf(run: RunView, item: Item): readonly Lane[] {
  const ids = item.kind === "agent" ? [item.childId] : item.kind === "tool" ? item.agentIds : [];
  const asked = item.kind === "tool" ? task(item.args) : "";
  return ids.flatMap((id) => {
    const agent = run.agents.get(id);
    return agent === undefined ? [] : [{ agent, task: asked, starter: item }];
  });
}

function LaneView({ run, lane: { agent, task: asked, starter } }: { run: RunView; lane: Lane }) {
  const { focus } = useChat();
  const [isOpen, setOpen] = useOpened(`${run.runId} lane ${agent.agentId}`, true);
  const [showsAll, setShowsAll] = useState(false);
  const id = useId();
  const items = itemsOf(run, agent.agentId);
  const hidden = showsAll || focus !== null ? 0 : Math.max(0, items.length - FIRST);
  return (
    <section
      className={`lane lane-${agent.state}`}
      aria-label={`Sub-agent ${visible(agent.name)}`}
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
        <span className="lane-name">{visible(agent.name)}</span>
        <LaneNow run={run} agent={agent} />
        <LaneTime agent={agent} />
        <ChevronRight className="chevron" size={14} aria-hidden="true" />
      </button>
      {asked !== "" && <p className="lane-task">{straight(asked)}</p>}
      {isOpen && (
        <div id={id} className="lane-items">
          {hidden > 0 && (
            <Button look="quiet" onClick={() => setShowsAll(true)}>
              Show {plural(hidden, "earlier step")}
            </Button>
          )}
          {grouped(run, items.slice(hidden)).map(({ first, lanes }) =>
            lanes !== null ? (
              <Lanes key={first.key} run={run} items={lanes} />
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

/** What the sub-agent does at this moment. */
function LaneNow({ run, agent }: { run: RunView; agent: AgentView }) {
  if (agent.endedAt !== null)
    return (
      <span className="lane-now">{agent.error === null ? plural(agent.tools, "tool") : visible(agent.error)}</span>
    );
  const last = run.items[agent.items[agent.items.length - 1] ?? -1];
  const doing =
    last?.kind === "tool" && last.endedAt === null
      ? `${last.name} ${telling(last.args)}`
      : last?.kind === "text" || last?.kind === "thought"
        ? last.kind === "text"
          ? "writing"
          : "thinking"
        : agent.status;
  return <span className="lane-now">{visible(doing)}</span>;
}

function LaneTime({ agent }: { agent: AgentView }) {
  const now = useNow(agent.endedAt === null);
  return <span className="time">{duration((agent.endedAt ?? Math.max(now, agent.startedAt)) - agent.startedAt)}</span>;
}
