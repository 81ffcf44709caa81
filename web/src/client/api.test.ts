import { afterEach, expect, it, vi } from "vitest";
import { serverUrl } from "./api";

afterEach(() => vi.unstubAllGlobals());

it.each([
  ["http://h:8000/", "runs/r", "http://h:8000/runs/r"],
  ["http://h:8000/?x=/y/#/s/a", "/runs/r", "http://h:8000/runs/r"],
  ["https://h/limelight/#/s/a", "runs/r", "https://h/limelight/runs/r"],
  ["https://h/limelight/", "/limelight/runs/r", "https://h/limelight/runs/r"],
  ["https://h/limelight/index.html", "/limelight/runs/r?raw=1", "https://h/limelight/runs/r?raw=1"],
  // A server that does not know its root path.
  ["https://h/limelight/", "/runs/r", "https://h/limelight/runs/r"],
  ["https://h/lime/", "/limelight/r", "https://h/lime/limelight/r"],
  // A path with a colon is not a URL with a scheme.
  ["https://h/limelight/", "artifacts/a:b", "https://h/limelight/artifacts/a:b"],
])("below %s the path %s is found", (page, path, found) => {
  vi.stubGlobal("document", { baseURI: page });
  expect(serverUrl(path)).toBe(found);
});
