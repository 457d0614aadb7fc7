"""The prose of a page, its language and its fingerprint."""

import html
import re
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costs import is_linear

from gossamer.documents import terms
from gossamer.documents.document import Document
from gossamer.documents.language import detect, primary
from gossamer.documents.text import GIST, MAX_PART, MAX_TEXT, PART, all_text, lines, main_text, prose
from gossamer.storage.seen.contract import THRESHOLD, distance
from gossamer.testing.storage import visit

PROSE = "The committee has decided that the old bridge over the river will be replaced by a new one in the coming year, because"
PROSE += " it is no longer safe for the many people who walk across it every day on their way to work."


PROSE_BEFORE = "The committee met on Monday and decided, after a long debate, that it would meet again on Tuesday."


def text(page: str) -> str:
    return main_text(page.encode())


@pytest.mark.parametrize(
    "noise",
    [
        "<nav><p>" + PROSE + "</nav>",
        "<footer>" + PROSE + "</footer>",
        "<ASIDE class=x>" + PROSE + "</ASIDE>",
        "<pre>" + PROSE + "</pre>",
        "<script>if (a < b) document.write('<p>" + PROSE + "')</script>",
        "<style>p > q {}</style><!-- " + PROSE + " <p> -->",
        "<template>" + PROSE + "</template><noscript>" + PROSE + "</noscript>",
        "<ul><li><a href=1>" + PROSE + "</a><li><a href=2>" + PROSE + "</a></ul>",
        "<ul><li><a href=1>Home</a><li><a href=2>News</a><li><a href=3>Contact us</a></ul>",
        "<div>Copyright 2026</div>",
        "<head><title>" + PROSE + "</title></head>",
        "<SCRIPT>" + PROSE + "</SCRIPT><pre\nclass=x>" + PROSE + "</pre >",
        "<!-- > " + PROSE + " <nav> --><!---->",
        "<body><ul><li>&nbsp;<a href=1>Home</a>&nbsp;|&nbsp;<li>\u00a0<a href=2>News</a>, <li>(<a href=3>Contact us</a>)</ul>",
    ],
)
def test_boilerplate_and_code_are_left_out(noise: str) -> None:
    page = f"<html>{noise}<div><ul><li><a href=x>a link</a></ul></div><p>{PROSE}</p><p>{PROSE}</p>"
    assert text(page) == f"{PROSE}\n{PROSE}"


def test_language_and_fingerprint_are_not_told_by_code() -> None:
    assert prose(f"<p>{PROSE}</p><p><code>{PROSE}</code></p>".encode(), GIST) == PROSE


ARTICLE = "".join(f"<p>{number}: {PROSE}</p>" for number in range(8))
MENU = "".join(f"<li><a href={number}>page of number {number}</a>" for number in range(30))


@pytest.mark.parametrize(
    "beside",
    [
        f"<ul>{MENU}</ul>",
        f"<div><div class=related-posts><p>{PROSE}</p></div></div>",
        f"<div id=comments><div><p>{PROSE}</p></div><div><p>{PROSE}</p></div></div>",
        f"<div class=x><p>By J. Doe<p>March 2026</div><div class='entry-meta'>{PROSE}</div>",
        f"<div style='display: none'><p>{PROSE}</div>",
        f"<p style='display:none'>{PROSE}<h2 hidden>{PROSE}</h2>",
        f"<div role=complementary>{PROSE}</div>",
    ],
)
def test_an_article_is_without_what_stands_beside_it(beside: str) -> None:
    page = f"<body><div><ul>{MENU}</ul></div><div>{beside}<div class=story>{ARTICLE}</div>{beside}</div>"
    assert text(page) == "\n".join(f"{number}: {PROSE}" for number in range(8))


def test_an_article_keeps_its_headings_lists_tables_and_preformatted_text() -> None:
    inner = "<h2>How it went</h2><ul><li>one<li>two, with <a href=x>a link</a></ul><table><tr><td>1<td>2</table><pre>x = 1</pre>"
    inner += ARTICLE
    kept = text(f"<div><ul>{MENU}</ul></div><article>{ARTICLE}{inner}</article>").split("\n")
    assert {"How it went", "one", "two, with a link", "1", "2", "x = 1"} <= {*kept} and len(kept) == 22


