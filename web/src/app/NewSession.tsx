import { ChevronDown, TriangleAlert } from "lucide-react";
import { Composer } from "../chat/Composer";
import { Button } from "../ui/Button";
import { Menu, MenuItem } from "../ui/Menu";
import type { AgentInfo } from "../wire/api";
import { Welcome } from "./Welcome";

interface Props {
  readonly agents: readonly AgentInfo[];
  readonly agent: AgentInfo | undefined;
  /** Why the agents are not known. */
  readonly trouble: string | null;
  onAgent(name: string): void;
  onAsk(text: string, agent?: string): void;
}

/** A new conversation: what this is, and the field to begin. */
export function Start({ agents, agent, trouble, onAgent, onAsk }: Props) {
  return (
    <div className="start">
      {trouble !== null && (
        <p className="banner banner-bad" role="alert">
          <TriangleAlert size={15} aria-hidden="true" />
          The agents of this server are not known: {trouble}
        </p>
      )}
      <div className="start-welcome">
        <Welcome agents={agents} agent={agent?.name ?? ""} onAsk={onAsk} />
      </div>
      <Composer sessionId={null} isBusy={false} isDisabled={agent === undefined} last="" onSend={(text) => onAsk(text)}>
        <Menu
          label="Agent"
          side="top"
          trigger={
            <Button look="quiet" className="start-agent" aria-label={`Agent: ${agent?.title ?? "none"}`}>
              <span>{agent?.title ?? "Agent"}</span> <ChevronDown size={14} aria-hidden="true" />
            </Button>
          }
        >
          {agents.map((one) => (
            <MenuItem key={one.name} onSelect={() => onAgent(one.name)}>
              {one.title}
            </MenuItem>
          ))}
        </Menu>
      </Composer>
    </div>
  );
}
