/** Functions that split, repeat and join the records of a log, for tests of the reducer. */

import type { LogRecord } from "../wire/events";

/** Returns a pseudo-random number generator with a fixed seed. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

export function randomChunks<T>(all: readonly T[], random: () => number): T[][] {
  const chunks: T[][] = [];
  for (let from = 0; from < all.length; ) {
    const size = 1 + Math.floor(random() * 5);
    chunks.push(all.slice(from, from + size));
    from += size;
  }
  return chunks;
}

/** Joins neighbouring deltas of one text into one record, as the server does. */
export function joinDeltas(records: readonly LogRecord[]): LogRecord[] {
  const packed: LogRecord[] = [];
  for (const record of records) {
    const last = packed[packed.length - 1];
    const key = deltaKey(record);
    if (last !== undefined && key !== null && key === deltaKey(last) && "text" in last.event && "text" in record.event)
      packed[packed.length - 1] = {
        ...record,
        event: { ...record.event, text: `${last.event.text}${record.event.text}` } as LogRecord["event"],
      };
    else packed.push(record);
  }
  return packed;
}

function deltaKey({ run_id, event }: LogRecord): string | null {
  const agent = event.agent_id ?? "";
  switch (event.kind) {
    case "text_delta":
    case "reasoning_delta":
      return [run_id, event.kind, agent, event.message_id].join();
    case "plan_delta":
      return [run_id, event.kind, agent, event.update ?? false].join();
    case "tool_args_delta":
      return [run_id, event.kind, agent, event.call_id].join();
    case "tool_output_delta":
      return [run_id, event.kind, agent, event.call_id, event.stream ?? "stdout"].join();
    default:
      return null;
  }
}

/** Returns a copy of the value in which each time is 0. */
export function withoutTimes(value: unknown): unknown {
  if (value instanceof Map) return new Map([...value].map(([key, one]) => [key, withoutTimes(one)]));
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value !== "object" || value === null) return value;
  const times = /^(at|.*At)$/;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, times.test(key) && one !== null ? 0 : withoutTimes(one)]),
  );
}

/** Freezes a value and everything in it, and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (value instanceof Map) {
    for (const one of value.values()) deepFreeze(one);
    const forbidden = () => {
      throw new TypeError("this map may not change");
    };
    Object.assign(value, { set: forbidden, delete: forbidden, clear: forbidden });
  } else for (const one of Object.values(value)) deepFreeze(one);
  return Object.freeze(value);
}
