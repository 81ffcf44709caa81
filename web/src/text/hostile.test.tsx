import { cleanup, render, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, test } from "vitest";
import { AnswerBody } from "./AnswerBody";
import { CodeBlock } from "./CodeBlock";
import { JsonView } from "./JsonView";
import { Markdown } from "./Markdown";

afterEach(cleanup);

const FORBIDDEN =
  "script, iframe, object, embed, style, form, base, meta, link, svg:not(.lucide), foreignObject, video, audio, source, template, textarea, select, math:not(.katex math)";

/** Fails if the element contains anything active, e.g. scripts, event handlers or external images. */
function expectHarmless(page: Element) {
  expect([...page.querySelectorAll(FORBIDDEN)].map((element) => element.outerHTML)).toEqual([]);
  for (const element of page.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      expect(name).not.toMatch(/^(on|srcdoc|srcset|formaction|xlink|ping|background|poster|data-formula|id$|name$)/i);
      if (name === "href") expect(value).toMatch(/^(https?:\/\/[^/]|mailto:|#)/);
      if (name === "style") expect(value).not.toMatch(/url\(|expression|position:\s*fixed/i);
      if (name === "src")
        expect(value).toMatch(/^(http:\/\/localhost(:\d+)?\/artifacts\/|data:image\/(png|jpeg|gif|webp);)/);
    }
    if (element instanceof HTMLAnchorElement && element.target) {
      expect(element.rel).toBe("noopener noreferrer nofollow");
    }
  }
  expect(Object.hasOwn(globalThis, "harmed")).toBe(false);
}

const RUN = "globalThis.harmed=1";

const TEXTS = [
  `<script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg onload="${RUN}"><script>${RUN}</script></svg>`,
  `<svg><a xlink:href="javascript:${RUN}"><text>x</text></a></svg>`,
  `<iframe srcdoc="<script>${RUN}</script>"></iframe>`,
  `<object data="javascript:${RUN}"></object><embed src="javascript:${RUN}">`,
  `<style>@import 'https://evil.example/x.css';</style>`,
  `<form action="https://evil.example"><input name=q><button formaction="javascript:${RUN}">x</button></form>`,
  `<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">`,
  `<a href="javascript:${RUN}" onclick="${RUN}">x</a>`,
  `<details open ontoggle=${RUN}>x</details>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${RUN}&gt;">`,
  `<div\nonclick="${RUN}"\n>\n\n**x**\n\n</div>`,
  `<!-- --><script>${RUN}</script>`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `<?php ${RUN} ?>`,
  `</div></div></article><script>${RUN}</script>`,
  `[x](javascript:${RUN})`,
  `[x](JaVaScRiPt:${RUN})`,
  `[x]( javascript:${RUN})`,
  `[x](<java\tscript:${RUN}>)`,
  `[x](java&#10;script:${RUN})`,
  `[x](java&Tab;script:${RUN})`,
  `[x](javascript&colon;${RUN})`,
  `[x](&#106;avascript:${RUN})`,
  `[x](\u0001javascript:${RUN})`,
  `[x](\\javascript:${RUN})`,
  `[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `[x](vbscript:msgbox)`,
  `[x](file:///etc/passwd)`,
  `[x](blob:https://example.org/1)`,
  `[x](//evil.example/a)`,
  `[x](\\\\evil.example/a)`,
  `[x](/sessions/1)`,
  `[x](https://good.example@evil.example/)`,
  `[x](https://example.org "\\" onmouseover=${RUN} ")`,
  `[x](https://example.org/"onmouseover="${RUN})`,
  `[x][r]\n\n[r]: javascript:${RUN}`,
  `[r]\n\n[r]: <data:text/html,x> "t"`,
  `<javascript:${RUN}>`,
  `<data:text/html,x>`,
  `javascript:${RUN} www.evil.example/"onclick="${RUN}`,
  `![x](https://evil.example/pixel.png)`,
  `![x](//evil.example/pixel.png)`,
  `![x](http://127.0.0.1:8000/sessions/delete)`,
  `![x](javascript:${RUN})`,
  `![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)`,
  `![x](data:image/svg+xml,<svg onload=${RUN}>)`,
  `![x](data:text/html,x)`,
  `![x](artifacts/../sessions/1)`,
  `![x](artifacts/..%2fsessions)`,
  `![x"onerror="${RUN}](artifacts/a.png)`,
  `[![x](https://evil.example/p.png)](javascript:${RUN})`,
  `![x][i]\n\n[i]: https://evil.example/i.png`,
  `x[^1]\n\n[^1]: <script>${RUN}</script> [y](javascript:${RUN}) ![z](https://evil.example/z.png)`,
  `x[^<img onerror=1>]\n\n[^<img]: y`,
  `x[^__proto__] [constructor] [__proto__]\n\n[^__proto__]: y\n[^constructor]: z`,
  `| <script>${RUN}</script> | [x](javascript:${RUN}) |\n|---|---|\n| ![x](https://evil.example/t.png) | <img src=x onerror=${RUN}> |`,
  `# <img src=x onerror=${RUN}>\n\n## [x](javascript:${RUN})`,
  `- [ ] <input autofocus onfocus=${RUN}>`,
  `\`\`\`html\n<script>${RUN}</script>\n\`\`\``,
  `\`\`\`"><img src=x onerror=${RUN}>\nx\n\`\`\``,
  `\`\`\`mermaid\ngraph TD; A["<img src=x onerror=${RUN}>"]\n\`\`\``,
  `$\\href{javascript:${RUN}}{x}$ $$\\htmlData{a=1}{x}$$ $\\url{javascript:${RUN}}$`,
  `$$\\includegraphics{https://evil.example/x.png}$$ $\\htmlStyle{position:fixed}{x}$`,
  `$x<script>${RUN}</script>^2$`,
  `\ue000\ue010\ue010\ue013\ue01c\ue001 [x](\ue000\ue010\ue010\ue016\ue01a\ue001avascript:${RUN})`,
  `[$j_1$](javascript:${RUN}) [x](https://evil.example/$a_1$)`,
  `\u202ejavascript\u202c:x`,
  `&lt;script&gt;${RUN}&lt;/script&gt; &#60;img src=x onerror=${RUN}&#62;`,
  `<a id="root" name="body">x</a> # {#root}`,
  `Text\0with\u001b]8;;javascript:${RUN}\u0007link\u001b]8;;\u0007`,
];

describe("hostile text is harmless", () => {
  test.each(TEXTS)(
    "%j",
    async (text) => {
      for (const streaming of [true, false]) {
        const page = render(<Markdown text={text} streaming={streaming} />).container;
        expectHarmless(page);
      }
      for (let length = 1; length < text.length; length += 11) {
        expectHarmless(render(<Markdown text={text.slice(0, length)} streaming />).container);
        cleanup();
      }
      expectHarmless(render(<JsonView value={text} />).container);
      expectHarmless(render(<JsonView value={{ [text]: [text] }} />).container);
      expectHarmless(render(<CodeBlock code={text} language={text} />).container);
      expectHarmless(
        render(
          <AnswerBody
            title={text}
            content={`${text} [1][2]`}
            sources={[
              { title: text, url: "" },
              { title: "", url: text },
              { title: text, url: text },
            ]}
          />,
        ).container,
      );
    },
    30_000,
  );
});

test("tags are shown as text", () => {
  const page = render(<Markdown text={"a <b>c</b>\n\n<script>x</script>\n\n<div>\n<p>y</p>\n</div>"} />).container;
  expect(page.textContent).toBe("a <b>c</b><script>x</script><div>\n<p>y</p>\n</div>");
});

test.each([
  ["[x](javascript:alert)", "xjavascript:alert"],
  ["[x](//evil.example)", "x//evil.example"],
  ["<javascript:alert>", "javascript:alert"],
  ["[https://bank.example](https://evil.example)", "https://bank.example (evil.example)"],
])("%s is shown as %s", (text, shown) => {
  expect(render(<Markdown text={text} />).container.textContent).toBe(shown);
});

test("an image of another server is text and a link", () => {
  const page = render(<Markdown text="![a chart](https://example.org/c.png)" />).container;
  expect(page.querySelector("img")).toBeNull();
  expect(page.querySelector("a")?.href).toBe("https://example.org/c.png");
  expect(page.textContent).toBe("a charthttps://example.org/c.png");
});

test("images of this server and small data URLs are shown", () => {
  const page = render(<Markdown text={"![a](artifacts/a_1) ![b](data:image/png;base64,iVBORw0KGgo=)"} />).container;
  expect([...page.querySelectorAll("img")].map((image) => image.getAttribute("src"))).toEqual([
    "http://localhost:3000/artifacts/a_1",
    "data:image/png;base64,iVBORw0KGgo=",
  ]);
});

test("rendered formulas have no links, images or attributes from the text", async () => {
  const text = `$x_1$ $\\href{javascript:${RUN}}{y}$ $\\htmlId{root}{z}$ $$\\includegraphics{https://evil.example/x.png}$$`;
  const page = render(<Markdown text={text} />).container;
  await waitFor(() => expect(page.querySelector(".katex")).not.toBeNull(), { timeout: 10_000 });
  expectHarmless(page);
}, 20_000);
