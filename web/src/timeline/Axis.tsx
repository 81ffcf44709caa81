import { memo, type ReactNode, type Ref } from "react";
import { ticks } from "./ticks";

interface Props {
  readonly inner: Ref<HTMLDivElement>;
  readonly labels: number;
  readonly width: number;
  readonly scale: number;
  readonly step: number;
  readonly span: number;
  /** Which window's width of the track is looked at; the marks around it are drawn. */
  readonly page: number;
  readonly isRunning: boolean;
  /** What stands above the names. */
  readonly children: ReactNode;
}

/** Room for the word at the live edge. */
const NOW_ROOM = 40;

/** The time above the bars. It moves with them sideways but not down. */
export const Axis = memo(function Axis({ inner, labels, width, scale, step, span, page, isRunning, children }: Props) {
  const from = ((page - 1) * width) / scale;
  const to = Math.max(Math.min(span, ((page + 2) * width) / scale), width / scale);
  const isFree = (at: number) => !isRunning || Math.abs(at - span) * scale > NOW_ROOM;
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
});
