/** Words that pages, shells, addresses and expressions take for something else. */

export const ODD_WORDS = [
  "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&amp;", "it's", 'say "hi"', "back\\slash", "\\\"", "new york",
  "three little words", "+", "-", "+x", "-x", "c++", "x-", "3*x", ".5*x", "5.*x", "1e5*x", "1.5E-3*x", "1e*x", "*", "*x", "12",
  "(x)", "x)", "$HOME", "`id`", "$(id)", "a%2Bb", "a&b=c", "#word=x", "?", "a/b", "..", "%", "é", "ß", "日本語", "שלום", "مرحبا",
  "🦀", "👩‍👩‍👧", "e\u0301", "a\u200bb", "a\u00a0b", "a\u3000b", "a\u0085b", "\ufeffx", "a\u2028b", "a\u202eb", "constructor", "__proto__",
  "pneumonoultramicroscopicsilicovolcanoconi", "x".repeat(200), "word", "true", "null",
];

/** Vectors that differ, in the order of the words. */
export const oddRows = () => ODD_WORDS.map((word, place) => [word, [1, Math.cos(place), Math.sin(2.3 * place), Math.sin(place)]]);
