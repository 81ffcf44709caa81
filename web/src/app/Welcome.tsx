import { ArrowUpRight } from "lucide-react";
import { memo } from "react";
import { agentNamed } from "../live/agents";
import { CopyButton } from "../parts/CopyButton";
import { type AgentInfo, address } from "../wire/api";
import { promptsFor } from "./prompts";
import "./welcome.css";

interface Props {
  agents: readonly AgentInfo[];
  agent: string;
  onAsk: (text: string, agent?: string) => void;
  /** The field to write in. */
}

const REAL_MODEL = "LIMELIGHT_MODEL=gpt-5-mini OPENAI_API_KEY=sk-… make run";
const OWN_AGENT = `async def agent(messages, ctx):
    """Repeats what you say."""
    yield f"You said: {messages[-1].text}"`;
const OWN_SERVE = "limelight serve my_agent.py:agent";

/** What the page shows before anything was asked. */
export const Welcome = memo(function Welcome({ agents, agent, onAsk }: Props) {
  const chosen = agentNamed(agents, agent);
  return (
    <div className="welcome">
      <div className="welcome-page">
        <h1>Watch an agent work</h1>
        <p className="welcome-lead">
          Ask something, and see every step as it happens: thoughts, tools, code, sub-agents and the answer. You can
          stop it, steer it and come back to it at any time.
        </p>
        <ul className="welcome-prompts" aria-label={`Try ${chosen?.title ?? "an agent"}`}>
          {promptsFor(chosen?.name ?? "").map(({ text, shows }) => (
            <li key={text}>
              <button type="button" onClick={() => onAsk(text, chosen?.name)}>
                <span className="welcome-prompt">{text}</span>
                <span className="welcome-shows">{shows}</span>
              </button>
            </li>
          ))}
        </ul>
        {chosen?.model === "understudy" && (
          <div className="welcome-note">
            <p>
              A stand-in model plays here: it follows a script and does not think, but the tools are real. To use a real
              model, start Limelight like this:
            </p>
            <Snippet text={REAL_MODEL} label="Copy the command" />
          </div>
        )}
        <details className="welcome-own">
          <summary>Plug in your own agent</summary>
          <p>
            A function will do, and so will an agent of LangGraph, deepagents, smolagents or Agno. Put this into{" "}
            <code>my_agent.py</code>:
          </p>
          <Snippet text={OWN_AGENT} label="Copy the agent" />
          <p>Then serve it:</p>
          <Snippet text={OWN_SERVE} label="Copy the command" />
          <a href={address("docs")} target="_blank" rel="noreferrer">
            Documentation <ArrowUpRight size={13} aria-hidden="true" />
          </a>
        </details>
      </div>
    </div>
  );
});

function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <div className="welcome-snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to get there */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}
