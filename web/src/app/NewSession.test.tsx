import { cleanup, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import type { AgentInfo } from "../wire/api";
import { promptsFor } from "./examplePrompts";
import { Welcome } from "./NewSession";
import { UnderstudyNotice } from "./UnderstudyNotice";

const deep: AgentInfo = {
  name: "deep",
  title: "Deep agent",
  description: "",
  framework: "langgraph",
  default: true,
  model: "understudy",
};

afterEach(cleanup);

test("three prompts of the chosen agent, which ask it", async () => {
  const onAsk = vi.fn();
  render(<Welcome agent={{ ...deep, name: "codact", default: false }} onAsk={onAsk} />);
  const prompts = within(screen.getByRole("list")).getAllByRole("button");
  expect(prompts).toHaveLength(3);
  await userEvent.setup().click(screen.getByText("Add up 12, 19, 23 and 41 in Python"));
  expect(onAsk).toHaveBeenCalledWith("Add up 12, 19, 23 and 41 in Python", "codact");
});

test("says that a stand-in plays, and only then", () => {
  const { rerender } = render(<Welcome agent={deep} onAsk={() => {}} />);
  expect(screen.getByText(/follows a script/)).toBeTruthy();
  expect(screen.getByText(/LIMELIGHT_MODEL=.* limelight serve$/)).toBeTruthy();
  rerender(<Welcome agent={{ ...deep, model: "gpt-5-mini" }} onAsk={() => {}} />);
  expect(screen.queryByText(/follows a script/)).toBe(null);
});

test("a quiet line leads to how to use a real model", async () => {
  render(<UnderstudyNotice />);
  expect(screen.queryByText(/LIMELIGHT_MODEL=/)).toBe(null);
  await userEvent.setup().click(screen.getByRole("button", { name: "Use a real one" }));
  expect(within(screen.getByRole("dialog")).getByText(/LIMELIGHT_MODEL=.* limelight serve$/)).toBeTruthy();
});

test("an agent of one's own has prompts too, whatever it is called", () => {
  for (const name of ["mine", "constructor", "__proto__", ""]) expect(promptsFor(name)).toHaveLength(3);
});
