import { ChevronDown } from "lucide-react";
import { Button } from "../ui/Button";
import { Menu, MenuChoice, MenuChoices, MenuLabel } from "../ui/Menu";
import type { AgentInfo } from "../wire/api";
import "./sessions.css";

interface Props {
  agents: readonly AgentInfo[];
  agent: string;
  onAgent: (name: string) => void;
}

/** Which agent a new conversation is with. */
export function AgentMenu({ agents, agent, onAgent }: Props) {
  const chosen = agents.find((one) => one.name === agent);
  const title = chosen?.title || agent || "No agent";
  return (
    <Menu
      label="Agent for new conversations"
      side="top"
      trigger={
        <Button
          look="quiet"
          className="sessions-agent"
          aria-label={`Agent for new conversations: ${title}`}
          disabled={agents.length === 0}
        >
          <span className="sessions-title">{title}</span>
          <ChevronDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuLabel>Agent for new conversations</MenuLabel>
      <MenuChoices value={agent} onChoose={onAgent}>
        {agents.map((one) => (
          <MenuChoice key={one.name} value={one.name} about={one.description}>
            {one.title || one.name}
            <span className="sessions-tag">{one.default ? `${one.framework} · default` : one.framework}</span>
          </MenuChoice>
        ))}
      </MenuChoices>
    </Menu>
  );
}
