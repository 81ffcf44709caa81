import { Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { formatExactDuration } from "../log/displayText";
import type { Item } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useElementWidth, useStickToEnd } from "../ui/hooks";
import { ListContainer } from "../ui/ListContainer";
import { STATE_LABELS, StateIcon } from "../ui/StateIcon";
import { nextRow } from "./keyboardNavigation";
import type { Timeline, TimelineRow } from "./layout";
import { Tooltip, useTooltip } from "./Tooltip";
import { tickStep, ticks } from "./ticks";
import { END_ROOM, labelWidth, useZoom } from "./zoom";

/** Widths of the labels and of the visible part of the track in px, and the scale in px per ms. */
interface Geometry {
  readonly labels: number;
  readonly width: number;
  readonly scale: number;
}

interface AxisProps {
  readonly inner: Ref<HTMLDivElement>;
  readonly timeline: Timeline;
  readonly geometry: Geometry;
  /** Time between two ticks, in ms. */
  readonly step: number;
  /** Index of the visible page of the track. Ticks are rendered for this page and its neighbours. */
  readonly page: number;
  /** Content above the labels. */
  readonly children: ReactNode;
}

/** Space in px that the label "now" needs on the time axis. */
const NOW_LABEL_WIDTH = 40;

/** The time axis. It scrolls horizontally together with the bars, but not vertically. */
function Axis({ inner, timeline: { span, isRunning }, geometry, step, page, children }: AxisProps) {
  const { labels, width, scale } = geometry;
  const from = ((page - 1) * width) / scale;
  const to = Math.max(Math.min(span, ((page + 2) * width) / scale), width / scale);
  const isFree = (at: number) => !isRunning || Math.abs(at - span) * scale > NOW_LABEL_WIDTH;
  const marks = ticks(from, to, step).filter((tick) => isFree(tick.at));
  return (
    <div className="timeline-axis">
      <div className="timeline-axis-head" style={{ width: labels }}>
        {children}
      </div>
      <div className="timeline-axis-window" aria-hidden="true">
        <div ref={inner} className="timeline-axis-inner">
          {marks.map((tick) => (
            <span key={tick.at} className="timeline-tick" style={{ left: tick.at * scale }}>
              {tick.label}
            </span>
          ))}
          {isRunning && (
            <span className="timeline-now-word" style={{ left: span * scale }}>
              now
            </span>
          )}
        </div>
      </div>
    </div>
  );
}

interface ZoomButtonsProps {
  readonly isFit: boolean;
  readonly onZoom: (factor: number) => void;
  readonly onFit: () => void;
}

function ZoomButtons({ isFit, onZoom, onFit }: ZoomButtonsProps) {
  return (
    <div className="timeline-zoom" role="toolbar" aria-label="Zoom">
      <Button variant="quiet" aria-label="Zoom out" title="Zoom out (−)" disabled={isFit} onClick={() => onZoom(0.5)}>
        <ZoomOut size={15} aria-hidden="true" />
      </Button>
      <Button variant="quiet" aria-label="Zoom in" title="Zoom in (+, or Ctrl and the wheel)" onClick={() => onZoom(2)}>
        <ZoomIn size={15} aria-hidden="true" />
      </Button>
      <Button variant="quiet" aria-label="Show the whole run" title="Whole run (0)" disabled={isFit} onClick={onFit}>
        <Maximize2 size={14} aria-hidden="true" />
      </Button>
    </div>
  );
}

interface ChartRowProps {
  readonly id: string;
  readonly row: TimelineRow;
  readonly index: number;
  readonly scale: number;
  readonly labels: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
}

const MAX_INDENT = 8;

/** One row of the chart. Its clicks and keys are handled by `Chart`. */
const ChartRow = memo(function ChartRow({ id, row, index, scale, labels, isActive, isSelected }: ChartRowProps) {
  const deep = Math.min(row.depth, MAX_INDENT);
  const end = row.end * scale;
  const isSeen = row.state !== "unseen";
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the chart has the focus and names its active row
    <div
      role="treeitem"
      aria-level={row.depth + 1}
      aria-selected={isSelected}
      id={id}
      data-row={index}
      data-active={isActive ? "" : undefined}
      className={`timeline-row timeline-row-${row.kind}`}
    >
      <div className="timeline-label" style={{ width: labels }}>
        {Array.from({ length: deep }, (_, level) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a line of the indentation
          <span key={level} className="timeline-indent" aria-hidden="true" />
        ))}
        <StateIcon state={row.state} size={14} />
        <span className="timeline-name">{escapeInvisible(row.label)}</span>
        {row.about && <span className="timeline-about">{escapeInvisible(row.about)}</span>}
      </div>
      <div className="timeline-track">
        {row.parts.map((part) => (
          <span
            key={`${part.kind} ${part.begin}`}
            className={`timeline-bar timeline-bar-${row.kind} timeline-part-${part.kind} timeline-is-${row.state}`}
            data-open={row.isOpen && part.end === row.end ? "" : undefined}
            style={{ left: part.begin * scale, width: Math.max(2, (part.end - part.begin) * scale) }}
          />
        ))}
        <span className="timeline-took" style={{ left: Math.max(end, row.begin * scale + 2) }}>
          <span className="visually-hidden">{`begins at ${formatExactDuration(row.begin)}, ${isSeen ? "took " : ""}`}</span>
          {isSeen ? formatExactDuration(row.end - row.begin) : STATE_LABELS.unseen}
        </span>
      </div>
    </div>
  );
});

