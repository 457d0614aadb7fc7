"""Wrong uses of the command line, a line each: exit code 2, one clear line that says what to do, never a traceback of ours."""

import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakeWeb

#: Commands about a crawl: DIR holds none, is a file, is not there, or is a folder of another kind.
OF_A_CRAWL = """
resume DIR
status DIR
pause DIR
continue DIR
stop DIR
checkpoint DIR
set DIR delay=2s
block DIR a.test
traps DIR
log DIR
why DIR SEED
cat DIR SEED
query DIR 'SELECT 1'
report DIR broken
rank DIR
changes DIR
diff DIR SEED
sparql DIR 'SELECT * {?s ?p ?o}'
index DIR
search DIR word
export DIR --to urls
serve-sparql DIR
mcp DIR
verify DIR
delete DIR SEED
trim DIR --keep-versions 1
reprocess DIR
exchange DIR
merge DIR change.toml
designations DIR
"""

#: Other wrong uses. SEED is a URL that nobody serves, PAGE one that the crawl in `crawled` has.
OTHERS = """
crawl
crawl ''
crawl nothing
crawl http://
crawl 'http://a b/'
crawl mailto:a@b.test
crawl gopherx://a.test/
crawl SEED -o crawled
crawl SEED --resume
crawl --resume -o absent
crawl SEED -o file.txt
crawl SEED -o file.txt/x
crawl SEED --resume --overwrite -o crawled
crawl SEED -o other --overwrite
crawl SEED -o other
crawl SEED --dept 3
crawl SEED --depth x
crawl SEED --listen 127.0.0.1:8650
crawl SEED --depth -1
crawl SEED --depth
crawl SEED --scope hosts
crawl SEED --include '('
crawl SEED --exclude '['
crawl SEED --filter 'texx(a)'
crawl SEED --filter 'text('
crawl SEED --until 'foo('
crawl SEED --only 'a..b'
crawl SEED --max-time 10x
crawl SEED --max-time -1s
crawl SEED --max-bytes 1GX
crawl SEED --max-pages 1.5
crawl SEED --max-page-size 0
crawl SEED --delay fast
crawl SEED --delay -1
crawl SEED --rate 0
crawl SEED --concurrency 0
crawl SEED --per-host 0
crawl SEED --agents 0
crawl SEED --agents 100
crawl SEED --agents 2 --max-agents 1
crawl SEED --agents 2 --crawlers 2
crawl SEED --strategy best
crawl SEED --robots maybe
crawl SEED --header 'no colon'
crawl SEED --header 'Bad Name: x'
crawl SEED --header-for a.test
crawl SEED --auth nopair
crawl SEED --auth 'a.test=$ABSENT_VARIABLE'
crawl SEED --auth a.test=@absent
crawl SEED --cookies always
crawl SEED --cookie-file absent
crawl SEED --cookie-file folder
crawl SEED --proxy nonsense
crawl SEED --proxy ftp://127.0.0.1:1
crawl SEED --proxy @absent
crawl SEED --proxy http://127.0.0.1:99999
crawl SEED --ca-file absent
crawl SEED --ca-file file.txt
crawl SEED --resolve nonsense
crawl SEED --resolve a.test=nonsense
crawl SEED --allow-network 10.0.0.0/99
crawl SEED --language xxxxxxxx
crawl SEED --normalize everything
crawl SEED --ads absent
crawl SEED --traps maybe
crawl SEED --analysis half
crawl SEED --items items.doc
crawl SEED --items absent/folder/items.csv
crawl SEED --item-key x
crawl SEED --sinks absent.toml
crawl SEED --sinks file.txt
crawl SEED --triple-store nonsense
crawl SEED --mirror file.txt
crawl SEED --release all
crawl SEED --accept-loss
crawl SEED --linger soon
crawl SEED --retries 9
crawl SEED --seeds absent
crawl SEED --seeds folder
crawl --seeds empty.txt
crawl --seeds bad-seeds.txt
crawl --seeds latin.txt
crawl --seeds -
crawl SEED --config absent
crawl SEED --config file.txt
crawl SEED --config bad.toml
crawl SEED --set nothing
crawl SEED --set frontir.max_pages=1
crawl SEED --set frontier.max_pags=1
crawl SEED --set frontier.max_pages=x
crawl --wiring absent.toml
crawl --wiring file.txt
crawl --wiring bad.toml
crawl SEED --dashboard nonsense
crawl SEED --dashboard 127.0.0.1:99999
crawl SEED --dashboard 0.0.0.0:8080x
crawl SEED --fail-on sometimes
crawl SEED --recrawl sometimes
crawl SEED --recrawl every=soon
crawl SEED --min-interval 2d --max-interval 1d
crawl SEED --recrawl-rate 7
crawl SEED --render sometimes
crawl SEED --mobile nonsense
crawl SEED --exchange files --agents 2
crawl SEED --exchange-key absent
crawl SEED --designation master
crawl SEED --masters 2
crawl SEED --user-agent a --contact b --verbos
crawl SEED -x
crawl --help nogroup
resume crawled --max-pages x
resume crawled SEED
resume crawled --scope domain --config seeds.toml
resume
status
status crawled crawled
status crawled --jso
set crawled
set crawled delay
set crawled delay=2s
set crawled nothing=1
pause crawled
block crawled
checkpoint crawled --restore absent
why crawled
why crawled nonsense
cat crawled http://nowhere.test/
cat crawled PAGE --at yesterday
cat crawled PAGE --markdown --raw
query crawled
query crawled 'SELEC 1'
query crawled 'SELECT nothing FROM pages'
query crawled 'SELECT * FROM pags'
query crawled 'SELECT 1' -f xls
query crawled 'SELECT 1' -o absent/x.csv
query crawled "COPY pages TO 'x'"
report crawled nothing
export crawled
export crawled --to pdf
export crawled --to csv --table nothing
export crawled --to csv --table pages -o absent/x
export crawled --to wacz -o folder
export crawled --to folder -o file.txt
export crawled --to urls --since never
sparql crawled 'SELEC'
sparql crawled 'SELECT * {?s ?p ?o}'
search crawled word
search crawled '"'
index crawled --text some
changes crawled --since never
diff crawled nonsense
diff crawled PAGE --at 2020
log crawled --kind nothing
log crawled --since never
delete crawled
trim crawled
trim crawled --keep-versions 0
reprocess crawled --processor nothing
reprocess crawled --spider absent.py
reprocess crawled --wiring absent.toml
verify crawled --dep
traps crawled --release nothing
rewire crawled absent.toml
merge crawled absent
exchange crawled
designations crawled
fetch
fetch nonsense
fetch PAGE --nothing
inspect
inspect absent.html
inspect folder
inspect page.html --content-type nonsense
robots nonsense
robots SEED --file absent
robots SEED --agent ''
check-filter 'foo('
check-filter 'nothing(x)' SEED
topology absent.toml
topology --format gif
topology SEED --depth x
demo --nothing
simweb --pages x
simweb --pages 10 --hosts 100
simweb --set nothing=1
simweb --audit absent
simweb --warc absent
simweb --port 99999
shell absent.html
rdf absent.html
rdf page.html --format n3
run
run absent.py
run file.txt
run folder
run nospider.py
new
new thing x
new spider 'a b'
new spider nospider
about --nothing
sink
sink check absent.toml
runtime
runtime check
runtime check --serve nonsense
runtime check --serve a.test=absent
runtime --listen nonsense --serve a.test=folder
runtime status --state absent
crawl SEED --max-bytes ''
crawl SEED --depth ''
crawl SEED --include ''
crawl SEED --contact ''
crawl SEED --mirror ''
crawl SEED --header ''
crawl SEED --max-pages -1
crawl SEED --max-pages 1e3
crawl SEED --max-pages NaN
crawl SEED --max-time inf
crawl SEED --max-time '5 apples'
crawl SEED --bandwidth 0
crawl SEED --delay 1y
crawl SEED --retries -1
crawl SEED --language english
crawl SEED --contact nonsense
crawl SEED --user-agent 'Agent ünïcödé'
crawl SEED --resolve '*=1.2.3.4.5'
crawl SEED --i-own-these-hosts=maybe
crawl SEED --wiring folder
crawl SEED --wiring binary.bin
crawl SEED --config binary.bin
crawl SEED --set frontier.concurrency=
crawl SEED --topic-page absent
crawl SEED --relevance nothing
crawl SEED --recrawl every=-1d
crawl SEED --store http://a.test/
crawl SEED --store file.txt
crawl SEED --lease 0
crawl SEED --keep-local 1GB
crawl SEED --runtime a.test=folder
crawl SEED --keep-words everything
crawl SEED --render-rule nonsense
crawl SEED --render always --browser absent
crawl SEED --mirror crawled
crawl SEED --agent 1
crawl SEED --policy by-domain
crawl SEED -o
crawl page.html
crawl a.test:80:80
crawl http://127.0.0.1:99999/
crawl 'http://[::1/'
crawl --seeds binary.bin
resume crawled --max-pages 0
resume crawled --seeds bad-seeds.txt
resume crawled --output x
resume crawled --depth 3
resume crawled --agents 2 --crawlers 1
resume crawled/warc
status ''
status crawled --interval NaN
watch absent
log crawled --last -1
log crawled --agent nothing
why crawled 127.0.0.1:80/x
why crawled 'http://a b/'
cat crawled PAGE --at 99999999999999999999
cat crawled PAGE --rendered
cat crawled 127.0.0.1:80
query crawled ''
query crawled 'DROP TABLE pages'
query crawled "SELECT * FROM read_csv('file.txt')"
query crawled 'SELECT 1' -o folder
report broken crawled
report crawled broken --limit x
report crawled broken links -f csv
rank crawled --urls -1
changes crawled --kind wrong
diff crawled PAGE
sparql crawled 'INSERT DATA { <a:b> <a:c> <a:d> }'
sparql crawled 'SELECT * {?s ?p ?o}' --timeout soon
search crawled word -n 0
export crawled --to csv --images
export crawled --to csv --overlap 3
export crawled --to urls --raw
export crawled --to folder -o crawled
export crawled --to chunks --chunk-words 0
delete crawled 'http://a b/'
trim crawled --keep-versions x
reprocess crawled --spider nospider.py
verify crawled --deep=yes
checkpoint crawled ../x
rewire crawled folder
ask crawled nothing
serve-sparql crawled --port 99999
mcp crawled --max-bytes lots
mcp absent
dashboard absent
dashboard crawled --address nonsense
dashboard crawled --certificate file.txt --key file.txt
fetch ''
fetch SEED --max-page-size -5
fetch 'javascript:alert(1)'
inspect ''
inspect page.html --base nonsense
robots ''
robots SEED --file folder
normalize --base nonsense x
normalize --normalize nothing http://a.test/
normalize --parameters absent http://a.test/
check-filter ''
topology binary.bin
demo --seconds inf
demo --seconds NaN
demo -o crawled
simweb --hosts 0
simweb --pages 1e99
simweb --latency fast
simweb --set trap_share=7
simweb --audit file.txt
bench nothing
shell folder
rdf ''
render nonsense
runtime run absent.toml
new spider class
new spider ''
run ''
run binary.bin
run spider.py:nothing
run spider.py -o crawled
sink check folder
merge crawled crawled
nothing
crawl PAGE --listen x --agents 2 -o fresh
crawl PAGE --archive file.txt -o fresh
crawl PAGE --archive disk --no-warc -o fresh
crawl PAGE --archive disk --copies 2 --no-warc -o fresh
crawl PAGE --include '(?=x)' -o fresh
crawl PAGE --exclude '(a)\\1' -o fresh
crawl PAGE --cluster nothing -o fresh
crawl PAGE --place a=b -o fresh
crawl PAGE --checkpoint-every 0 -o fresh
crawl PAGE --min-free-disk 200% -o fresh
crawl PAGE --proxy socks4://127.0.0.1:1 -o fresh
crawl PAGE --proxy 127.0.0.1 -o fresh
crawl PAGE --allow-network 300.0.0.0/8 -o fresh
crawl PAGE --resolve a.test:80:127.0.0.1 -o fresh
crawl PAGE --items x.csv --items x.csv -o fresh
crawl PAGE --items folder -o fresh
crawl PAGE --interval 1d..1h:true -o fresh
crawl PAGE --recrawl every=1d --recrawl-rate 120% -o fresh
crawl PAGE --render-rule 'always:foo(' -o fresh
crawl PAGE --only http://a.test/ -o fresh
crawl PAGE --contact a@b@c -o fresh
crawl PAGE --filter 'domain(a.test) and' -o fresh
crawl PAGE --header X: -o fresh
crawl PAGE --delay 1s2 -o fresh
crawl PAGE --quiet=yes
crawl PAGE --no-delay
crawl PAGE --until
crawl PAGE --fail-on=
crawl PAGE --scope=
crawl PAGE https://
crawl -
crawl ftp://
crawl data:text/html,hi
crawl PAGE -o crawled/warc
crawl PAGE -o /proc/x
resume PAGE
resume crawled crawled
resume crawled/crawl.toml
status PAGE
status crawled/warc
watch crawled
query crawled 'SELECT 1; SELECT 2'
query crawled 'SELECT count( FROM pages'
query crawled 'SELECT url + 1 FROM pages'
query crawled 'SELECT nofunc(url) FROM pages'
query crawled 'SELECT url FROM pages GROUP BY host'
query crawled 'SELECT 1 FROM pages WHERE url = 3'
query crawled 'SELECT * FROM pages LIMIT -1'
query crawled 'PRAGMA database_size'
query crawled 'SELECT * FROM generate_series(1, 100000)' -f csv -o /dev/full
export crawled --to wacz --table pages
export crawled --to nquads
export crawled --to markdown -o file.txt
export crawled --to folder --since yesterday
cat crawled ''
cat crawled PAGE --at 1999
delete crawled '*'
trim crawled --keep-versions -1
verify file.txt
traps crawled --confirm ''
block crawled 'a b'
set crawled =1
log crawled --host
fetch PAGE PAGE
inspect page.html --base
check-filter 'domain(' PAGE
topology --format
demo --seconds 0
simweb --pages 0
simweb --port -1
bench pages --nothing
rdf page.html --drop
new processor a/b
about crawled --contact
mcp crawled --http 0
changes crawled --since 3x
rank crawled --hosts x
runspider spider.py
crawl PAGE -s DEPTH_LIMIT=3
crawl PAGE --maxHops 3
craw
--nothing
help nothing
"""


