/** How Chromium is started in tests. */

export const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
  // All pages are one site's. Isolated sites would start a spare process beside the one of each window.
  "--disable-site-isolation-trials",
  // Nothing is looked up outside: a request to another host would fail and be seen.
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
];
