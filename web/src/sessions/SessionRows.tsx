import { type KeyboardEvent, type RefObject, useCallback, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { SessionEntry } from "../wire/api";
import { grouped, type ListRow, startOfDay } from "./groups";
import { SessionRow } from "./SessionRow";

interface Props {
  entries: readonly SessionEntry[];
  current: string | null;
  hasMore: boolean;
  onMore: () => void;
  onOpen: (id: string) => void;
  onRename: (id: string, title: string) => void;
  onRemove: (entry: SessionEntry) => void;
}

const ROW = 34;
/** How near to the end the next page is asked for. */
const NEAR = 600;
/** A row that was far away is drawn, measured and shown within a few frames; before that it takes no focus. */
const TRIES = 20;
const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowDown: (at, count) => Math.min(at + 1, count - 1),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** The conversations, of which only those in sight are drawn. Arrow keys walk, Enter opens, F2 renames, Del removes. */
export function SessionRows({ entries, current, hasMore, onMore, onOpen, onRename, onRemove }: Props) {
  const today = startOfDay(Date.now());
  const rows = useMemo(() => grouped(entries, today), [entries, today]);
  const [walked, setWalked] = useState<string | null>(null);
  const [left, setLeft] = useState<string | null>(null);
  const [renaming, setRenaming] = useState<string | null>(null);
  const virtual = useRef<VirtualizerHandle>(null);
  const frame = useRef<HTMLDivElement>(null);

  const known = (id: string | null) => id !== null && entries.some((entry) => entry.session_id === id);
  const active = known(walked) ? walked : known(current) ? current : (entries[0]?.session_id ?? null);
  const rowOf = (id: string | null) => rows.findIndex((row) => row.kind === "session" && row.entry.session_id === id);
  // The row that had the focus stays until the next one has it: the focus must not fall off the list.
  const held = [rowOf(active), rowOf(left)].filter((row, at, all) => row >= 0 && all.indexOf(row) === at);
  const setActive = useCallback((id: string) => setWalked(id), []);

  const near = () => {
    const list = virtual.current;
    if (hasMore && list && list.scrollOffset + list.viewportSize > list.scrollSize - NEAR) onMore();
  };
  const press = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || renaming !== null) return;
    // A menu is drawn elsewhere, but its keys come through here.
    if (!(event.target instanceof Element) || !event.currentTarget.contains(event.target)) return;
    const at = entries.findIndex((entry) => entry.session_id === active);
    const entry = entries[at];
    const step = STEPS[event.key];
    if (entry === undefined) return;
    if (event.key === "F2") setRenaming(entry.session_id);
    else if (event.key === "Delete") onRemove(entry);
    else if (step) {
      const next = entries[step(at, entries.length)]?.session_id ?? null;
      // The first one has a heading above it.
      if (next === entries[0]?.session_id) virtual.current?.scrollTo(0);
      else virtual.current?.scrollToIndex(rowOf(next), { align: "nearest" });
      setLeft(active);
      setWalked(next);
      focusRow(frame, next, TRIES);
    } else return;
    event.preventDefault();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the links within
    <div ref={frame} className="sessions-scroll" onKeyDown={press}>
      <Virtualizer
        ref={virtual}
        as="ul"
        item="li"
        data={rows}
        itemSize={ROW}
        keepMounted={held}
        onScroll={near}
        onResize={near}
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
              onOpen={onOpen}
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