#: Uses of a name that is longer than any file's, TOO_LONG.
OF_NO_NAME = """
crawl PAGE -o TOO_LONG
crawl PAGE --mirror TOO_LONG
crawl PAGE --archive TOO_LONG
crawl PAGE --store TOO_LONG -o fresh
crawl PAGE --wiring TOO_LONG
crawl TOO_LONG
status TOO_LONG
resume TOO_LONG
export crawled --to csv -o TOO_LONG
export crawled --to folder -o TOO_LONG
query crawled 'SELECT 1' -o TOO_LONG
inspect TOO_LONG
topology TOO_LONG
dashboard TOO_LONG
new spider TOO_LONG
demo -o TOO_LONG
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a crawl in `crawled`, and with what else the uses name."""
    folder = tmp_path_factory.mktemp("wrong")
    for name in ("folder", "other"):
        (folder / name).mkdir()
    for name, text in {
        "file.txt": "hello",
        "other/notes.txt": "x",
        "empty.txt": "",
        "bad-seeds.txt": "http://a.test/\n::::\n",
        "bad.toml": "depht = 1",
        "seeds.toml": 'seeds = ["http://a.test/"]',
        "page.html": "<p>hi",
        "nospider.py": "x = 1",
        "spider.py": "import gossamer\nspider = gossamer.Spider('http://a.test/')\n@spider.page()\ndef f(page): pass\n",
        "change.toml": "",
        "scrapy.toml": "DOWNLOAD_DELAY = 2",
        "nul.toml": 'output = "a\\u0000b"',
    }.items():
        (folder / name).write_text(text)
    (folder / "binary.bin").write_bytes(bytes(range(128, 256)) + b"\0\n")
    (folder / "nowhere").symlink_to("absent")
    (folder / "latin.txt").write_bytes(b"http://a.test/\xff\n")
    with FakeWeb({"/": "<title>Hello</title><p>Hello"}) as web:
        assert main(["crawl", web.url("/"), "-o", str(folder / "crawled"), "--quiet", "--delay", "0"]) == 0
        (folder / "page").write_text(web.url("/"))
        yield folder


