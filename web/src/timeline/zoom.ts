/** How many px a ms is wide. Pure. */

/** Room behind the last bar for what it says. */
export const END_ROOM = 76;
const MAX_TRACK = 4_000_000;
const MAX_SCALE = 20;

/** The scale at which the whole run is seen. */
export function fitScale(width: number, span: number): number {
  return Math.max(40, width - END_ROOM) / Math.max(1, span);
}

/** A wished scale as it may be; null is the whole run. */
export function bounded(wished: number, width: number, span: number): number | null {
  const fit = fitScale(width, span);
  const most = Math.max(fit, Math.min(MAX_SCALE, MAX_TRACK / Math.max(1, span)));
  const scale = Math.min(wished, most);
  return scale <= fit * 1.001 ? null : scale;
}

export function labelsWidth(width: number): number {
  return Math.round(Math.min(300, Math.max(128, width * 0.38)));
}
