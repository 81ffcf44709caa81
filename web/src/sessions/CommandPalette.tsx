import { Command as Cmdk } from "cmdk";
import { MessageSquare, Search } from "lucide-react";
import { useEffect, useState } from "react";
import { SessionList } from "../client/sessionList";
import { useStore } from "../client/store";
import { escapeBidi } from "../text/invisibleCharacters";
import { Dialog } from "../ui/Dialog";
import { Kbd } from "../ui/Kbd";
import type { Command } from "../ui/useShortcuts";
import { SessionIcon } from "./SessionRows";
import "./palette.css";

/** Returns the commands that contain all words of the text, those that begin with the text first. */
function matchCommands(commands: readonly Command[], text: string): readonly Command[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return commands;
  const words = wanted.split(/\s+/);
  const fitting = commands.filter((command) => {
    const said = `${command.title} ${command.hint ?? ""}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
  const rank = (command: Command) => (command.title.toLowerCase().startsWith(wanted) ? 0 : 1);
  return fitting.toSorted((one, other) => rank(one) - rank(other));
}

interface Props {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  list: SessionList;
  commands: readonly Command[];
  onOpen: (id: string) => void;
}

const MAX_RECENT = 5;
const MAX_FOUND = 20;

/** The command palette: a dialog that finds sessions and commands. */
export function CommandPalette({ open, onOpenChange, ...rest }: Props) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Search and commands" hideTitle className="palette-dialog">
      <Choices {...rest} onClose={() => onOpenChange(false)} />
    </Dialog>
  );
}

function Choices({ list, commands, onOpen, onClose }: Omit<Props, "open" | "onOpenChange"> & { onClose: () => void }) {
  const [text, setText] = useState("");
  const { found, searching } = useFoundSessions(list, text);
  const chosen = matchCommands(commands, text);
  const close = (run: () => void) => {
    onClose();
    // Runs the command after the closing dialog has restored the focus, because the command may move the focus.
    requestAnimationFrame(run);
  };
  const sessions = found.length > 0 && (
    <Cmdk.Group key="sessions" heading={text ? "Conversations" : "Recent"}>
      {found.map((entry) => (
        <Cmdk.Item
          key={entry.session_id}
          value={`session ${entry.session_id}`}
          onSelect={() => close(() => onOpen(entry.session_id))}
        >
          <SessionIcon entry={entry} />
          <span className="palette-title ellipsis" dir="auto">
            {escapeBidi(entry.title) || "New conversation"}
          </span>
          <span className="palette-hint ellipsis">{entry.agent}</span>
        </Cmdk.Item>
      ))}
    </Cmdk.Group>
  );
  const actions = chosen.length > 0 && (
    <Cmdk.Group key="commands" heading="Commands">
      {chosen.map((command) => {
        const Icon = command.icon ?? MessageSquare;
        return (
          <Cmdk.Item
            key={command.id}
            value={`command ${command.id}`}
            disabled={command.disabled === true}
            onSelect={() => close(() => command.run())}
          >
            <Icon size={15} aria-hidden="true" />
            <span className="palette-title ellipsis">{command.title}</span>
            {command.hint && <span className="palette-hint ellipsis">{command.hint}</span>}
            {command.keys && <Kbd keys={command.keys} />}
          </Cmdk.Item>
        );
      })}
    </Cmdk.Group>
  );
  return (
    <Cmdk label="Search and commands" shouldFilter={false} loop>
      <div className="palette-search">
        <Search size={16} aria-hidden="true" />
        <Cmdk.Input value={text} onValueChange={setText} placeholder="Find a conversation or a command" />
      </div>
      <Cmdk.List>{text ? [actions, sessions] : [sessions, actions]}</Cmdk.List>
      <div role="status">
        {!searching && !sessions && !actions && <p className="palette-empty">Nothing fits “{text}”.</p>}
      </div>
    </Cmdk>
  );
}

/** Returns the sessions whose title contains the text, which the server searches; without a text, the newest. */
function useFoundSessions(list: SessionList, text: string) {
  const [results] = useState(() => new SessionList(false));
  const recent = useStore(list);
  const found = useStore(results);
  const wanted = text.trim();
  useEffect(() => results.search(wanted), [results, wanted]);
  if (wanted === "") {
    const entries = recent.q === "" ? recent.entries : found.entries;
    return { found: entries.slice(0, MAX_RECENT), searching: false };
  }
  const lower = wanted.toLowerCase();
  const entries = found.entries.filter((entry) => entry.title.toLowerCase().includes(lower));
  return { found: entries.slice(0, MAX_FOUND), searching: found.loading || found.q !== wanted };
}
