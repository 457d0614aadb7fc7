"""The forms in which a crawl is exported: their names, and how files of them end.

Place in the flow: `gossamer export` and the dashboard's form take these and no others.
"""

#: Forms of the triples of a crawl (`--rdf`), and how their files end.
TRIPLE_FORMS = {"nquads": ".nq", "turtle": ".ttl", "jsonld": ".jsonld", "rdfxml": ".rdf"}

#: Forms that write one table.
TABLE_FORMS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}

#: The copy to browse, which is a folder.
FOLDER_FORM = "folder"

#: All of them, and how their files end.
EXPORT_FORMS = {"wacz": ".wacz", **TABLE_FORMS, "cdxj": ".cdxj", "urls": ".txt", FOLDER_FORM: "", **TRIPLE_FORMS}
