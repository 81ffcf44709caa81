import {
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { Item } from "../log/view";
import { Frame } from "../ui/ListContainer";
import { useWidth } from "../ui/useElementWidth";
import { useEndOf } from "../ui/useStickToEnd";
import { Axis } from "./Axis";
import { ChartRow } from "./ChartRow";
import { moved } from "./keyboardNavigation";
import type { Row, Timeline } from "./layout";
import { Hint } from "./Tooltip";
import { tickStep } from "./ticks";
import { useHint } from "./useTooltip";
import { useZoom } from "./useZoom";
import { ZoomButtons } from "./ZoomButtons";
import { END_ROOM, labelsWidth } from "./zoom";

interface Props {
  readonly timeline: Timeline;
  readonly focus: Item | null;
  readonly onPick: (row: Row) => void;
}

const ROW = 28;
const TICK_GAP = 64;

/** Bars over time, below an axis. The box has the focus and one row is its active one, so that rows may come and go. */
export const Chart = memo(function Chart({ timeline, focus, onPick }: Props) {
  const { rows, span, isRunning } = timeline;
  const id = useId();
  const chart = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const axis = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const whole = useWidth(scroller, 640);
  const labels = labelsWidth(whole);
  const width = whole - labels;
  const { scale, isFit, by, showAll } = useZoom(scroller, labels, width, span);
  const step = tickStep(scale, TICK_GAP);
  const [wished, setActive] = useState(0);
  const active = Math.max(0, Math.min(wished, rows.length - 1));
  const mounted = useMemo(() => [active], [active]);
  const [page, setPage] = useState(0);
  const { hint, hide, show } = useHint(chart);
  const noteScroll = useEndOf(scroller, isRunning, timeline);
  const picked = useMemo(() => (focus ? rows.findIndex((row) => row.item?.key === focus.key) : -1), [rows, focus]);

  const reveal = useCallback((index: number) => {
    setActive(index);
    list.current?.scrollToIndex(index, { align: "nearest" });
  }, []);
  useEffect(() => {
    if (picked >= 0) reveal(picked);
  }, [picked, reveal]);

  /** While keys are used, the hint is that of the active row. */
  const showActive = (index: number): boolean => {
    const element = scroller.current;
    const row = element?.querySelector<HTMLElement>(`[data-row="${index}"]`);
    if (!element?.matches(":focus-visible") || !row) return false;
    show(row, { chart: labels + (rows[index]?.begin ?? 0) * scale - element.scrollLeft });
    return true;
  };
  /** A row that becomes the active one shows its bar, also in a chart that is zoomed. */
  const bringIn = (index: number) => {
    const element = scroller.current;
    const row = rows[index];
    if (element === null || row === undefined) return;
    const isOut = row.end * scale < element.scrollLeft || row.begin * scale > element.scrollLeft + width;
    if (isOut) element.scrollLeft = Math.max(0, row.begin * scale - width / 5);
    showActive(index);
  };
  const bringInLatest = useRef(bringIn);
  useLayoutEffect(() => {
    bringInLatest.current = bringIn;
  });
  useEffect(() => {
    bringInLatest.current(active);
  }, [active]);

  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[active];
    const next = moved(rows, active, event.key);
    if (next !== null) reveal(next);
    else if ((event.key === "Enter" || event.key === " ") && row) onPick(row);
    else if (event.key === "+" || event.key === "=") by(2);
    else if (event.key === "-") by(0.5);
    else if (event.key === "0") showAll();
    else if (event.key === "Escape" && hint !== null) {
      hide();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };

  const rowAt = (target: EventTarget) => (target as Element).closest<HTMLElement>("[data-row]");
  const click = (target: EventTarget) => {
    const index = Number(rowAt(target)?.dataset.row ?? -1);
    const row = rows[index];
    if (row === undefined) return;
    setActive(index);
    onPick(row);
  };
  const point = (target: EventTarget, x: number) => {
    const row = rowAt(target);
    if (row) show(row, { pointer: x });
    else hide();
  };
  const scrolled = () => {
    const element = scroller.current;
    if (element === null) return;
    if (axis.current) axis.current.style.transform = `translateX(${-element.scrollLeft}px)`;
    setPage(Math.floor(element.scrollLeft / Math.max(1, width)));
    if (!showActive(active)) hide();
    noteScroll();
  };

  const hinted = hint === null ? undefined : rows[hint.index];
  return (
    <div className="timeline-chart" ref={chart}>
      <Axis {...{ inner: axis, labels, width, scale, step, span, page, isRunning }}>
        <ZoomButtons isFit={isFit} onZoom={by} onFit={showAll} />
      </Axis>
      <div
        ref={scroller}
        className="timeline-scroll"
        role="tree"
        aria-label="What ran"
        aria-activedescendant={`${id}-${active}`}
        tabIndex={0}
        onKeyDown={press}
        onScroll={scrolled}
        onClick={(event) => click(event.target)}
        onPointerOver={(event) => event.pointerType === "mouse" && point(event.target, event.clientX)}
        onPointerLeave={hide}
        onFocus={() => showActive(active)}
        onBlur={hide}
      >
        <div className="timeline-inner" style={{ width: isFit ? "100%" : labels + span * scale + END_ROOM }}>
          <div className="timeline-lines" style={{ left: labels - 1, backgroundSize: `${step * scale}px 100%` }} />
          <Virtualizer ref={list} data={rows} scrollRef={scroller} itemSize={ROW} keepMounted={mounted} as={Frame}>
            {(row, index) => (
              <ChartRow
                key={row.key}
                id={`${id}-${index}`}
                row={row}
                index={index}
                scale={scale}
                labels={labels}
                isActive={index === active}
                isPicked={index === picked}
              />
            )}
          </Virtualizer>
          {isRunning && <div className="timeline-now" style={{ left: labels + span * scale }} />}
        </div>
      </div>
      {hint && hinted && <Hint row={hinted} place={hint} />}
    </div>
  );
});
