"""Ready-made reports: the questions that everybody asks of a crawl, as SQL with a title, and how their answers are drawn."""
