import { configure } from "@testing-library/react";
import { vi } from "vitest";

/** For tests: what the simulated browser lacks and the parts of radix-ui and cmdk ask for. */
export function installJsdomPolyfills(): void {
  // A busy machine is no failure.
  configure({ asyncUtilTimeout: 10_000 });
  vi.setConfig({ testTimeout: 30_000 });
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  Element.prototype.scrollIntoView ??= () => {};
  Element.prototype.hasPointerCapture ??= () => false;
  Element.prototype.setPointerCapture ??= () => {};
  Element.prototype.releasePointerCapture ??= () => {};
}
