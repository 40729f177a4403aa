/**
 * Zooming and dragging by wheel, mouse, touch and keys. A wheel without Ctrl scrolls the page as usual, and so does one
 * finger while everything is shown.
 */

/** Steps of the keys, in pixels. */
const STEP = 40;
const MOST_ZOOM = 24;

/** Zooms by this factor around a point of the screen. */
export function around(zoom, factor, x, y) {
  const scale = Math.min(Math.max(zoom.scale * factor, 1), MOST_ZOOM);
  const by = scale / zoom.scale;
  return { scale, x: x - (x - zoom.x) * by, y: y - (y - zoom.y) * by };
}

/**
 * Starts listening on a drawing.
 * @param {{get: function, set: function}} zoom reads and changes `{scale, x, y}`
 * @returns {function} stops it
 */
export function watchZoom(drawing, { get, set }) {
  const stop = new AbortController();
  const listen = (name, listener, options = {}) =>
    drawing.addEventListener(name, listener, { ...options, signal: stop.signal });
  /** Fingers and pressed buttons, by their ids. */
  const held = new Map();
  let dragged = false;

  const position = (event) => {
    const { left, top } = drawing.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  listen(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { x, y } = position(event);
      set(around(get(), Math.exp(-event.deltaY / 200), x, y));
    },
    { passive: false },
  );
  listen("dblclick", (event) => {
    const { x, y } = position(event);
    set(around(get(), 2, x, y));
  });
  listen("pointerdown", (event) => {
    held.set(event.pointerId, position(event));
    dragged = false;
  });
  listen("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    // The pointer was released outside.
    if (event.pointerType === "mouse" && event.buttons === 0) {
      held.delete(event.pointerId);
      return;
    }
    const now = position(event);
    const far = Math.hypot(now.x - before.x, now.y - before.y);
    // A small movement still counts as a click.
    if (!dragged && held.size === 1 && far < 4) return;
    dragged = true;
    drawing.setPointerCapture(event.pointerId);
    const others = [...held].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    let zoom = get();
    if (others.length === 0) {
      zoom = { ...zoom, x: zoom.x + now.x - before.x, y: zoom.y + now.y - before.y };
    } else {
      const [other] = others;
      const apart = (point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
      zoom = around(zoom, apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    held.set(event.pointerId, now);
    set(zoom);
  });
  for (const name of ["pointerup", "pointercancel"]) listen(name, (event) => held.delete(event.pointerId));
  // The end of a drag is not a click on a word. Enter is one, and has no detail.
  listen("click", (event) => dragged && event.detail > 0 && event.preventDefault(), { capture: true });
  listen("dragstart", (event) => event.preventDefault());
  listen("keydown", (event) => {
    const zoom = get();
    const { width, height } = drawing.getBoundingClientRect();
    const changed = {
      "+": () => around(zoom, 1.5, width / 2, height / 2),
      "-": () => around(zoom, 1 / 1.5, width / 2, height / 2),
      0: () => ({ scale: 1, x: 0, y: 0 }),
      ArrowLeft: () => ({ ...zoom, x: zoom.x + STEP }),
      ArrowRight: () => ({ ...zoom, x: zoom.x - STEP }),
      ArrowUp: () => ({ ...zoom, y: zoom.y + STEP }),
      ArrowDown: () => ({ ...zoom, y: zoom.y - STEP }),
    }[event.key];
    if (!changed || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    set(changed());
  });
  return () => stop.abort();
}
