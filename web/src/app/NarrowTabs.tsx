import { MessageSquare } from "lucide-react";
import type { Pane } from "./activePane";
import { PANES } from "./SidePanel";

interface Props {
  readonly tab: Pane | "chat";
  onTab(tab: Pane | "chat"): void;
}

/** On narrow screens chat and panes take turns. */
export function NarrowTabs({ tab, onTab }: Props) {
  const tabs = [{ id: "chat" as const, title: "Chat", icon: MessageSquare }, ...PANES];
  return (
    <nav className="narrow-tabs" aria-label="Parts of the conversation">
      {tabs.map(({ id, title, icon: Icon }) => (
        <button
          key={id}
          type="button"
          className="side-tab"
          data-state={tab === id ? "active" : "inactive"}
          aria-current={tab === id ? "page" : undefined}
          onClick={() => onTab(id)}
        >
          <Icon size={15} aria-hidden="true" />
          <span>{title}</span>
        </button>
      ))}
    </nav>
  );
}
