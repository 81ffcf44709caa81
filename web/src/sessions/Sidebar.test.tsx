import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { Stores } from "../app/pageStores";
import { HOME } from "../app/route";
import type { AgentInfo } from "../client/api";
import { fakeSessionServer, sessionEntry } from "../testing/fakeSessions";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestPage, TestStores } from "../testing/providers";
import { Sidebar } from "./Sidebar";

// jsdom has no layout, so the virtual list would render nothing.
vi.mock("virtua", () => ({
  Virtualizer: ({ data, children }: { data: unknown[]; children: (one: unknown) => ReactNode }) => (
    <ul>
      {data.map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows have keys of their own
        <li key={at}>{children(one)}</li>
      ))}
    </ul>
  ),
}));

const AGENTS: AgentInfo[] = [
  { name: "deep", title: "Deep agent", description: "Plans.", framework: "langgraph", default: true },
  { name: "demo", title: "Demo", description: "Looks up.", framework: "function", default: false },
  {
    name: "code",
    title: "Coder",
    description: "",
    framework: "smolagents",
    default: false,
    sandbox: "landlock",
    sandbox_reason: "bubblewrap: it is not installed",
  },
  { name: "open", title: "Open", description: "", framework: "smolagents", default: false, sandbox: "none" },
];

beforeAll(installJsdomPolyfills);
afterEach(() => {
  cleanup();
  localStorage.clear();
  vi.unstubAllGlobals();
});

async function show(current: string | null = null) {
  const navigation = {
    route: { ...HOME, sessionId: current },
    openSession: vi.fn(),
    leaveSession: vi.fn(),
  };
  const agents = { agents: AGENTS, version: "2.0.0", agent: AGENTS[0], chooseAgent: vi.fn() };
  const stores = new Stores();
  const { container } = render(
    <TestStores stores={stores}>
      <TestPage navigation={navigation} agents={agents}>
        <Sidebar />
      </TestPage>
    </TestStores>,
  );
  await screen.findAllByRole("link");
  return { user: userEvent.setup(), container, stores, ...navigation, ...agents };
}

function titles(): string[] {
  const rows = screen.getAllByRole("link").map((link) => link.textContent ?? "");
  return rows.filter((title) => title !== "");
}

test("sessions are grouped, with state and title", async () => {
  const old = new Date(2020, 4, 5).getTime();
  fakeSessionServer(
    sessionEntry("a", "Bees", { state: "processing", run_state: "running" }),
    sessionEntry("d", "Owls", { state: "processing", run_state: "waiting" }),
    sessionEntry("b", "Tides", { state: "error" }),
    sessionEntry("c", "Kites", { state: "expired", active_at: old }),
  );
  await show("b");
  expect(screen.getAllByRole("heading").map((one) => one.textContent)).toEqual(["Today", "May 2020"]);
  const state = (name: RegExp) =>
    within(screen.getByRole("link", { name })).getByRole("img").getAttribute("aria-label");
  expect(state(/Bees/)).toBe("running");
  expect(state(/Owls/)).toBe("waiting for you");
  expect(screen.getByRole("link", { current: "page" }).textContent).toBe("Tides");
});

test("a title with markup is shown as text", async () => {
  const hostile = "<img src=x onerror=alert(1)>";
  fakeSessionServer(sessionEntry("a/../b", hostile));
  const { container } = await show();
  const link = screen.getByRole("link", { name: `done ${hostile}` });
  expect(link.textContent).toBe(hostile);
  expect(link.getAttribute("href")).toBe("#/s/a%2F..%2Fb");
  expect(container.querySelector('img[src="x"]')).toBe(null);
});

test("arrow keys move, Enter opens, and Tab reaches one row only", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"), sessionEntry("b", "Tides"), sessionEntry("c", "Kites"));
  const { user, openSession } = await show("b");
  screen.getByRole("link", { name: /Tides/ }).focus();
  await user.keyboard("{ArrowDown}");
  await waitFor(() => expect(document.activeElement?.textContent).toBe("Kites"));
  await user.keyboard("{ArrowDown}{Home}{ArrowUp}");
  await waitFor(() => expect(document.activeElement?.textContent).toBe("Bees"));
  await user.keyboard("{Enter}");
  expect(openSession).toHaveBeenCalledWith("a");
  const stops = screen.getAllByRole("link").filter((link) => link.tabIndex === 0);
  expect(stops.map((link) => link.textContent || link.ariaLabel)).toEqual(["Bees", "Documentation"]);
});

