// How search orders its results: a page whose title has all the words that were asked for comes first.
var Scorer = {
  score: (result) => {
    const [, title, , , score, , kind] = result;
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/);
    const found = kind !== "object" && words.every((word) => title.toLowerCase().includes(word));
    return found ? score + 60 - Math.min(50, title.length) : score;
  },
  objNameMatch: 6,
  objPartialMatch: 3,
  objPrio: { 0: 5, 1: 3, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
