import { Ellipsis, FileJson, FileText, Link, Pencil, Trash2 } from "lucide-react";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useNavigation } from "../app/NavigationContext";
import { useStores } from "../app/pageStores";
import { hashOf, linkTo } from "../app/route";
import type { SessionEntry, SessionState } from "../client/api";
import type { Progress } from "../log/viewModel";
import { escapeBidi } from "../text/invisibleCharacters";
import { copyText } from "../ui/clipboard";
import { Menu, MenuItem, MenuSeparator } from "../ui/Menu";
import { StateIcon } from "../ui/StateIcon";
import type { ShortcutInfo } from "../ui/useShortcuts";
import { type ListRow, rowsByDate, startOfDay } from "./dateGroups";

const PROGRESS: Record<SessionState, Progress | null> = {
  processing: "running",
  completed: "done",
  error: "failed",
  idle: "stopped",
  expired: null,
};

function progressOf({ state, turns, run_state }: Pick<SessionEntry, "state" | "turns" | "run_state">) {
  if (turns === 0 && state === "idle") return null;
  return state === "processing" && run_state === "waiting" ? "waiting" : PROGRESS[state];
}

/** An icon of the state of the session's newest run; a dot if the session has expired or has no run. */
export function SessionIcon({ entry }: { entry: Pick<SessionEntry, "state" | "turns" | "run_state"> }) {
  const progress = progressOf(entry);
  return progress ? <StateIcon state={progress} size={14} /> : <span className="sessions-dot" aria-hidden="true" />;
}

interface RenameFieldProps {
  className: string;
  title: string;
  onRename: (title: string) => void;
  onClose: () => void;
}

const MAX_LENGTH = 200;

/** A field that edits a title in place. Enter and losing the focus save the title, Esc discards it. */
export function RenameField({ className, title, onRename, onClose }: RenameFieldProps) {
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const finish = (keep: boolean) => {
    if (isDone.current) return;
    isDone.current = true;
    const wanted = text.trim();
    if (keep && wanted && wanted !== title) onRename(wanted);
    onClose();
  };
  return (
    <input
      ref={field}
      className={className}
      aria-label="Title"
      maxLength={MAX_LENGTH}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => finish(true)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
        event.preventDefault();
        finish(event.key === "Enter");
      }}
    />
  );
}

interface RowProps {
  entry: SessionEntry;
  current: boolean;
  /** Whether the row is the one that the Tab key reaches. */
  active: boolean;
  renaming: boolean;
  onActive: (id: string) => void;
  onRenaming: (id: string | null) => void;
  onRename: (id: string, title: string) => void;
  onRemove: (entry: SessionEntry) => void;
}

/** One session: its state, its title and a menu. */
const SessionRow = memo(function SessionRow(props: RowProps) {
  const { entry, current, active, renaming, onActive, onRenaming, onRename, onRemove } = props;
  const { openSession } = useNavigation();
  const { sessionExport } = useStores();
  const id = entry.session_id;
  const title = escapeBidi(entry.title) || "New conversation";
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
    // With a modifier key, the browser opens the link in a new tab or window.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    openSession(id);
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
          className="sessions-rename"
          title={entry.title}
          onRename={(text) => onRename(id, text)}
          onClose={close}
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
        <span className="sessions-title ellipsis" dir="auto">
          {title}
        </span>
        {copyFailed && <span role="alert">Could not copy the link</span>}
      </a>
      <Menu
        label={`More for ${title}`}
        open={menu}
        onOpenChange={setMenu}
        onCloseAutoFocus={(event) => {
          // The rename field that replaces this row gets the focus, not the menu's trigger.
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

interface Props {
  entries: readonly SessionEntry[];
  current: string | null;
  hasMore: boolean;
  onMore: () => void;
  onRename: (id: string, title: string) => void;
  onRemove: (entry: SessionEntry) => void;
}

const ROW_HEIGHT = 34;
/** Distance from the end, in px, at which the next page is loaded. */
const LOAD_MORE_PX = 600;
/** Number of animation frames to wait until a row is mounted, so that it can get the focus. */
const FOCUS_ATTEMPTS = 20;
const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowDown: (at, count) => Math.min(at + 1, count - 1),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, count) => count - 1,
};

const group = "In the list of conversations";

/** The keys that `SessionRows` handles, for the list of shortcuts. */
export const SESSION_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "f2", title: "Rename the conversation", group },
  { keys: "delete", title: "Delete the conversation", group },
];

