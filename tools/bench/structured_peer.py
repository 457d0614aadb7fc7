"""Run by the Python of a peer's own environment: milliseconds of CPU that pyRdfa3 or extruct takes for a page on standard
input.

It prints the median of some runs and the number of triples or items found, as JSON.
"""

import json
import sys
import time

RUNS = 15


def pyrdfa(page: str) -> int:
    """Triples of RDFa, as pyRdfa3 finds them."""
    import io

    from pyRdfa import pyRdfa as Processor
    from pyRdfa.options import Options

    graph = Processor(
        Options(output_processor_graph=False), base="http://a.example/p", media_type="text/html"
    ).graph_from_source(io.StringIO(page))
    return len(graph)


def extruct(page: str) -> int:
    """Objects of the first level, as extruct finds them."""
    import extruct as library

    found = library.extract(page, base_url="http://a.example/p", syntaxes=[sys.argv[2]])
    return len(found[sys.argv[2]])


def main() -> None:
    page = sys.stdin.read()
    read = {"pyRdfa3": pyrdfa, "extruct": extruct}[sys.argv[1]]
    times = []
    found = read(page)
    for _ in range(RUNS):
        began = time.process_time()
        read(page)
        times.append(time.process_time() - began)
    json.dump({"ms": sorted(times)[RUNS // 2] * 1000, "found": found}, sys.stdout)


if __name__ == "__main__":
    main()
