import { expect, test, vi } from "vitest";
import { retryImport } from "./retryImport";

test("a load that fails twice is tried again until it succeeds", async () => {
  const load = vi.fn().mockRejectedValueOnce(new Error("cut")).mockRejectedValueOnce(new Error("cut"));
  load.mockResolvedValue("pane");
  await expect(retryImport(load, [0, 0, 0])).resolves.toBe("pane");
  expect(load).toHaveBeenCalledTimes(3);
});

test("a load that always fails rejects with its last error", async () => {
  const load = vi.fn().mockRejectedValueOnce(new Error("first")).mockRejectedValue(new Error("last"));
  await expect(retryImport(load, [0])).rejects.toThrow("last");
  expect(load).toHaveBeenCalledTimes(2);
});
