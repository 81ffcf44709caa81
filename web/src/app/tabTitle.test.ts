// @vitest-environment jsdom

import { cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { useTabTitle } from "./tabTitle";

afterEach(cleanup);

test("the tab shows the session's title and whether its newest run runs or waits", () => {
  const { rerender } = renderHook(({ title, state }) => useTabTitle(title, state), {
    initialProps: { title: "Bees", state: "running" as "running" | "waiting" | "finished" | undefined },
  });
  expect(document.title).toBe("● Bees · Limelight");
  rerender({ title: "Bees", state: "waiting" });
  expect(document.title).toBe("? Bees · Limelight");
  rerender({ title: "Bees", state: "finished" });
  expect(document.title).toBe("Bees · Limelight");
  rerender({ title: "", state: undefined });
  expect(document.title).toBe("Limelight");
});
