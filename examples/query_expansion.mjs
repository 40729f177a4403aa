// Expands a search query by weighted terms: node query_expansion.mjs 'a frog in the pond'
const stop = new Set(("a an and are as at be but by for if in into is it no not of on or such that the their then there these " +
  "they this to was will with").split(" ")); // Lucene's
// Kindred's terms for all words, in one request; retries if the service is busy and says when.
async function ask(words, tries = 3) {
  const url = (process.env.WORDS_URL ?? "http://127.0.0.1:8080").replace(/\/+$/, "") + "/expand";
  const body = JSON.stringify({ top: 3, max_ratio: 0.35, texts: words });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(2000) });
  if (answer.ok) return (await answer.json()).results;
  const wait = answer.headers.get("Retry-After"); // 429 and 503 may say when to retry, in seconds
  if (tries === 1 || !["0", "1", "2"].includes(wait)) throw new Error(`HTTP status ${answer.status}`);
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  return ask(words, tries - 1);
}

const typed = process.argv.slice(2).join(" ").split(/\s+/).filter(Boolean);
if (!typed.length) throw new Error("give a query: node query_expansion.mjs 'a frog in the pond'");
const kept = typed.filter((word) => !stop.has(word.toLowerCase())), words = kept.length ? kept : typed;
const results = await ask(words).catch((error) => { // down, slow or busy: search as typed
  console.error("not expanded:", error.cause?.message ?? error.message);
  return words.map(() => ({}));
});
results.forEach(({ error }, i) => {
  for (const { suggestions } of error?.unknown ?? [])
    console.error(words[i], "is unknown; did you mean", suggestions.join(" or ") || "another word");
});
const quoted = (word) => (/^(?!(AND|OR|NOT)$)[\p{L}\p{N}]+$/u.test(word) ? word : JSON.stringify(word));
const groups = results.map(({ terms = [] }, i) => { // a typed word counts 1, a term its part of the largest weight
  const own = [words[i], words[i].toLowerCase(), ...words[i].toLowerCase().split(/[^\p{L}\p{N}]+/u)];
  const isNew = ({ term }) => !own.includes(term) && !stop.has(term) && /[\p{L}\p{N}]/u.test(term);
  const boosted = ({ term, weight }) => `${quoted(term)}^${(weight / terms[0].weight).toFixed(2)}`;
  return [quoted(words[i]), ...terms.filter(isNew).map(boosted)];
});
console.log(groups.map((group) => (group.length > 1 ? `(${group.join(" OR ")})` : group[0])).join(" AND "));
