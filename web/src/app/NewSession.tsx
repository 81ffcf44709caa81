import { ArrowUpRight, ChevronDown, TriangleAlert } from "lucide-react";
import { memo } from "react";
import { Composer } from "../chat/Composer";
import { type AgentInfo, serverUrl } from "../client/api";
import { useAgentForm } from "../form/AgentForm";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
import { Menu, MenuItem } from "../ui/Menu";
import { useAgents } from "./AgentsContext";
import { promptsFor } from "./examplePrompts";
import { useNavigation } from "./NavigationContext";
import { RealModelCommand, Snippet, usesUnderstudy } from "./UnderstudyNotice";
import "./welcome.css";

interface WelcomeProps {
  readonly agent: AgentInfo | undefined;
  /** Whether the agent can be asked with a prompt alone. */
  readonly hasPrompts?: boolean;
  onAsk(text: string, agent?: string): void;
}

const OWN_AGENT = `async def agent(messages, ctx):
    """Repeats what you say."""
    yield f"You said: {messages[-1].text}"`;
const OWN_SERVE = "limelight serve my_agent.py:agent";
const FRAMEWORK_SERVE = "limelight serve my_graph.py:graph";

/** The introduction on the start page, with example prompts for the chosen agent. */
export const Welcome = memo(function Welcome({ agent, hasPrompts = true, onAsk }: WelcomeProps) {
  return (
    <div className="welcome">
      <div className="welcome-page">
        <h1>Watch an agent work</h1>
        <p className="welcome-lead">
          Ask something, and see every step as it happens: thoughts, tools, code, sub-agents and the answer. You can
          stop it, steer it and come back to it at any time.
        </p>
        {hasPrompts && (
          <ul className="welcome-prompts" aria-label={`Try ${agent?.title ?? "an agent"}`}>
            {promptsFor(agent?.name ?? "").map(({ text, shows }) => (
              <li key={text}>
                <button type="button" disabled={agent === undefined} onClick={() => onAsk(text, agent?.name)}>
                  <span className="welcome-prompt">{text}</span>
                  <span className="welcome-shows">{shows}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
        {usesUnderstudy(agent) && (
          <div className="welcome-note">
            <p>
              A stand-in model plays here: it follows a script and does not think, but the tools are real. To use a real
              model, start Limelight like this:
            </p>
            <RealModelCommand />
          </div>
        )}
        <details className="welcome-own">
          <summary>Plug in your own agent</summary>
          <p>
            A function will do. Put this into <code>my_agent.py</code>:
          </p>
          <Snippet text={OWN_AGENT} label="Copy the agent" />
          <p>Then serve it:</p>
          <Snippet text={OWN_SERVE} label="Copy the command" />
          <p>
            An agent of LangGraph, deepagents, smolagents or Agno is served without changes, by its file and its name
            there:
          </p>
          <Snippet text={FRAMEWORK_SERVE} label="Copy the command for a framework" />
          <p>
            Programs talk to it too:{" "}
            <a href={serverUrl("docs")} target="_blank" rel="noreferrer">
              HTTP routes of this server <ArrowUpRight size={13} aria-hidden="true" />
            </a>
          </p>
        </details>
      </div>
    </div>
  );
});

/** The start page: an introduction, and the field for the first message. */
export function NewSession() {
  const { agents, agent, agentsError, chooseAgent } = useAgents();
  const { startSession } = useNavigation();
  const form = useAgentForm(agent, true);
  return (
    <div className="start">
      {agentsError !== null && (
        <Banner icon={TriangleAlert} isError>
          The agents of this server are not known: {agentsError}
        </Banner>
      )}
      <div className="start-welcome">
        <Welcome agent={agent} onAsk={startSession} hasPrompts={!form.isNeeded} />
      </div>
      <Composer
        sessionId={null}
        isReady={agent !== undefined}
        form={form}
        onSend={(text, _, values) => startSession(text, agent?.name, values)}
      >
        <Menu
          label="Agent"
          side="top"
          trigger={
            <Button variant="quiet" className="start-agent" aria-label={`Agent: ${agent?.title ?? "none"}`}>
              <span>{agent?.title ?? "Agent"}</span> <ChevronDown size={14} aria-hidden="true" />
            </Button>
          }
        >
          {agents.map((one) => (
            <MenuItem key={one.name} onSelect={() => chooseAgent(one.name)}>
              {one.title}
            </MenuItem>
          ))}
        </Menu>
      </Composer>
    </div>
  );
}
