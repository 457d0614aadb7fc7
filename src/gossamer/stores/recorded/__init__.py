"""Records of any WARC or ARC file by URL, whoever wrote the file.

Place in the flow: `index` notes once where each record lies, `records` brings one back as the answer that it was. `gossamer simweb`
serves them over loopback, a runtime of mobile crawlers (:mod:`gossamer.mobile.sources`) hands them to crawlers.
"""