test("F2 renames in place, and Esc cancels", async () => {
  const server = fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = await show();
  screen.getByRole("link", { name: /Bees/ }).focus();
  await user.keyboard("{F2}");
  await user.keyboard("Wasps{Escape}");
  expect(titles()).toContain("Bees");
  expect(server.asked).toEqual([]);
  screen.getByRole("link", { name: /Bees/ }).focus();
  await user.keyboard("{F2}Hornets{Enter}");
  expect(titles()).toContain("Hornets");
  await waitFor(() => expect(server.asked).toEqual(["PATCH /sessions/a"]));
});

test("the menu renames, and the field gets the focus", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = await show();
  await user.click(screen.getByRole("button", { name: "More for Bees" }));
  await user.click(await screen.findByRole("menuitem", { name: /Rename/ }));
  const field = await screen.findByRole<HTMLInputElement>("textbox", { name: "Title" });
  expect(document.activeElement).toBe(field);
  expect(field.selectionEnd).toBe(4);
});

test("deleting asks for confirmation", async () => {
  const server = fakeSessionServer(sessionEntry("a", "Bees"), sessionEntry("b", "Tides"));
  const { user, leaveSession } = await show("a");
  screen.getByRole("link", { name: /Bees/ }).focus();
  await user.keyboard("{Delete}");
  const dialog = await screen.findByRole("alertdialog");
  expect(within(dialog).getByText(/“Bees”/)).toBeTruthy();
  await user.keyboard("{Enter}");
  expect(server.asked).toEqual([]);
  screen.getByRole("link", { name: /Bees/ }).focus();
  await user.keyboard("{Delete}");
  await user.click(await screen.findByRole("button", { name: "Delete" }));
  await waitFor(() => expect(leaveSession).toHaveBeenCalledWith("a"));
  expect(titles()).not.toContain("Bees");
});

test("a refused rename is reverted with the reason", async () => {
  const server = fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = await show();
  server.refuses = true;
  screen.getByRole("link", { name: /Bees/ }).focus();
  await user.keyboard("{F2}Wasps{Enter}");
  expect(await screen.findByText("Not renamed: it is locked")).toBeTruthy();
  expect(titles()).toContain("Bees");
});

test("a right click opens the menu, which copies the link", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = await show();
  await user.pointer({ target: screen.getByRole("link", { name: /Bees/ }), keys: "[MouseRight]" });
  await user.click(await screen.findByRole("menuitem", { name: "Copy link" }));
  expect(await navigator.clipboard.readText()).toMatch(/#\/s\/a$/);
});

test("a link that cannot be copied shows an error", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = await show();
  vi.spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("refused"));
  await user.pointer({ target: screen.getByRole("link", { name: /Bees/ }), keys: "[MouseRight]" });
  await user.click(await screen.findByRole("menuitem", { name: "Copy link" }));
  expect(await screen.findByText("Could not copy the link")).toBeTruthy();
});

test("a search filters, and an empty result shows a message", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"), sessionEntry("b", "Tides"));
  const { user } = await show();
  const field = screen.getByRole("textbox", { name: "Search conversations" });
  await user.type(field, "tid");
  await waitFor(() => expect(titles()).not.toContain("Bees"));
  await user.type(field, "xx");
  expect(await screen.findByText("Nothing is called “tidxx”.")).toBeTruthy();
  await user.keyboard("{Escape}");
  await waitFor(() => expect(titles()).toContain("Bees"));
  expect(document.activeElement).toBe(field);
});

test("the menus choose the agent and the theme", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"));
  const { user, chooseAgent, stores } = await show();
  await user.click(screen.getByRole("button", { name: "Agent for new conversations: Deep agent" }));
  const chosen = await screen.findByRole("menuitemradio", { name: /Deep agent/ });
  expect(chosen.getAttribute("aria-checked")).toBe("true");
  expect(chosen.textContent).toContain("default");
  const named = (name: RegExp) => screen.getByRole("menuitemradio", { name }).textContent;
  expect(named(/Coder/)).toContain("smolagents · sandbox: landlock (bubblewrap: it is not installed)");
  expect(named(/Open/)).toContain("smolagents · no sandbox");
  await user.click(screen.getByRole("menuitemradio", { name: /Demo/ }));
  expect(chooseAgent).toHaveBeenCalledWith("demo");
  await user.click(screen.getByRole("button", { name: /Light or dark/ }));
  await user.click(await screen.findByRole("menuitemradio", { name: "Dark" }));
  expect(stores.theme.getSnapshot().choice).toBe("dark");
});
