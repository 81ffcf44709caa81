/** Computes the ticks of a time axis, at round times. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 6, 12, 24].map((count) => count * HOUR),
];

interface Tick {
  readonly at: number;
  readonly label: string;
}

/** The smallest round step at which two ticks are at least `gap` px apart, at `scale` px per ms. */
export function tickStep(scale: number, gap: number): number {
  const least = gap / Math.max(scale, Number.MIN_VALUE);
  const day = 24 * HOUR;
  return STEPS.find((step) => step >= least) ?? Math.ceil(Math.min(least, Number.MAX_SAFE_INTEGER) / day) * day;
}

/** Returns the ticks between two times, one at each multiple of `step`. */
export function ticks(from: number, to: number, step: number): Tick[] {
  const marks: Tick[] = [];
  for (let at = Math.max(0, Math.ceil(from / step)) * step; at <= to; at += step)
    marks.push({ at, label: tickLabel(at, step) });
  return marks;
}

/** The label of a tick, with the precision of the step: 0, 200 ms, 1.5 s, 2 min, 2:30, 1:05 h. */
export function tickLabel(at: number, step: number): string {
  if (at === 0) return "0";
  if (at < SECOND) return `${at} ms`;
  if (at < MINUTE) return `${decimal(at / SECOND, step)} s`;
  const seconds = (at % MINUTE) / SECOND;
  if (at < HOUR) {
    const minutes = Math.floor(at / MINUTE);
    if (seconds === 0 && step >= MINUTE) return `${minutes} min`;
    return `${minutes}:${decimal(seconds, step).padStart(step < SECOND ? decimals(step) + 3 : 2, "0")}`;
  }
  const hours = Math.floor(at / HOUR);
  const minutes = Math.floor((at % HOUR) / MINUTE);
  if (step >= HOUR) return `${hours} h`;
  const clock = `${hours}:${String(minutes).padStart(2, "0")}`;
  if (step >= MINUTE) return `${clock} h`;
  return `${clock}:${decimal(seconds, step).padStart(step < SECOND ? decimals(step) + 3 : 2, "0")}`;
}

function decimal(seconds: number, step: number): string {
  return seconds.toFixed(decimals(step));
}

function decimals(step: number): number {
  return step >= SECOND ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3;
}
