import { configure } from "@testing-library/react";

/** Adds what jsdom lacks and radix-ui and cmdk need. */
export function installJsdomPolyfills(): void {
  // A slow machine must not fail a test.
  configure({ asyncUtilTimeout: 10_000 });
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
