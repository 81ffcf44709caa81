import { expect, it } from "vitest";
import { goldenSession, onlyRun } from "../testing/sampleRuns";
import { nextRow } from "./keyboardNavigation";
import { layout } from "./layout";
import { clampScale, fitScale, labelWidth } from "./zoom";

const { rows } = layout(onlyRun(goldenSession("sub_agents")), 0);

it.each([
  [0, "ArrowDown", 1],
  [0, "ArrowUp", 0],
  [9, "ArrowDown", 9],
  [0, "End", 9],
  [0, "PageDown", 9],
  [9, "PageUp", 0],
  [5, "Home", 0],
  [2, "ArrowRight", 3],
  [3, "ArrowRight", 3],
  [6, "ArrowLeft", 0],
  [5, "ArrowLeft", 4],
  [0, "x", null],
  [99, "ArrowDown", null],
])("from row %i, %s moves to %s", (from, key, to) => {
  expect(nextRow(rows, from, key)).toBe(to);
});

it("the scale is limited to the whole run and the maximal scroll width", () => {
  expect(clampScale(0.00001, 500, 60_000)).toBeNull();
  expect(clampScale(1, 500, 60_000)).toBe(1);
  expect(clampScale(1e9, 500, 60_000)).toBe(20);
  expect((clampScale(1e9, 500, 1e7) ?? 0) * 1e7).toBeLessThanOrEqual(4_000_000);
  expect(clampScale(1e9, 500, 0)).toBeNull();
  expect(fitScale(500, 1000) * 1000).toBeLessThan(500);
  expect(labelWidth(380)).toBeLessThan(160);
});
