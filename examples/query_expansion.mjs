// Expands a search query by similar words: node query_expansion.mjs 'frog pond'
// Kindred's answers for all words, in one request; retries if the service is busy and says when.
async function ask(words, tries = 3) {
  const url = (process.env.WORDS_URL ?? "http://127.0.0.1:8080") + "/nearest";
  const body = { k: 2, min_score: 0.6, fold_case: true, queries: words.map((text) => ({ text })) };
  const headers = { "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(2000);
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (answer.ok) return (await answer.json()).results;
  const wait = answer.headers.get("Retry-After"); // 429 and 503 may say when to retry, in seconds
  if (tries === 1 || !["0", "1", "2"].includes(wait)) throw new Error(`HTTP status ${answer.status}`);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  return ask(words, tries - 1);
}

const words = process.argv.slice(2).join(" ").split(/\s+/).filter(Boolean);
if (!words.length) throw new Error("give a query: node query_expansion.mjs 'frog pond'");
const results = await ask(words).catch((error) => { // down, slow or busy: search as typed
  console.error("not expanded:", error.cause?.message ?? error.message);
  return words.map(() => ({}));
});
results.forEach(({ error }, i) => {
  for (const { suggestions } of error?.unknown ?? [])
    console.error(words[i], "is unknown; did you mean", suggestions.join(" or ") || "another word");
});
const quoted = (word) => (/^(?!(AND|OR|NOT)$)[\p{L}\p{N}]+$/u.test(word) ? word : JSON.stringify(word));
const groups = results.map(({ neighbors = [] }, i) => [words[i], ...neighbors.map((n) => n.word)].map(quoted));
console.log(groups.map((group) => (group.length > 1 ? `(${group.join(" OR ")})` : group[0])).join(" AND "));
