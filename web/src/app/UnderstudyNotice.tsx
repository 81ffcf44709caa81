import { useState } from "react";
import type { AgentInfo } from "../client/api";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { Dialog } from "../ui/Dialog";
import "./welcome.css";

/** Lines of code with a button that copies them. */
export function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <div className="welcome-snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

const REAL_MODEL = "LIMELIGHT_MODEL=gpt-5-mini OPENAI_API_KEY=sk-… limelight serve";

/** Whether the agent uses the understudy, the built-in offline model that plays scripts. */
export function usesUnderstudy(agent: AgentInfo | undefined): boolean {
  return agent?.model === "understudy";
}

/** Shows the command that starts the server with a real model. */
export function RealModelCommand() {
  return <Snippet text={REAL_MODEL} label="Copy the command" />;
}

/** A line below the composer that explains how to use a real model. */
export function UnderstudyNotice() {
  const [isOpen, setOpen] = useState(false);
  return (
    <p className="stand-in">
      <span className="ellipsis">A stand-in model plays.</span>{" "}
      <Button variant="quiet" onClick={() => setOpen(true)}>
        Use a real one
      </Button>
      <Dialog
        open={isOpen}
        onOpenChange={setOpen}
        title="Use a real model"
        description="The stand-in follows a script and does not think, but the tools are real. Name a model when you start Limelight:"
      >
        <div className="stand-in-how">
          <RealModelCommand />
          <p>
            Whatever speaks OpenAI's API will do: <code>OPENAI_BASE_URL</code> says where it is. The conversations stay.
          </p>
        </div>
      </Dialog>
    </p>
  );
}