def told(use: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(place)
    monkeypatch.delenv("GOSSAMER_CONTACT", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    words = {"SEED": "http://127.0.0.1:9/", "PAGE": (place / "page").read_text()}
    before = {path.name for path in place.iterdir()}
    capsys.readouterr()
    code = main([words.get(word, word) for word in shlex.split(use)])
    said = capsys.readouterr().err.splitlines()
    assert (code, len(said)) == (2, 1), said
    assert said[0].startswith("gossamer: ") and "Traceback" not in said[0]
    assert len(said[0]) > len("gossamer: ") + 20, "a remedy takes some words"
    assert {path.name for path in place.iterdir()} == before, "a refused use leaves nothing behind"
    return said[0]


@pytest.mark.parametrize("directory", ["absent", "file.txt", "folder", "other"])
@pytest.mark.parametrize("use", lines(OF_A_CRAWL))
def test_a_command_that_is_given_no_crawl_says_so_in_one_line(
    use: str, directory: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(use.replace("DIR", directory), place, monkeypatch, capsys)


@pytest.mark.parametrize("use", lines(OF_A_CRAWL))
def test_the_url_of_a_page_is_no_crawl_and_the_order_of_both_is_told(
    use: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "name the directory of the crawl first" in told(use.replace("DIR", "SEED"), place, monkeypatch, capsys)


@pytest.mark.parametrize("use", lines(OTHERS))
def test_a_wrong_use_is_refused_in_one_line(
    use: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(use, place, monkeypatch, capsys)


@pytest.mark.parametrize("use", lines(OF_NO_NAME))
def test_a_name_that_no_file_can_have_is_refused_in_one_line(
    use: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "File name too long" in told(use.replace("TOO_LONG", "a" * 300), place, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("use", "meant"),
    [
        ("crawl SEED --wait 2", "there is no option '--wait'; --delay TIME does the same here"),
        ("crawl SEED --scopeType host", "--scope does the same here"),
        ("fetch SEED --cacert file.txt", "--ca-file FILE does the same here"),
        ("crawl SEED --generateWACZ", "gossamer export DIR --to wacz does the same here"),
        ("crawl SEED -s DEPTH_LIMIT=3", "there is no option '-s'; --depth N does the same here"),
        ("crawl SEED -sUSER_AGENT=me", "--user-agent TEXT does the same here"),
        ("crawl SEED -s FEED_EXPORT_INDENT=3", "settings are options here, as --depth for DEPTH_LIMIT"),
        ("run spider.py -s CLOSESPIDER_PAGECOUNT=9", "--max-pages N does the same here"),
        ("run spider.py -O books.csv", "--items FILE does the same here"),
        ("run spider.py -a tag=humor", "gossamer run FILE SEED does the same here"),
        ("crawl SEED --set ROBOTSTXT_OBEY=False", "there is no setting 'ROBOTSTXT_OBEY'; --robots does the same here"),
        ("crawl SEED --set disposition.minDelayMs=2000", "--delay TIME does the same here"),
        ("set crawled DEPTH_LIMIT=3", "there is no option 'DEPTH_LIMIT'; depth=N does the same here"),
        ("set crawled --host a.test download_delay=3", "delay=TIME does the same here"),
        ("log crawled --last 99999999999999999999", "99999999999999999999 is not in the range 0<=x<=1000000"),
        ("report crawled broken --limit 99999999999999999999", "is not in the range"),
        ("crawl SEED --set depth=3", "'depth' is an option; write --depth 3"),
        ("crawl SEED --set depth_limit=3", "there is no setting 'depth_limit'; --depth N does the same here"),
        ("crawl SEED --maxHops 3", "there is no option '--maxHops'; --depth N does the same here"),
        (
            "crawl SEED --config scrapy.toml",
            "scrapy.toml: unknown option 'DOWNLOAD_DELAY'; --delay TIME does the same here",
        ),
        ("crawl SEED --config nul.toml", "nul.toml: output holds a null character"),
        ("crawl SEED -o nowhere", "nowhere is a link that leads nowhere; remove it, or name another directory with -o"),
        (
            "runtime --serve http://a.test=absent",
            "absent cannot be served: No such file or directory; bring it back, or give another place",
        ),
        ("crawl SEED -r", "every crawl follows links, and --depth bounds it"),
        ("crawl SEED -np", "--scope prefix does the same here"),
        ("crawl SEED -H", "--scope any or --header FIELD does the same here"),
        ("runspider spider.py", "there is no command 'runspider'; `gossamer run` does the same here"),
        ("unpause crawled", "`gossamer continue` does the same here"),
        (
            "reprocess crawled --processor htlm",
            "there is no processor 'htlm'; did you mean 'html'? Known: css, css-links",
        ),
        ("reprocess crawled --processor http", "there is no processor 'http'"),
        ("query crawled \"SELECT * FROM read_csv('file.txt')\"", "can read the tables of this crawl, and no file"),
        ("crawl SEED --depht 3", "there is no option '--depht'; did you mean '--depth'?"),
        ("crawl SEED --detials full", "there is no option '--detials'"),
        ("stat crawled", "there is no command 'stat'; did you mean 'status'?"),
        ("crawl SEED --max-pages 0", "--max-pages cannot be 0; give a whole number of pages, at least 1"),
        ("crawl SEED --max-page-size 0", "--max-page-size cannot be 0; give a whole number of bytes, at least 1 B"),
        ("continue crawled", "`gossamer resume crawled` goes on with it"),
        ("why crawled 127.0.0.1:80/x", "did you mean http://127.0.0.1:80/x?"),
        ("crawl SEED --header ''", "--header is empty; give it a value, or leave it out"),
    ],
)
def test_a_wrong_use_names_what_was_meant(
    use: str, meant: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert meant in told(use, place, monkeypatch, capsys)
