import { expect, it } from "vitest";
import { errorIn } from "./errorText";

it("is found in the result, where it is whole", () => {
  const long = "x".repeat(5000);
  expect(errorIn(`Error: ${long}`, `${long.slice(0, 1999)}…`)).toBe(long);
  expect(errorIn("Error: no such file", "no such file")).toBe("no such file");
  expect(errorIn("Error: Error: twice", "Error: twice")).toBe("Error: twice");
  expect(errorIn("Error: once", "Error: once")).toBe("Error: once");
});

it("is not found in a result of another kind", () => {
  expect(errorIn("three rows", "the fourth row is broken")).toBeNull();
  expect(errorIn("", "rejected")).toBeNull();
});
