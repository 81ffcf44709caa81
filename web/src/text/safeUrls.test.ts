import { expect, test } from "vitest";
import { anchorOf, isMisleading, safeImage, safeUrl } from "./safeUrls";

test.each([
  ["https://example.org/a?b=c#d", "https://example.org/a?b=c#d"],
  ["HTTP://Example.org", "http://example.org/"],
  ["mailto:me@example.org", "mailto:me@example.org"],
])("%s may be linked", (address, href) => {
  expect(safeUrl(address)).toBe(href);
});

test.each([
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  " javascript:alert(1)",
  "java\nscript:alert(1)",
  "java\tscript:alert(1)",
  "\u0001javascript:alert(1)",
  "javascript&colon;alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "vbscript:x",
  "file:///etc/passwd",
  "blob:https://example.org/1",
  "ftp://example.org",
  "//evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "https:/evil.example",
  "https:evil.example",
  "https:///evil.example",
  "https://good.example@evil.example/",
  "https://e\u200bvil.example",
  "https://\u202eevil.example",
  "https://",
  "tel:1",
  "relative/path",
  "/sessions/delete",
  "",
])("%j may not be linked", (address) => {
  expect(safeUrl(address)).toBeNull();
});

test.each([
  ["#a-b", "a-b"],
  ["#caf%C3%A9", "café"],
  ["#", null],
  ["#%E0%A4%A", null],
  ["x#a", null],
])("%s names the anchor %s", (address, place) => {
  expect(anchorOf(address)).toBe(place);
});

test.each(["artifacts/a_1/chart.png", "/artifacts/x", "./artifacts/x.png", "data:image/png;base64,iVBORw0KGgo="])(
  "the image %s is shown",
  (address) => {
    expect(safeImage(address)).toBe(address);
  },
);

test.each([
  "https://example.org/pixel.png",
  "//artifacts/x.png",
  "artifacts/../sessions",
  "artifacts/%2e%2e/sessions",
  "artifacts//evil.example",
  "artifacts/x?next=1",
  "data:image/svg+xml;base64,PHN2Zz4=",
  "data:image/png,x",
  "data:text/html;base64,PHN2Zz4=",
  `data:image/png;base64,${"A".repeat(300_000)}`,
  "blob:x",
])("the image %.60s is not shown", (address) => {
  expect(safeImage(address)).toBeNull();
});

test.each([
  ["https://bank.example/login", "https://evil.example/", true],
  ["bank.example", "https://evil.example/", true],
  ["www.bank.example", "https://bank.example/x", false],
  ["the bank", "https://evil.example/", false],
  ["e.g. this", "https://example.org/", false],
])("%j for %s is misleading: %s", (label, address, wrong) => {
  expect(isMisleading(label, address)).toBe(wrong);
});