interface Props {
  readonly timeline: Timeline;
  readonly focus: Item | null;
  readonly onSelect: (row: TimelineRow) => void;
}

const ROW_HEIGHT = 28;
const TICK_GAP = 64;

/**
 * The chart of bars below a time axis. The scrolling element has the focus and refers to the active row by id, because
 * rows unmount when they are out of sight.
 */
export const Chart = memo(function Chart({ timeline, focus, onSelect }: Props) {
  const { rows, span, isRunning } = timeline;
  const id = useId();
  const chart = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const axis = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const totalWidth = useElementWidth(scroller, 640);
  const labels = labelWidth(totalWidth);
  const width = totalWidth - labels;
  const { scale, isFit, zoomBy, fitAll } = useZoom(scroller, labels, width, span);
  const step = tickStep(scale, TICK_GAP);
  const [requested, setActive] = useState(0);
  const active = Math.max(0, Math.min(requested, rows.length - 1));
  const mounted = useMemo(() => [active], [active]);
  const [page, setPage] = useState(0);
  const { tooltip, hide, show } = useTooltip(chart);
  const noteScroll = useStickToEnd(scroller, isRunning, timeline);
  const selected = useMemo(() => (focus ? rows.findIndex((row) => row.item?.key === focus.key) : -1), [rows, focus]);

  const reveal = useCallback((index: number) => {
    setActive(index);
    list.current?.scrollToIndex(index, { align: "nearest" });
  }, []);
  useEffect(() => {
    if (selected >= 0) reveal(selected);
  }, [selected, reveal]);

  /** Shows the tooltip of a row if the chart has keyboard focus. Returns whether it is shown. */
  const showActive = (index: number): boolean => {
    const element = scroller.current;
    const row = element?.querySelector<HTMLElement>(`[data-row="${index}"]`);
    if (!element?.matches(":focus-visible") || !row) return false;
    show(row, { chart: labels + (rows[index]?.begin ?? 0) * scale - element.scrollLeft });
    return true;
  };
  /** Scrolls horizontally to the bar of a row, and shows its tooltip. */
  const revealBar = (index: number) => {
    const element = scroller.current;
    const row = rows[index];
    if (element === null || row === undefined) return;
    const isOut = row.end * scale < element.scrollLeft || row.begin * scale > element.scrollLeft + width;
    if (isOut) element.scrollLeft = Math.max(0, row.begin * scale - width / 5);
    showActive(index);
  };
  const latestRevealBar = useRef(revealBar);
  useLayoutEffect(() => {
    latestRevealBar.current = revealBar;
  });
  useEffect(() => {
    latestRevealBar.current(active);
  }, [active]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[active];
    const next = nextRow(rows, active, event.key);
    if (next !== null) reveal(next);
    else if ((event.key === "Enter" || event.key === " ") && row) onSelect(row);
    else if (event.key === "+" || event.key === "=") zoomBy(2);
    else if (event.key === "-") zoomBy(0.5);
    else if (event.key === "0") fitAll();
    else if (event.key === "Escape" && tooltip !== null) {
      hide();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };

  const rowAt = (target: EventTarget) => (target as Element).closest<HTMLElement>("[data-row]");
  const onClick = (target: EventTarget) => {
    const index = Number(rowAt(target)?.dataset.row ?? -1);
    const row = rows[index];
    if (row === undefined) return;
    setActive(index);
    onSelect(row);
  };
  const onPointer = (target: EventTarget, x: number) => {
    const row = rowAt(target);
    if (row) show(row, { pointer: x });
    else hide();
  };
  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    if (axis.current) axis.current.style.transform = `translateX(${-element.scrollLeft}px)`;
    setPage(Math.floor(element.scrollLeft / Math.max(1, width)));
    if (!showActive(active)) hide();
    noteScroll();
  };

  const tooltipRow = tooltip === null ? undefined : rows[tooltip.index];
  return (
    <div className="timeline-chart" ref={chart}>
      <Axis inner={axis} timeline={timeline} geometry={{ labels, width, scale }} step={step} page={page}>
        <ZoomButtons isFit={isFit} onZoom={zoomBy} onFit={fitAll} />
      </Axis>
      <div
        ref={scroller}
        className="timeline-scroll"
        role="tree"
        aria-label="What ran"
        aria-activedescendant={`${id}-${active}`}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onScroll={onScroll}
        onClick={(event) => onClick(event.target)}
        onPointerOver={(event) => event.pointerType === "mouse" && onPointer(event.target, event.clientX)}
        onPointerLeave={hide}
        onFocus={() => showActive(active)}
        onBlur={hide}
      >
        <div className="timeline-inner" style={{ width: isFit ? "100%" : labels + span * scale + END_ROOM }}>
          <div className="timeline-lines" style={{ left: labels - 1, backgroundSize: `${step * scale}px 100%` }} />
          <Virtualizer
            ref={list}
            data={rows}
            scrollRef={scroller}
            itemSize={ROW_HEIGHT}
            keepMounted={mounted}
            as={ListContainer}
          >
            {(row, index) => (
              <ChartRow
                key={row.key}
                id={`${id}-${index}`}
                row={row}
                index={index}
                scale={scale}
                labels={labels}
                isActive={index === active}
                isSelected={index === selected}
              />
            )}
          </Virtualizer>
          {isRunning && <div className="timeline-now" style={{ left: labels + span * scale }} />}
        </div>
      </div>
      {tooltip && tooltipRow && <Tooltip row={tooltipRow} place={tooltip} />}
    </div>
  );
});