def test_all_posts_of_a_forum_are_its_text() -> None:
    posts = "".join(
        f"<div class=post><div class=body><p>{number}: {PROSE}</p><p>{PROSE}</p></div></div>" for number in range(9)
    )
    assert text(f"<ul>{MENU}</ul><div class=thread>{posts}</div>").count(PROSE) == 18


def test_a_reference_page_keeps_its_lists_of_links_and_leaves_its_code_out() -> None:
    entries = "".join(f"<dt>option {number}<dd>sets <a href={number}>it</a>" for number in range(30))
    inner = f"<p>{PROSE}</p><dl>{entries}</dl><pre>x = 1</pre><ul><li><a href=x>the next chapter</a></ul>"
    page = f"<ul>{MENU}</ul><main>{inner}</main>"
    assert text(page).startswith(PROSE) and text(page).endswith("the next chapter")
    assert "x = 1" not in text(page) and "page of number" not in text(page)


def test_a_page_of_links_that_says_what_its_content_is_has_that() -> None:
    page = f"<div><ul>{MENU}</ul></div><div role=main><ul><li><a href=1>first entry</a><li><a href=2>second entry</a></ul></div>"
    assert text(page) == "first entry\nsecond entry"


@pytest.mark.parametrize(
    "tag", ["<div>", "</div>", "<li>", "<div><p>", "<ul><li>", "<table><tr><td>x", "<div class=related>x"]
)
def test_deep_and_unbalanced_elements_are_read_in_linear_time(tag: str) -> None:
    assert is_linear(lambda size: text(tag * (size // len(tag)) + ARTICLE), 125_000)


def test_a_page_of_more_blocks_than_are_looked_at_loses_no_prose() -> None:
    assert text(f"<p>{PROSE}</p>{'<p>' * 500_000}<p>{PROSE}</p>") == f"{PROSE}\n{PROSE}"


def test_all_text_has_menus_and_code_and_nothing_that_readers_do_not_see() -> None:
    page = (
        "<title>t</title><nav><a href=1>Home</a></nav><script>var x</script><!-- no --><style>p {}</style>"
        f"<p>{PROSE}</p><pre>x = 1</pre><footer>Imprint</footer>"
    )
    assert all_text(page.encode()).split("\n") == ["Home", PROSE, "x = 1", "Imprint"]


@pytest.mark.parametrize(
    "word", ['"exports"', ".gitignore", "\u201eHallo\u201c", "'it'", "\u00abmot\u00bb", "?query", "\u2d5c\u2d30"]
)
def test_all_text_has_words_that_stand_alone_between_signs(word: str) -> None:
    assert all_text(f"<td>,</td><td>{word}</td><td>|</td>".encode()) == word


@pytest.mark.parametrize("digits", ["9" * 5_000, "x" + "f" * 5_000, "0" * 5_000])
def test_a_reference_by_a_number_without_end_is_no_character(digits: str) -> None:
    """Python refuses to make a number of so many digits."""
    page = f"<p>one two &#{digits}; three".encode()
    assert all_text(page) == main_text(page) == "one two \ufffd three"


def test_a_reference_by_a_long_number_is_its_character() -> None:
    assert text(f"<p>the letters &#{'0' * 5_000}65; &#x{'0' * 5_000}42 and so on") == "the letters A B and so on"


_SIGNS = ["a", "bc", " ", "\0", ",", "\u00e9", "\x1c", "\x85", "\u2003", "\u2014", "\u3000", "\u1680", "\u205f"]
_SIGNS += [
    f"&{name}" for name in ["amp;", "amp", "lt;", "#32;", "#160", "ensp;", "#1;", "#0;", "x;", "", "notin;", "#x41;"]
]


@given(st.lists(st.sampled_from(_SIGNS)))
def test_lines_are_blocks_with_references_resolved_and_white_space_of_any_script_made_one_space(
    signs: list[str],
) -> None:
    blocks = "\0" + " ".join("".join(signs).split(" "))
    while "  " in blocks:
        blocks = blocks.replace("  ", " ")
    resolved = " ".join(html.unescape(blocks).split()) if "&" in blocks else blocks
    assert lines(blocks.encode()) == "\n".join(line.strip() for line in resolved.split("\0")[1:])


@given(st.lists(st.sampled_from([*"ab \t\n\r\f\v,", "<b>", "</b>", "&nbsp;", "\xa0"])))
def test_white_space_is_one_space_in_a_block(signs: list[str]) -> None:
    page = f"<p>word {''.join(signs)}"
    spaced = re.sub("<b>|</b>", "", page.replace("&nbsp;", " ").replace("\xa0", " "))
    assert all_text(page.encode()) == " ".join(spaced.removeprefix("<p>").split())


def test_pages_made_of_short_blocks_keep_them_and_lose_their_menus() -> None:
    rows = "".join(f"<dt>option {number}<dd>sets <a href={number}>it</a> to {number}" for number in range(30))
    menu = "".join(f"<li><a href={number}>page {number}</a>" for number in range(30))
    kept = text(f"<body><ul>{menu}</ul><dl>{rows}</dl>")
    assert "sets it to 7" in kept and "option 7" in kept and "page" not in kept


def test_prose_keeps_its_inline_elements_and_its_references() -> None:
    page = f"<p>{PROSE.replace('old', '<b>o</b>ld').replace('bridge', '<a href=x>br&#105;dge</a>')} 1 < 2 &amp; <i>so on</i></p>"
    assert text(page) == f"{PROSE} 1 < 2 & so on"


def test_a_sign_in_an_attribute_begins_no_tag() -> None:
    page = f'<p>{PROSE}</p><div><a href=1><img alt="<-" src="left.gif" title="1 < 2"></a></div><p>{PROSE}</p>'
    assert text(page) == f"{PROSE}\n{PROSE}"


def test_short_paragraphs_between_long_ones_are_content() -> None:
    assert text(f"<p>{PROSE}</p><p>Yes, indeed.</p><p>{PROSE}</p>").splitlines()[1] == "Yes, indeed."


@pytest.mark.parametrize(
    "advertisement",
    [
        '<div class="ad">%s</div>',
        "<div id=ads><div><p>%s</p></div></div>",
        "<section class='x sponsored-content'>%s</section>",
        '<ins class="adsbygoogle" style="display:block"><p>%s</ins>',
        '<DIV data-x=1 CLASS="Advertisement">%s</DIV>',
        '<p class="advert">%s</p>',
        '<p class="advert">%s',
        '<ul class="top-banner-ad"><li>%s</ul>',
        '<div id="div-gpt-ad-1465332055334-0"><nav><div class=ad></nav>%s</div></div>',
        f'<div class="ad-slot"><script>{"x" * PART}</script>%s</div>',
        f'<div class="ad_container">{"<br>" * (PART // 8)}%s</div>',
    ],
)
def test_text_of_advertisements_is_none_but_is_among_all_words(advertisement: str) -> None:
    page = f"<body><p>{PROSE}</p>{(advertisement % 'Buy now! ' * 20)}<p>{PROSE}</p>"
    assert text(page) == f"{PROSE}\n{PROSE}"
    assert "Buy now!" in all_text(page.encode())


@pytest.mark.parametrize(
    "element",
    [
        '<div class="has-ads">%s</div>',
        '<div class="adventure road">%s</div>',
        '<div class="no-ad ad-free-zone">%s</div>',
        '<div title="ad">%s</div>',
        '<article class="ad">%s</article>',
        '<div class="ad">%s',
        f'<div class="ads">%s{"<hr>" * 20_000}</div>',
        "<script>'<div class=ad>'</script>%s</div>",
        "<!-- <div class=ad> -->%s</div>",
    ],
)
def test_what_only_speaks_of_advertisements_keeps_its_text(element: str) -> None:
    assert text(f"<body>{element % f'<p>{PROSE}</p>'}") == PROSE


def test_an_end_tag_without_a_start_hides_no_menu() -> None:
    links = "".join(f"<a href={number}>page of number {number}</a> " for number in range(9))
    assert (
        text(f"<p>{PROSE}</p><div></a></a>{links}</div><p>{PROSE}</p><div>{links}</a>and so on</div>")
        == f"{PROSE}\n{PROSE}"
    )


def test_a_page_of_a_few_words_has_those() -> None:
    assert text("<h1>Not found</h1><p>Sorry.") == "Not found\nSorry."
    assert text("") == text("<p><a href=x>link</a>") == ""


@pytest.mark.parametrize("page", [f"<p>{PROSE}</p>" * 10_000, "<p>" + "word " * 1_000_000])
def test_a_text_is_bounded_and_a_cut_is_the_trouble_of_its_page(page: str) -> None:
    document = Document(visit("http://a.test/", page.encode()))
    assert document.gist and not document.missed
    assert (len(document.text), document.missed) == (MAX_TEXT, "text_cut")
    whole = Document(visit("http://a.test/", f"<p>{PROSE}</p>".encode() * 100))
    assert whole.text.endswith(PROSE) and not whole.missed


@pytest.mark.parametrize(
    "filler", ['<div data-x="%s">' % ("x" * 1_000), "<a href=x>link</a> ", "<!-- x -->", "<p>", "<br>\n"]
)
@pytest.mark.parametrize("size", [8 * PART, 3 * MAX_PART])
def test_prose_is_found_behind_any_markup(filler: str, size: int) -> None:
    page = f"<body>{filler * (size // len(filler))}<p>{PROSE}</p>"
    assert text(page) == PROSE
    assert Document(visit("http://a.test/", page.encode())).gist == PROSE


@pytest.mark.parametrize(
    "head",
    [
        "<script>document.write('<body class=a>')</script><title>no</title>",
        "<title>of <body> and soul</title><script>no</script>",
        "<!-- <body> --><style>p { no: no }</style>",
        "<noscript><iframe src=x>no</iframe></noscript>",
        "<meta content='<body>'><meta content=it's><style>no</style><meta content=\"no > no\"><link title = 'a \"no\" > no'>",
        "<template><body><p>no</template>",
    ],
)
@pytest.mark.parametrize("body", ["<body>", "<BODY class=x>", "</head>", ""])
def test_the_text_begins_where_the_body_does(head: str, body: str) -> None:
    assert text(f"<!DOCTYPE html><html><head>{head}{body}<p>{PROSE}</p><p>{PROSE}</p>") == f"{PROSE}\n{PROSE}"
    assert text(f"<html>{head}<p>{PROSE}</p>{'<hr>' * PART}<body><p>{PROSE}</p>") == f"{PROSE}\n{PROSE}"


def test_what_is_never_closed_is_kept() -> None:
    assert text(f"<p>{PROSE}</p><nav><p>{PROSE}</p><!-- <p>{PROSE}</p>") == "\n".join([PROSE] * 3)


@pytest.mark.parametrize("name", ["script", "STYLE"])
def test_a_script_in_which_a_page_was_cut_is_no_text(name: str) -> None:
    for size in (10, 2 * MAX_PART):
        assert text(f"<p>{PROSE}</p><{name}>x = '<p>{'word ' * size}") == PROSE
    assert text(f"<p>{PROSE}</p><{name}>x = '<p>'{' ' * MAX_PART}</{name.title()}><p>{PROSE}") == f"{PROSE}\n{PROSE}"


def test_an_element_that_begins_like_one_without_prose_is_none() -> None:
    assert text(f"<nav-bar>{PROSE}</nav-bar><prelude>{PROSE}</prelude>") == f"{PROSE}\n{PROSE}"


@pytest.mark.parametrize(
    "comment", ["<!-- no --!>", "<!-->", "<!--->", "<!-- no -->", "<!-- a > b --!>", "<!-- <p>no --!>"]
)
def test_a_comment_ends_where_it_ends_for_browsers(comment: str) -> None:
    assert text(f"<p>{PROSE}{comment}</p><p>{PROSE}</p>{comment}<p>{PROSE}</p><!-- no -->") == "\n".join([PROSE] * 3)
    assert text(f"<head>{comment}<body><p>{PROSE}</p><!-- no --><p>{PROSE}</p>") == f"{PROSE}\n{PROSE}"


@pytest.mark.parametrize(
    ("opens", "closes"), [("<script>", "</script>"), ("<STYLE>", "</STYLE>"), ("<!-- ", "-->"), ("<nav>", "</nav>")]
)
def test_prose_is_found_behind_megabytes_without_any(opens: str, closes: str) -> None:
    page = f"<body><p>{PROSE}</p>{opens}{'<p>word ' * 50_000}{closes}<p>{PROSE}</p>"
    assert text(page) == f"{PROSE}\n{PROSE}"


def test_prose_is_found_behind_a_long_head() -> None:
    assert text(f"<head>{'<meta content=x>' * 4_000}</head><body><p>{PROSE}</p>") == PROSE


@pytest.mark.parametrize("paragraph", [f"<p>{PROSE}</p>\n", f"{PROSE}<br>", f"<div><i>{PROSE}</i></div><hr>"])
def test_nothing_is_lost_where_a_part_ends(paragraph: str) -> None:
    page = paragraph * (3 * PART // len(paragraph))
    assert text(page).split("\n") == [PROSE] * page.count(PROSE)


def test_the_gist_is_the_beginning() -> None:
    page = f"<p>{PROSE}</p>".encode() * 1_000
    gist = prose(page, GIST)
    assert GIST < len(gist) <= PART
    assert main_text(page).startswith(gist)


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ('<p title="a > b">The committee met.', "The committee met."),
        ('<p><img alt="a -> b" title="c -> d">The committee met.', "The committee met."),
        ("""<div data-x='{"a":"<p>secret</p>"}'>The committee met.</div>""", "The committee met."),
        ('<p>All of the committee <a onclick="if(a>b)" href=x>met</a> and went.', "All of the committee met and went."),
        ('<p title="<script>">The committee met.</p>', "The committee met."),
        ('<p>Who says "5>4" or title="a" > is right.', 'Who says "5>4" or title="a" > is right.'),
        ('<p title="a>never closed</p>The committee met.', "never closed\nThe committee met."),
        ('<script>if (a<b && c=="x>y") z = "it"</script><p>The committee met.', "The committee met."),
    ],
)
def test_no_value_of_an_attribute_is_text(markup: str, shown: str) -> None:
    assert all_text(markup.encode()) == shown
    assert f"{PROSE_BEFORE}\n{shown}" in text(f"<p>{PROSE_BEFORE}</p>{markup}<p>{PROSE_BEFORE}")


def test_words_of_scripts_without_spaces_are_counted() -> None:
    page = f"<ul><li><a href=1>首页</a></ul><p>{SENTENCES['zh']}</p><ul><li><a href=2>关于我们</a></ul>"
    assert text(page) == SENTENCES["zh"]


@pytest.mark.parametrize(
    "piece",
    [
        *("<nav>", "<a ", "<", "<!--", "<pre>", "</", "&#x", "<code>", "<p>", "<A\n", "</nav>", "x ", "<!---->", "\0"),
        *("<nav></nav>", "<nav><pre></nav>", "<p>x", "<!-- <p>x", "<script>x</script>", "<nav-x>", "漢"),
        *('<a x="a>b" ', "<a x='a>b'>", '<a x="', "<a x='\"<"),
    ],
)
def test_hostile_markup_is_read_in_linear_time(piece: str) -> None:
    assert is_linear(lambda size: text(piece * (size // len(piece))), 200_000)


@given(st.text(alphabet="<>/ap&;navpre= \n!-\"'", max_size=300))
def test_any_markup_has_a_text(page: str) -> None:
    assert isinstance(text(page), str)


# -- language

SENTENCES = {
    "de": "Der Ausschuss hat beschlossen, dass die alte Brücke über den Fluss im nächsten Jahr durch eine neue ersetzt wird, weil "
    "sie nicht mehr sicher genug ist.",
    "fr": "Le comité a décidé que le vieux pont sur la rivière sera remplacé par un nouveau l'année prochaine, parce qu'il n'est "
    "plus assez sûr.",
    "ru": "Комитет решил, что старый мост через реку будет заменён новым в следующем году, потому что он больше не является "
    "достаточно безопасным.",
    "ja": "委員会は、川にかかる古い橋を来年新しい橋に架け替えることを決定しました。",
    "zh": "委员会决定明年用一座新桥取代河上的旧桥，因为它已经不够安全了。",
    "ko": "위원회는 강 위의 오래된 다리를 내년에 새 다리로 교체하기로 결정했습니다.",
    "el": "Η επιτροπή αποφάσισε ότι η παλιά γέφυρα πάνω από το ποτάμι θα αντικατασταθεί.",
    "en": PROSE,
}


@pytest.mark.parametrize("language", SENTENCES)
def test_languages_are_told_by_their_text(language: str) -> None:
    assert detect(SENTENCES[language]) == language
    assert detect(SENTENCES[language], "sw") == language


def test_the_pages_own_word_decides_where_the_text_does_not() -> None:
    assert detect("Ja", "NB-no") == "nb"
    assert detect("404", "") == ""
    assert detect(SENTENCES["de"], "lb") in ("de", "lb")


@pytest.mark.parametrize(
    ("tag", "language"),
    [("de-AT", "de"), ("EN", "en"), ("x", ""), ("english", ""), ("", ""), ("zh_TW", "zh")],
)
def test_tags(tag: str, language: str) -> None:
    assert primary(tag) == language


@given(st.text(max_size=3000), st.text(max_size=20))
def test_any_text_is_heard(sample: str, declared: str) -> None:
    assert len(detect(sample, declared)) <= 3


# -- fingerprints

WORDS = [f"word{n}" for n in range(400)]


def test_similar_texts_have_near_fingerprints_and_others_do_not() -> None:
    one = terms.fingerprint(" ".join(WORDS))
    changed = [
        distance(one, terms.fingerprint(" ".join([*WORDS[:place], "other", *WORDS[place + 1 :]])))
        for place in range(10, 390, 10)
    ]
    assert statistics.median(changed) <= THRESHOLD
    assert max(changed) < 10
    for other in (" ".join(reversed(WORDS)), " ".join(f"{word}s" for word in WORDS), PROSE):
        assert distance(one, terms.fingerprint(other)) > 10


def test_a_fingerprint_is_what_its_definition_says() -> None:
    """The same with Python's integers, word by word."""
    words = re.findall(rb"[0-9a-z\x80-\xff]+", SENTENCES["de"].lower().encode())
    hashes = [
        sum(code * pow(terms._BASE, place, 1 << 32) for place, code in enumerate(word, 1)) % (1 << 32) for word in words
    ]
    runs = set()
    for three in zip(hashes, hashes[1:], hashes[2:], strict=False):
        run = sum(number * factor for number, factor in zip(three, terms._PLACES, strict=True)) % (1 << 64)
        run = (run ^ run >> 30) * terms._MIX[0] % (1 << 64)
        run = (run ^ run >> 27) * terms._MIX[1] % (1 << 64)
        runs.add(run ^ run >> 31)
    votes = [sum(run >> bit & 1 for run in runs) for bit in range(64)]
    expected = sum(1 << bit for bit, vote in enumerate(votes) if 2 * vote > len(runs))
    assert terms.fingerprint(SENTENCES["de"]) == expected


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert terms.fingerprint(" ".join(WORDS)) == 0xD5400C50D8CF61CB


def test_case_punctuation_and_repetition_do_not_matter() -> None:
    one = terms.fingerprint(PROSE)
    assert one == terms.fingerprint(PROSE.upper().replace(",", " -- "))
    assert terms.fingerprint((" ".join(WORDS) + " ") * 2) != 0


def test_a_fingerprint_sees_the_beginning_of_a_long_text() -> None:
    long = " ".join(f"{word}{n}" for n in range(30) for word in WORDS)
    assert terms.fingerprint(long) == terms.fingerprint(long[: terms.MAX_BYTES]) != terms.fingerprint(long[:-1000:-1])


def test_short_texts_have_none() -> None:
    assert terms.fingerprint("not found") == 0
    assert terms.fingerprint("") == 0


def test_texts_without_spaces_have_words_too() -> None:
    assert terms.fingerprint(SENTENCES["zh"] * 2) != 0


@given(st.text(max_size=2000))
def test_any_text_has_64_bits_at_most(sample: str) -> None:
    assert 0 <= terms.fingerprint(sample) < 1 << 64


@pytest.mark.parametrize("make", [main_text, lambda markup: prose(markup, MAX_TEXT), all_text])
def test_an_image_in_its_own_url_is_no_text(make: "Callable[[bytes], str]") -> None:
    image = f'<img alt=x src="data:image/png;base64,{"iVBORw0KGgo" * 60_000}">'
    found = make(f"<main><p>{PROSE} begins.</p>{image}<p>{PROSE} ends.</p></main>".encode())
    assert "iVBOR" not in found and found.endswith("ends.")


NAVIGATION = (
    "<div class=top><ul>" + "".join(f"<li><a href={n}>Category number {n}</a>" for n in range(12)) + "</ul></div>"
)
POPULAR = (
    "<div class=sidebar><ul>"
    + "".join(f"<li><a href={n}>Another popular thing {n}</a>" for n in range(9))
    + "</ul></div>"
)
RIGHTS = (
    "<div class=footer><p>Copyright 2026 Example Company. All rights reserved in every country of the world.</p></div>"
)


@pytest.mark.parametrize(
    ("content", "other"),
    [
        (
            "".join(
                f"<div class=post><div class=postprofile><a href=/u>user{n}</a></div><p>I tried version "
                f"{n} of it, and it did not work for me.</div>"
                for n in range(8)
            ),
            "user",
        ),
        (
            (
                "<div class=product><h1>Steel pan</h1><p>A pan of forged steel that lasts for a "
                "lifetime, for gas and electric stoves.<table><tr><th>Size<td>28 cm<tr><th>Care<td>wash "
                "by hand and oil it afterwards</table></div><div class=related-products><h3>Customers "
                "also bought</h3><a href=/x>Wooden spoon</a></div>"
            ),
            "spoon",
        ),
        (
            (
                "<article class=recipe><h1>Chocolate cake</h1><p>A cake that stays moist for days, as my "
                "grandmother made it.<ul><li>100 g of flour<li>200 g of sugar</ul><ol><li>Heat the oven "
                "to 180 degrees.<li>Melt butter and chocolate.</ol></article><div id=comments><p>Great "
                "recipe, we made it twice this week and loved it!</div>"
            ),
            "twice",
        ),
        (
            "<div class=content><h1>الجسر القديم</h1>"
            + "".join(
                f"<p>قررت اللجنة أن الجسر القديم فوق النهر سوف يستبدل بجسر جديد في العام المقبل {n}" for n in range(6)
            )
            + "</div>",
            "Category",
        ),
        (
            "<div class=art_con><h1>旧桥将被取代</h1>"
            + "".join(
                f"<p>委员会决定，明年将用一座新桥取代河上的旧桥，因为木头已经不再安全，第{n}次会议上大家都同意了。"
                for n in range(6)
            )
            + "</div>",
            "Category",
        ),
        (
            "<div class=entry><h1>古い橋</h1>"
            + "".join(
                f"<p>委員会は来年、川にかかる古い橋を新しい橋に架け替えることを決定しました。第{n}回の会議で賛成しました。"
                for n in range(6)
            )
            + "</div>",
            "Category",
        ),
        (
            "<div class=data><h1>Cities</h1><p>The table has all cities of the country with more "
            "than a thousand people.<table>"
            + "".join(f"<tr><td>City {n}<td>{n}000<td>River {n}" for n in range(60))
            + "</table></div>",
            "Category",
        ),
        (
            "<div class=page><h1>Rules of the house</h1><ul>"
            + "".join(f"<li>Rule {n}: keep the kitchen clean after you have cooked." for n in range(40))
            + "</ul></div>",
            "Category",
        ),
    ],
    ids=["forum", "shop", "recipe", "arabic", "chinese", "japanese", "table", "list"],
)
def test_pages_of_other_kinds_have_all_of_their_content_and_no_more(content: str, other: str) -> None:
    found = main_text(
        f"<html><body>{NAVIGATION}<div id=wrapper>{content}{POPULAR}</div>{RIGHTS}</body></html>".encode()
    )
    inner = re.split("<div class=related|<div id=comments", re.sub("<div class=postprofile>.*?</div>", "", content))[0]
    wanted = " ".join(re.sub("<[^>]+>", " ", inner).split())
    assert " ".join(found.split()) == wanted and other not in found


def test_paragraphs_of_links_between_those_of_an_article_are_its_own_and_stories_beside_it_are_not() -> None:
    own = "<p>(<a href=/a>Artist: Jane Doe</a>)</p>"
    text = "".join(f"<p>{PROSE} begins. {PROSE} goes on. {PROSE} ends, part {n}.</p>{own}" for n in range(12))
    beside = "<div><p><a href=/b>Another story that stands beside</a></p></div>"
    found = main_text(f"<body>{NAVIGATION}<div class=story>{text}{beside}</div>{RIGHTS}".encode())
    assert found.count("(Artist: Jane Doe)") == 12 and "Another story" not in found


def test_a_page_that_is_a_list_of_links_under_a_heading_has_that_and_no_menu() -> None:
    entries = "".join(f"<li><a href={n}.html>Chapter {n} of it</a>" for n in range(30))
    own = f"<div class=chapter><div class=titlepage><h1>The manual</h1></div><div class=toc><ul>{entries}</ul></div></div>"
    found = main_text(f"<body>{NAVIGATION}{own}{POPULAR}{RIGHTS}".encode())
    assert found.startswith("The manual") and found.count("Chapter") == 30
    assert "Category" not in found and "popular" not in found
