import { Ellipsis, FileJson, FileText, Link, Pencil, Trash2 } from "lucide-react";
import { type MouseEvent, memo, useEffect, useRef, useState } from "react";
import { hashOf, linkTo } from "../app/route";
import { sessionExport } from "../client/sessionExport";
import { straight } from "../text/invisibleCharacters";
import { copyText } from "../ui/clipboard";
import { Menu, MenuItem, MenuSeparator } from "../ui/Menu";
import type { SessionEntry } from "../wire/api";
import { RenameField } from "./RenameField";
import { SessionIcon } from "./SessionIcon";

interface Props {
  entry: SessionEntry;
  current: boolean;
  /** The one that the Tab key comes to. */
  active: boolean;
  renaming: boolean;
  onOpen: (id: string) => void;
  onActive: (id: string) => void;
  onRenaming: (id: string | null) => void;
  onRename: (id: string, title: string) => void;
  onRemove: (entry: SessionEntry) => void;
}

/** One conversation: how it went, its title, and a menu of what can be done with it. */
export const SessionRow = memo(function SessionRow(props: Props) {
  const { entry, current, active, renaming, onOpen, onActive, onRenaming, onRename, onRemove } = props;
  const id = entry.session_id;
  const title = straight(entry.title) || "New conversation";
  const link = useRef<HTMLAnchorElement>(null);
  const [menu, setMenu] = useState(false);
  const [copyFailed, setCopyFailed] = useState(false);
  const renameNext = useRef(false);
  useEffect(() => {
    if (!copyFailed) return;
    const timer = setTimeout(() => setCopyFailed(false), 5_000);
    return () => clearTimeout(timer);
  }, [copyFailed]);
  const tabIndex = active ? 0 : -1;

  const open = (event: MouseEvent) => {
    // A new tab is the browser's to open.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onOpen(id);
  };
  const copyLink = async () => setCopyFailed(!(await copyText(linkTo({ sessionId: id }))));
  const close = () => {
    onRenaming(null);
    requestAnimationFrame(() => link.current?.focus());
  };
  if (renaming) {
    return (
      <div className="sessions-row sessions-editing" data-session={id}>
        <SessionIcon entry={entry} />
        <RenameField
          title={entry.title}
          onCancel={close}
          onRename={(text) => {
            onRename(id, text);
            close();
          }}
        />
      </div>
    );
  }
  return (
    <div className="sessions-row" data-session={id} data-menu={menu || undefined}>
      <a
        ref={link}
        className="sessions-link"
        href={hashOf({ sessionId: id })}
        aria-current={current ? "page" : undefined}
        title={title}
        tabIndex={tabIndex}
        onClick={open}
        onFocus={() => onActive(id)}
        onContextMenu={(event) => {
          event.preventDefault();
          onActive(id);
          setMenu(true);
        }}
      >
        <SessionIcon entry={entry} />
        <span className="sessions-title" dir="auto">
          {title}
        </span>
        {copyFailed && <span role="alert">Could not copy the link</span>}
      </a>
      <Menu
        label={`More for ${title}`}
        open={menu}
        onOpenChange={setMenu}
        onClosed={(event) => {
          // The field that takes the place of this row has the focus.
          if (!renameNext.current) return;
          renameNext.current = false;
          event.preventDefault();
          onRenaming(id);
        }}
        trigger={
          <button type="button" className="sessions-more" tabIndex={tabIndex} aria-label={`More for ${title}`}>
            <Ellipsis size={15} aria-hidden="true" />
          </button>
        }
      >
        <MenuItem
          icon={Pencil}
          hint="F2"
          onSelect={() => {
            renameNext.current = true;
          }}
        >
          Rename
        </MenuItem>
        <MenuItem icon={Link} onSelect={() => void copyLink()}>
          Copy link
        </MenuItem>
        <MenuItem icon={FileText} onSelect={() => void sessionExport.start(id, title, "markdown")}>
          Export as Markdown
        </MenuItem>
        <MenuItem icon={FileJson} onSelect={() => void sessionExport.start(id, title, "jsonl")}>
          Export as JSON lines
        </MenuItem>
        <MenuSeparator />
        <MenuItem icon={Trash2} hint="Del" danger onSelect={() => onRemove(entry)}>
          Delete
        </MenuItem>
      </Menu>
    </div>
  );
});
