/** The views of the page: each is tried in light and dark, on a phone, and by the accessibility checker (views.test.js). */

/** `ready` is on the page when the view is complete. */
export const VIEWS = [
  { name: "neighbours", hash: "#word=ocean", ready: "#heat .cell" },
  { name: "hundred", hash: "#word=ocean&k=100", ready: "#heat .cell" },
  { name: "text", hash: "#text=the+deep+blue+ocean+qqqq&k=10", ready: "#heat .cell" },
  { name: "analogy", hash: "#analogy=king+-+man+%2B+woman", ready: "#heat .cell" },
  { name: "compare", hash: "#compare=coffee&with=tea&k=10", ready: "#heat .cell" },
  { name: "terms", hash: "#analogy=king+%2B+man+%2B+tree+%2B+house+%2B+river+%2B+tea+%2B+green+-+war+-+city&k=10", ready: "#heat .cell" },
  { name: "odd", hash: "#odd=red+green+dog+blue", ready: "#heat .cell" },
  { name: "classify", hash: "#classify=not+bad+at+all%2C+but+qqqq+and+far+too+long", ready: "#answer .ngrams" },
  { name: "expand", hash: "#expand=cheap+flights+to+the+qqqq+coast", ready: "#answer .expanded li" },
  { name: "tab", hash: "#tab=analogy", ready: "#method" },
  { name: "unknown", hash: "#word=oceann", ready: "#notice .chip" },
  { name: "bad-expression", hash: "#analogy=king+-+-+man", ready: "#notice .pointed" },
];
