import { expect, it } from "vitest";
import { tickLabel, tickStep, ticks } from "./ticks";

it.each([
  [2, 80, 50],
  [0.04, 80, 2000],
  [0.004, 80, 30_000],
  [0.0001, 80, 900_000],
  [1e-9, 80, 79_963_200_000 + 86_400_000],
])("tickStep returns a round step at %f px per ms", (scale, gap, step) => {
  expect(tickStep(scale, gap)).toBe(step > 86_400_000 ? Math.ceil(gap / scale / 86_400_000) * 86_400_000 : step);
  expect(tickStep(scale, gap) * scale).toBeGreaterThanOrEqual(gap);
});

it("ticks are limited to the visible range", () => {
  expect(ticks(0, 6500, 2000).map((tick) => tick.label)).toEqual(["0", "2 s", "4 s", "6 s"]);
  expect(ticks(61_000, 121_000, 30_000).map((tick) => tick.label)).toEqual(["1:30", "2:00"]);
  expect(ticks(-50, 0, 10)).toHaveLength(1);
});

it.each([
  [0, 2000, "0"],
  [200, 200, "200 ms"],
  [1500, 500, "1.5 s"],
  [1020, 20, "1.02 s"],
  [120_000, 60_000, "2 min"],
  [150_000, 30_000, "2:30"],
  [61_500, 500, "1:01.5"],
  [3_900_000, 300_000, "1:05 h"],
  [7_200_000, 3_600_000, "2 h"],
  [3_661_000, 1000, "1:01:01"],
])("%i ms at steps of %i ms is labelled %s", (at, step, label) => {
  expect(tickLabel(at, step)).toBe(label);
});
