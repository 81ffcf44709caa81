/** The browser's memory of this page. A private window may refuse it; then nothing is remembered, and nothing breaks. */

export function recall<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`limelight.${key}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: unknown): void {
  try {
    if (value === undefined || value === null) localStorage.removeItem(`limelight.${key}`);
    else localStorage.setItem(`limelight.${key}`, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works without.
  }
}
