import { afterEach, expect, it, vi } from "vitest";
import { api, callSegment, serverUrl } from "./api";

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

it.each([
  ["call_1", "call_1"],
  ["functions.search:0", "functions.search%3A0"],
  ["a/b", "a%2Fb"],
  ["%2F", "%252F"],
  ["a b?c#d", "a%20b%3Fc%23d"],
  ["...", "..."],
  ["..", "~Li4"],
  ["a/../b", "~YS8uLi9i"],
  ["a\nb", "~YQpi"],
  ["", "~"],
  ["~x", "~fng"],
  ["\\ü?>", "~XMO8Pz4"],
])("the call %j is named %s in a path", (callId, segment) => {
  expect(callSegment(callId)).toBe(segment);
});

it("fetches a call whose id is a path of dots under its encoded id", async () => {
  vi.stubGlobal("document", { baseURI: "http://h/" });
  const fetched = vi.fn((_url: string) => Promise.resolve(new Response("{}")));
  vi.stubGlobal("fetch", fetched);
  await api.toolCall("run_1", "../../keys");
  expect(new URL(String(fetched.mock.calls[0]?.[0]), "http://h/").pathname).toBe("/runs/run_1/tools/~Li4vLi4va2V5cw");
});