/** The virtual list of sessions. Arrow keys move the focus, Enter opens, F2 renames and Delete deletes a session. */
export function SessionRows({ entries, current, hasMore, onMore, onRename, onRemove }: Props) {
  const today = startOfDay(Date.now());
  const rows = useMemo(() => rowsByDate(entries, today), [entries, today]);
  const [movedTo, setMovedTo] = useState<string | null>(null);
  const [previous, setPrevious] = useState<string | null>(null);
  const [renaming, setRenaming] = useState<string | null>(null);
  const virtual = useRef<VirtualizerHandle>(null);
  const frame = useRef<HTMLDivElement>(null);

  const isListed = (id: string | null) => id !== null && entries.some((entry) => entry.session_id === id);
  const active = isListed(movedTo) ? movedTo : isListed(current) ? current : (entries[0]?.session_id ?? null);
  const rowOf = (id: string | null) => rows.findIndex((row) => row.kind === "session" && row.entry.session_id === id);
  // The previously focused row stays mounted until the next row has the focus.
  const mountedRows = [rowOf(active), rowOf(previous)].filter((row, at, all) => row >= 0 && all.indexOf(row) === at);
  const setActive = useCallback((id: string) => setMovedTo(id), []);

  const loadMoreNearEnd = () => {
    const list = virtual.current;
    if (hasMore && list && list.scrollOffset + list.viewportSize > list.scrollSize - LOAD_MORE_PX) onMore();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || renaming !== null) return;
    // Ignores events of an open menu: React bubbles them to this list, although the menu is elsewhere in the DOM.
    if (!(event.target instanceof Element) || !event.currentTarget.contains(event.target)) return;
    const at = entries.findIndex((entry) => entry.session_id === active);
    const entry = entries[at];
    const step = STEPS[event.key];
    if (entry === undefined) return;
    if (event.key === "F2") setRenaming(entry.session_id);
    else if (event.key === "Delete") onRemove(entry);
    else if (step) {
      const next = entries[step(at, entries.length)]?.session_id ?? null;
      // Above the first row there is a heading, which should be visible too.
      if (next === entries[0]?.session_id) virtual.current?.scrollTo(0);
      else virtual.current?.scrollToIndex(rowOf(next), { align: "nearest" });
      setPrevious(active);
      setMovedTo(next);
      focusRow(frame, next, FOCUS_ATTEMPTS);
    } else return;
    event.preventDefault();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the links within
    <div ref={frame} className="sessions-scroll" onKeyDown={onKeyDown}>
      <Virtualizer
        ref={virtual}
        as="ul"
        item="li"
        data={rows}
        itemSize={ROW_HEIGHT}
        keepMounted={mountedRows}
        onScroll={loadMoreNearEnd}
        onResize={loadMoreNearEnd}
      >
        {(row: ListRow) =>
          row.kind === "heading" ? (
            <h2 key={`heading ${row.title}`} className="sessions-heading">
              {row.title}
            </h2>
          ) : (
            <SessionRow
              key={row.entry.session_id}
              entry={row.entry}
              current={row.entry.session_id === current}
              active={row.entry.session_id === active}
              renaming={row.entry.session_id === renaming}
              onActive={setActive}
              onRenaming={setRenaming}
              onRename={onRename}
              onRemove={onRemove}
            />
          )
        }
      </Virtualizer>
    </div>
  );
}

function focusRow(frame: RefObject<HTMLElement | null>, id: string | null, tries: number): void {
  requestAnimationFrame(() => {
    const rows = [...(frame.current?.querySelectorAll<HTMLElement>("[data-session]") ?? [])];
    const link = rows.find((row) => row.dataset.session === id)?.querySelector("a");
    link?.focus();
    if (tries > 0 && (!link || document.activeElement !== link)) focusRow(frame, id, tries - 1);
  });
}
