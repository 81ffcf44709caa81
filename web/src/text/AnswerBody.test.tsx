import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { AnswerBody } from "./AnswerBody";

afterEach(cleanup);

test("an answer is a document with numbered sources that its citations link to", () => {
  const page = render(
    <AnswerBody
      title="Sales"
      content={"They rose [1], see [2] and [3].\n\n`[1]` [1](https://other.example)"}
      sources={[
        { title: "Report", url: "https://example.org/r" },
        { title: "A book", url: "" },
      ]}
    />,
  ).container;
  expect(page.querySelector("h2")?.textContent).toBe("Sales");
  expect([...page.querySelectorAll(".text a")].map((link) => [link.textContent, link.getAttribute("href")])).toEqual([
    ["[1]", "https://example.org/r"],
    ["1", "https://other.example/"],
  ]);
  expect([...page.querySelectorAll("li")].map((line) => line.textContent)).toEqual(["Report — example.org", "A book"]);
});

test("an answer that is not a string is shown as JSON", () => {
  const page = render(<AnswerBody title="" content={{ a: 1 }} sources={[]} />).container;
  expect(page.querySelector("pre")?.textContent).toBe('{\n  "a": 1\n}');
});
