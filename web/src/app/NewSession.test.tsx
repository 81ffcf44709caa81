import { cleanup, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import type { AgentInfo } from "../client/api";
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

test("three prompts of the chosen agent are shown, and a click sends one to it", async () => {
  const onAsk = vi.fn();
  render(<Welcome agent={{ ...deep, name: "codact", default: false }} onAsk={onAsk} />);
  const prompts = within(screen.getByRole("list")).getAllByRole("button");
  expect(prompts).toHaveLength(3);
  await userEvent.setup().click(screen.getByText("Add up 12, 19, 23 and 41 in Python"));
  expect(onAsk).toHaveBeenCalledWith("Add up 12, 19, 23 and 41 in Python", "codact");
});

test("a prompt cannot be clicked while no agent is known", () => {
  render(<Welcome agent={undefined} onAsk={() => {}} />);
  const prompts = within(screen.getByRole("list")).getAllByRole<HTMLButtonElement>("button");
  expect(prompts.map((prompt) => prompt.disabled)).toEqual(prompts.map(() => true));
});

test("the understudy is explained only for an agent that uses it", () => {
  const { rerender } = render(<Welcome agent={deep} onAsk={() => {}} />);
  expect(screen.getByText(/follows a script/)).toBeTruthy();
  expect(screen.getByText(/LIMELIGHT_MODEL=.* limelight serve$/)).toBeTruthy();
  rerender(<Welcome agent={{ ...deep, model: "gpt-5-mini" }} onAsk={() => {}} />);
  expect(screen.queryByText(/follows a script/)).toBe(null);
});

test("the understudy notice opens a dialog with the command for a real model", async () => {
  render(<UnderstudyNotice />);
  expect(screen.queryByText(/LIMELIGHT_MODEL=/)).toBe(null);
  await userEvent.setup().click(screen.getByRole("button", { name: "Use a real one" }));
  expect(within(screen.getByRole("dialog")).getByText(/LIMELIGHT_MODEL=.* limelight serve$/)).toBeTruthy();
});

test("an agent that is not built in has prompts too, whatever its name", () => {
  for (const name of ["mine", "constructor", "__proto__", ""]) expect(promptsFor(name)).toHaveLength(3);
});
