import { configure } from "@testing-library/react";

/** Adds DOM functions that radix-ui and cmdk need and jsdom lacks. */
export function installJsdomPolyfills(): void {
  // A long timeout, so that tests also pass on a slow machine.
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
