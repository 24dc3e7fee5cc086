// How the search ranks pages: Sphinx's numbers, with the list of changes and the decisions last. A search for "hang" matches
// the title "Changes".
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    page === "CHANGELOG" || page.startsWith("docs/decisions/") || ? score / 100 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
