import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api } from "../client/api";
import { TestStores } from "../testing/providers";
import { AuthGate } from "./AuthGate";

const KEY = "lml_right";
let isIn = false;

/** A server that needs an API key and keeps a valid one as a cookie of the browser. */
beforeEach(() => {
  isIn = false;
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = new URL(url).pathname;
    if (path === "/auth/login") {
      isIn = (JSON.parse(String(init.body)) as { key: string }).key === KEY;
      if (isIn) return new Response(null, { status: 204 });
    }
    if (path === "/auth/logout") {
      isIn = false;
      return new Response(null, { status: 204 });
    }
    if (isIn) return Response.json(path === "/auth/me" ? { user: "ann", name: "", open: false } : { agents: [] });
    return Response.json({ detail: "this is no key of this server", code: "unauthorized" }, { status: 401 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

async function locked() {
  render(
    <TestStores>
      <AuthGate>the page</AuthGate>
    </TestStores>,
  );
  await expect(api.agents()).rejects.toThrow();
  return screen.findByLabelText("Key");
}

test("a refused request shows the key screen, and a valid key shows the page", async () => {
  const field = await locked();
  expect(field.getAttribute("type")).toBe("password");
  expect(screen.queryByText("the page")).toBeNull();
  await userEvent.type(field, ` ${KEY} {Enter}`);
  expect(await screen.findByText("the page")).toBeTruthy();
});

test("an invalid key shows the server's message, and another key can be tried", async () => {
  const field = await locked();
  await userEvent.type(field, "lml_wrong{Enter}");
  expect((await screen.findByRole("alert")).textContent).toBe("this is no key of this server");
  await userEvent.clear(field);
  await userEvent.type(field, `${KEY}{Enter}`);
  expect(await screen.findByText("the page")).toBeTruthy();
});
