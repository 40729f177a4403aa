/** Places labels beside points without overlaps; labels without room appear when their point is hovered or focused. */

const GAP = 9;
const LINE = 14;

/** For each side: the label's anchor, and the offset of its middle from its point. */
const SIDES = [
  ["start", GAP, 0],
  ["end", -GAP, 0],
  ["middle", 0, -GAP - LINE / 2],
  ["middle", 0, GAP + LINE / 2],
];

/**
 * Places the labels in order.
 * @param {{element, text, index}[]} marks in the order of their importance
 * @param {number[][]} at where each point is, in pixels
 */
export function place(marks, at, width, height) {
  const taken = at.map(([x, y]) => ({ left: x - 5, right: x + 5, top: y - 5, bottom: y + 5 }));
  for (const { element, text, index } of marks) {
    const [x, y] = at[index];
    text.labelWidth ??= text.getComputedTextLength();
    const fits = SIDES.map(([anchor, dx, dy]) => ({ anchor, dx, dy, box: box(text.labelWidth, anchor, x + dx, y + dy) }))
      .find(({ box }) => isInside(box, width, height) && !taken.some((other, owner) => owner !== index && overlap(box, other)));
    const { anchor, dx, dy } = fits ?? { anchor: x < width / 2 ? "start" : "end", dx: x < width / 2 ? GAP : -GAP, dy: 0 };
    text.setAttribute("text-anchor", anchor);
    text.setAttribute("x", dx);
    text.setAttribute("y", dy);
    element.classList.toggle("crowded", !fits);
    if (fits) taken.push(fits.box);
  }
}

function box(width, anchor, x, y) {
  const left = { start: x, end: x - width, middle: x - width / 2 }[anchor];
  return { left, right: left + width, top: y - LINE / 2, bottom: y + LINE / 2 };
}

const isInside = (box, width, height) => box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height;

const overlap = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
