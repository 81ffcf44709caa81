import { expect, test } from "vitest";
import type { SessionEntry } from "../client/api";
import { groupTitle, rowsByDate, startOfDay } from "./dateGroups";

const today = startOfDay(new Date(2026, 2, 12, 15).getTime());
const at = (...when: [number, number, number, number?]) => groupTitle(new Date(...when).getTime(), today);

test("groups are days, a week, months, and years", () => {
  expect(at(2026, 2, 12)).toBe("Today");
  expect(at(2026, 2, 13)).toBe("Today");
  expect(at(2026, 2, 11, 23)).toBe("Yesterday");
  expect(at(2026, 2, 11, 0)).toBe("Yesterday");
  expect(at(2026, 2, 10, 23)).toBe("Previous 7 days");
  expect(at(2026, 2, 5, 1)).toBe("Previous 7 days");
  expect(at(2026, 2, 4, 23)).toBe("March");
  expect(at(2026, 0, 1)).toBe("January");
  expect(at(2025, 11, 31)).toBe("December 2025");
});

test("each group has one heading", () => {
  const entry = (id: string, when: number) => ({ session_id: id, active_at: when }) as SessionEntry;
  const rows = rowsByDate([entry("a", today + 5), entry("b", today + 1), entry("c", today - 1)], today);
  expect(rows.map((row) => (row.kind === "heading" ? row.title : row.entry.session_id))).toEqual([
    "Today",
    "a",
    "b",
    "Yesterday",
    "c",
  ]);
  expect(rowsByDate([], today)).toEqual([]);
});
