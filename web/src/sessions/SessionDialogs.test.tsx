import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { RenameDialog } from "./SessionDialogs";

beforeAll(installJsdomPolyfills);
afterEach(cleanup);

test("the title is selected, and an empty one is not accepted", async () => {
  const onRename = vi.fn();
  const onClose = vi.fn();
  render(<RenameDialog entry={{ session_id: "a", title: "Bees" }} onClose={onClose} onRename={onRename} />);
  const user = userEvent.setup();
  expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "Title" }));
  await user.keyboard(" {Enter}");
  expect(onRename).not.toHaveBeenCalled();
  expect(onClose).not.toHaveBeenCalled();
  await user.keyboard("Wasps{Enter}");
  expect(onRename).toHaveBeenCalledWith("a", "Wasps");
  expect(onClose).toHaveBeenCalledOnce();
});
