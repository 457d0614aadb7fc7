"""Markdown of the main part of pages, and the facts that pages state."""

import time

import pytest
from tests.costs import is_linear

from gossamer.documents.document import Document
from gossamer.documents.main_part import MainPart
from gossamer.documents.markdown import as_markdown, needs
from gossamer.testing.storage import visit
from gossamer.values.errors import UsageError

PROSE = (
    "The committee has decided that the old bridge over the river will be replaced by a new one in the coming year. "
    * 3
)
ARTICLE = (
    '<script type="application/ld+json">{"@graph": [{"@type": "NewsArticle", "author": [{"name": "A"}, {"name": "B"}],'
    '"datePublished": "2026-03-03", "image": {"url": "http://b.test/i"}}]}</script>'
)
MENU = "<ul>" + "".join(f"<li><a href={number}>entry {number}</a>" for number in range(20)) + "</ul>"


def made(inner: str, **options: bool) -> str:
    page = f"<body><div>{MENU}</div><main><p>{PROSE}{inner}</main><div>{MENU}</div>"
    return as_markdown(page.encode(), "http://a.test/b/c", **options).text.removeprefix(PROSE.strip()).strip()


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<h2 id=x>Two <a class=headerlink href=#x>¶</a></h2>", "## Two"),
        ('<h2>Two<span><a class="mark" href=#x id=x>#</a></span></h2>', "## Two"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  * b\n- c"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<table><tr><th>a<th>b<tr><td>1<td></table>", "| a | b |\n| - | - |\n| 1 | |"),
        ("<p>see the <a href='../d?e=1#f'>link</a>", "see the [link](http://a.test/d?e=1#f)"),
        ("<p>see the <a href='javascript:alert(1)'>link</a>", "see the link"),
        ('<p><a href="data:text/html,x">link</a> and text', "link and text"),
        ("<pre><code class='language-py'>x  =  1\n</code></pre>", "```py\nx  =  1\n```"),
        ("<pre class='brush: java'>int x;</pre><p>after", "```java\nint x;\n```\n\nafter"),
        (
            "<div class='highlight-c notranslate'><div class=highlight><pre><span>int</span> x;</pre></div></div>",
            "```c\nint x;\n```",
        ),
        ("<div class=highlight><pre data-lang=Go>x</pre></div>", "```go\nx\n```"),
        (
            "<pre lang=sql>SELECT 1</pre><p>and</p><pre lang=en>words</pre>",
            "```sql\nSELECT 1\n```\n\nand\n\n```\nwords\n```",
        ),
        (
            "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>",
            "```\na\nb\n```",
        ),
        ("<table width=100%><tbody><tr><td></td><td><p>one</p><p>two</p></td></tr></table>", "one\n\ntwo"),
        ("<pre>plain &lt;b&gt;</pre>", "```\nplain <b>\n```"),
        ("<blockquote><p>said</blockquote>", "> said"),
        ("<p>a List&lt;T&gt; of &lt;name&gt; if a < b", "a List\\<T> of \\<name> if a < b"),
        (
            "<p>by <code>List&lt;T&gt;</code><ul><li>as<pre>a &lt;b&gt;</pre></ul>",
            "by `List<T>`\n\n- as\n\n  ```\n  a <b>\n  ```",
        ),
        ("<p>the <em><var>object</var> = <i>x</i></em> and <em>y</em>", "the *object = x* and *y*"),
        (
            "<table><tr><td><h2>A</h2><ul><li>a</ul></td><td><h2>B</h2><p>b</td></tr></table>",
            "## A\n\n- a\n\n## B\n\nb",
        ),
        ("<p>by A <a href=mailto:a@b.c><i class=icon></i> </a><a href=x>&nbsp;</a> today", "by A today"),
        ("<p>\\(a_1 * b_2\\) and $x^2$", "\\(a_1 * b_2\\) and $x^2$"),
        ("<p>text<img src=i.png alt=i>", "text"),
        (
            "<p>call <code class=x><a href=m>map</a>(<a href=f>f</a>, x)</code>",
            "call [`map`](http://a.test/b/m)`(`[`f`](http://a.test/b/f)`, x)`",
        ),
        ("<p><code>one<br>\n   two</code>", "`one`  \n`two`"),
        ("<p>in <acronym title=s>SQL</acronym> and <tt>code</tt>", "in SQL and `code`"),
        ("<nav>menu</nav><script>x</script><style>y</style><!-- z -->", ""),
    ],
)
def test_content_is_written_as_markdown(markup: str, text: str) -> None:
    found = "\n".join(" ".join(line.split()) if line.startswith("|") else line for line in made(markup).split("\n"))
    assert found.replace("---", "-") == text


def test_tables_have_no_padding_and_what_a_reader_opens_is_written() -> None:
    cells = "<table><tr><td>a<td>b<tr><td>a long cell of a table<td>c</table>"
    found = made(
        f"{cells}<div class=tab-pane style='display:none'>the second tab</div><div style='display:none'>gone</div>"
    )
    assert "| a | b |" in found and "the second tab" in found and "gone" not in found


def test_tables_of_pages_whose_every_end_tag_is_there_have_no_padding() -> None:
    cells = "<table><tr><th>a</th><th>b</th></tr><tr><td>a long cell of a table</td><td>c</td></tr></table>"
    found = as_markdown(f"<body><main><p>{PROSE}</p>{cells}</main></body>".encode(), "http://a.test/").text
    assert found.endswith("| a | b |\n| --- | --- |\n| a long cell of a table | c |\n")


def test_headings_of_sections_that_a_list_lays_out_begin_their_lines() -> None:
    layout = "<ul>" + f"<li><section><h3>Part</h3><p>{PROSE}</p><ul><li>one</li><li>two</li></ul></section></li>" * 2
    found = made(f"</p>{layout}</ul><ul><li>own text<h4>under it</h4></li></ul>")
    assert found.count("\n### Part\n") == 1 and found.startswith("### Part\n\nThe committee")
    assert found.count("\n- one\n- two") == 2 and "\n- own text\n" in found


def test_an_article_in_a_cell_beside_others_is_no_table() -> None:
    page = (
        f"<body><table><tr><td>date</td></tr><tr><td><p>{PROSE * 4}</p><ul><li>one</li></ul></td></tr></table></body>"
    )
    found = as_markdown(page.encode(), "http://a.test/").text
    assert "|" not in found and found.endswith("\n- one\n")


@pytest.mark.parametrize(
    ("above", "written"),
    [
        (
            "<div><h1>tool(1) Manual Page</h1><h2>NAME</h2><p>tool - shows a column</p></div>",
            "# tool(1) Manual Page\n\n## NAME",
        ),
        ("<div><h1><a href=/>tool(1)</a></h1><p><a href=/a>one</a> <a href=/b>another</a></p></div>", "## Synopsis"),
    ],
)
def test_a_manual_page_has_its_title_and_name_from_above_its_content(above: str, written: str) -> None:
    sections = "".join(f"<h2>{name}</h2><p>{PROSE}" for name in ("Synopsis", "Options"))
    page = f"<title>tool(1)</title><body>{above}<div id=content>{sections}</div><div id=footer><p>Last updated.</div>"
    assert as_markdown(page.encode(), "http://a.test/").text.startswith(f"{written}\n")


def test_a_manual_page_with_a_long_description_keeps_its_other_sections() -> None:
    terms = "".join(f"<dt><code>{name}</code><dd><p>a short text of {name}</dd>" for name in ("count", "tuple", "plan"))
    name = "<div class=refnamediv><h2>execute</h2><p>execute - runs a command</p></div>"
    described = f"<div class=refsect1 id=d><h2>Description</h2>{f'<p>{PROSE}</p>' * 5}</div>"
    page = f"<body><div class=refentry>{name}{described}<div class=refsect1 id=a><h2>Arguments</h2><dl>{terms}</dl></div></div>"
    text = as_markdown(page.encode(), "http://a.test/").text
    assert text.startswith("## execute\n") and "## Arguments" in text and "a short text of plan" in text


def test_a_short_answer_under_a_heading_that_links_to_itself_stays() -> None:
    asked = "<section><h3><a href=#q>Do I have to like the show that it is named after?</a></h3><p>No, but it helps.</section>"
    page = f"<main><p>{PROSE}<p>{PROSE}<p>{PROSE}<p>{PROSE}{asked}<p>{PROSE}</main>"
    text = as_markdown(page.encode(), "http://a.test/").text
    assert "### [Do I have to like" in text and "No, but it helps." in text


def test_images_stay_by_choice() -> None:
    assert made("<p>text <img src=i.png alt=i>", images=True) == "text ![i](http://a.test/b/i.png)"


@pytest.mark.parametrize("opens", ["<div>", "<ul><li>", "<blockquote>", "<b>", "<table><tr><td>"])
def test_no_word_is_lost_in_elements_without_end(opens: str) -> None:
    found = as_markdown((opens * 30_000 + f"<p>{PROSE}</p>").encode(), "http://a.test/")
    assert found.text.count("The committee") == 3 and len(found.text) < 2_000


@pytest.mark.parametrize(
    ("begins", "piece"),
    [
        ("<p>", "word "),
        ("<table>", "<tr><td>a<td>b"),
        ("", "<"),
        ("", ""),
        ("<p>", "<code><a href=x>y"),
        ("<p>", "<ul><li><h2>x"),
        ("", "<div class=toc>x<a>y</a>"),
        ("", "<section class=section id=comments>x"),
        ("<p>", "<em>*x>*"),
    ],
)
def test_large_and_empty_pages_are_written_in_linear_time(begins: str, piece: str) -> None:
    assert is_linear(lambda size: as_markdown((begins + piece * size).encode(), ""), 25_000)


def test_elements_deep_in_each_other_cost_what_as_many_side_by_side_cost() -> None:
    number, paragraph = 50_000, f"<p>{PROSE}</p>"
    deep = ("<div>" * number + paragraph + "</div>" * number).encode()
    flat = ("<div></div>" * number + paragraph).encode()

    def spent(page: bytes) -> float:
        begun = time.process_time()
        MainPart(page)
        return time.process_time() - begun

    assert min(spent(deep) for _ in range(3)) < 3 * max(spent(flat) for _ in range(3))


@pytest.mark.parametrize("words", [PROSE, "", "Two words."])
def test_links_to_the_pages_beside_a_page_of_a_manual_are_none_of_its_text(words: str) -> None:
    beside = '<p>Next: <a href=n accesskey=n rel=next>Two</a>, Up: <a href=u rel="up">All</a> [<a href=i rel=index>Index</a>]</p>'
    chapters = (
        "<ul>" + "".join(f"<li><a href={number}>Chapter number {number}</a></li>" for number in range(12)) + "</ul>"
    )
    page = f"<div class=section><div class=header>{beside}</div><h3>2.3 Types</h3><p>{words}{chapters}</div>"
    told = as_markdown(page.encode(), "http://a.test/").text
    assert told.startswith("### 2.3 Types\n") and "Next" not in told


def test_a_heading_with_thousands_of_ids_takes_linear_time() -> None:
    assert is_linear(
        lambda size: as_markdown(f"<p>{PROSE}<h2{' id=x' * size}<h2>x</h2>".encode(), "", anchors=True), 8_000
    )


def test_a_document_has_its_markdown_and_says_when_it_is_not_whole() -> None:
    document = Document(visit("http://a.test/", f"<p>{PROSE}</p>".encode()))
    assert document.markdown == PROSE.strip() + "\n" and not document.missed
    large = Document(visit("http://a.test/", f"<p>{PROSE}{'<p>' * 500_000}".encode()))
    assert (large.markdown, large.missed) == (PROSE.strip() + "\n", "text_cut")


def test_a_missing_package_is_one_line_with_the_command_that_installs_it() -> None:
    error = needs("words", "html-to-markdown", "Markdown")
    assert isinstance(error, UsageError) and "\n" not in str(error)
    assert str(error).startswith("Markdown needs html-to-markdown; install it: ") and "pypdfium2" in str(error)


@pytest.mark.parametrize(
    ("head", "facts"),
    [
        ('<meta name=Author content="J.  Doe">', {"author": "J. Doe"}),
        (
            '<meta property="article:published_time" content="2026-03-01T10:00:00Z">',
            {"published": "2026-03-01T10:00:00Z"},
        ),
        ("<time datetime=2026-03-02>x</time>", {"published": "2026-03-02"}),
        ("<meta name=date content=yesterday>", {}),
        ('<meta property=og:image content="/i.png">', {"image": "http://a.test/i.png"}),
        ('<meta name=description content="a &amp; b">', {"description": "a & b"}),
        (
            ARTICLE,
            {"author": "A, B", "published": "2026-03-03", "image": "http://b.test/i"},
        ),
        ('<script type="application/ld+json">{"@type": [</script><meta name=author content=C>', {"author": "C"}),
        (f'<script type="application/ld+json">{"[" * 50_000}</script>', {}),
        ("<meta name=author content=https://a.test/people>", {}),
    ],
)
def test_facts_that_a_page_states(head: str, facts: "dict[str, str]") -> None:
    import msgspec

    page = Document(visit("http://a.test/", f"<head>{head}</head><p>{PROSE}".encode()))
    assert msgspec.to_builtins(page.metadata) == facts


@pytest.mark.parametrize(
    ("inner", "written"),
    [
        ("<pre>std::<a href=/z>move</a>(x)</pre>", "```\nstd::move(x)\n```"),
        ('<p>A <a href=/i><img src=a.png alt="map"></a> <a href=/j><img src=b.png></a>.', "A [map](http://a.test/i) ."),
        ("<dl><dt>ANSI<dd><a href=/ansi>American Standards</a></dl>", "[American Standards](http://a.test/ansi)"),
        ("<p>A <span class=x>b<font>c</font></span>d", "A bcd"),
    ],
)
def test_code_has_no_links_and_links_have_texts(inner: str, written: str) -> None:
    assert written in as_markdown(f"<main><p>{PROSE}</p>{inner}</main>".encode(), "http://a.test/").text


def test_text_that_the_converter_takes_for_binary_comes_as_well() -> None:
    made = as_markdown(f"<main><p>{PROSE}{chr(0) * 2_000}</p></main>".encode(), "")
    assert made.text.startswith("The committee")


def test_a_table_of_more_cells_than_are_looked_at_keeps_its_words() -> None:
    cells = "".join(f"<tr><td>cell {number}<td>two" for number in range(160_000))
    made = as_markdown(f"<main><table>{cells}</table></main>".encode(), "")
    assert made.is_plain and "cell 0" in made.text and "cell 159999" in made.text


@pytest.mark.parametrize(
    "inner",
    [
        "<table><tr><th>capital<td><a href=/z>Wellington</a><tr><th>largest<td><div><a href=/z>Auckland</a></div></table>",
        "<p>These are the modules that this chapter is about:</p><ul><li><a href=/z>mod one</a><li><a href=/z>two</a></ul>",
        "<dl><dt><a href=/z>mod_ssl</a><dd>This module speaks to servers of other kinds.</dl>",
        f"<h2><a href=/z>The Last Jedi</a></h2><p>{PROSE}</p>",
    ],
)
def test_links_of_an_article_that_are_no_menu_stay(inner: str) -> None:
    page = f"<main>{MENU}<p>{PROSE * 4}</p>{inner}{MENU}</main>"
    found = as_markdown(page.encode(), "http://a.test/").text
    assert found.count("(http://a.test/z)") == inner.count("=/z") and "entry" not in found


@pytest.mark.parametrize(
    "page",
    [
        "<body>{menu}<table><tr><td><a href=/z>get</a><td>Returns a component.</table><p>{prose}</p>",
        "<body><div>{menu}</div><div class='main'><table><tr><td><a href=/z>get</a><tr><td><a href=/z>set</a></table></div>",
    ],
)
def test_tables_of_a_reference_stay(page: str) -> None:
    found = as_markdown(page.format(menu=MENU, prose=PROSE).encode(), "http://a.test/").text
    assert found.count("(http://a.test/z)") == page.count("=/z") and "entry" not in found


def test_links_that_a_reference_lists_as_code_stay_in_an_article() -> None:
    names = ", ".join(f"<a href=o#{name}>{name}</a>" for name in ("clone", "equals", "finalize", "notify", "wait"))
    inherited = f"<div class=inherited><h3>Methods of <a href=o>Object</a></h3><code>{names}</code></div>"
    found = made(f"</p><p>{PROSE * 5}</p>{inherited}<p>{PROSE}")
    assert "### Methods of [Object](http://a.test/b/o)" in found and "[`wait`](http://a.test/b/o#wait)" in found


@pytest.mark.parametrize("name", ["navheader", "navset top", "t-navbar", "navmenu"])
def test_menus_within_the_content_go_by_their_names(name: str) -> None:
    found = as_markdown(f"<main><div class='{name}'>{MENU}</div><p>{PROSE}</p></main>".encode(), "")
    assert found.text.strip() == PROSE.strip()


@pytest.mark.parametrize(
    "head", ["", "<title>t</title>", "<html><head><title>t</title></head>", "<html><title>t</title>"]
)
def test_the_head_of_a_page_leaves_nothing_in_its_text(head: str) -> None:
    assert as_markdown(f"{head}<a href=/x>five</a><p>hello".encode(), "http://a.test/").text == "hello\n"


def test_a_menu_in_front_of_the_heading_within_the_element_of_the_content_goes() -> None:
    menu = "<ul>" + "".join(f"<li><a href=/m{number}>Menu entry</a></li>" for number in range(20)) + "</ul>"
    toc = (
        "<details id=toc open><summary>Table of contents</summary>"
        + menu.replace("Menu", "Toc").replace("/m", "#m")
        + "</details>"
    )
    functions = "".join(f"<h3>f{number}()</h3><p>It opens the file that the caller names.</p>" for number in range(20))
    column = (
        f"<div id=column1><h1>Files</h1>{toc}<h2>Functions</h2>{functions}<ul><li><a href=/s>See</a></li></ul></div>"
    )
    page = f"<body><div id=content><div id=column2><a href=/>Home</a>{menu}<hr>{menu}</div>{column}</div>"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert text.startswith("# Files\n") and "entry" not in text and "[See]" in text
    assert text.count("### f") == text.count("It opens") == 20


def test_a_section_that_is_named_by_its_heading_is_one_of_the_text_whatever_it_is_called() -> None:
    prose = "<p>The reader skips it up to the end of the line, as the grammar of the language says, and goes on.</p>"
    manual = f"<section id=tokens><h2>Tokens<a href=#tokens>#</a></h2>{prose * 12}</section>"
    comments = f'<section id="comments"><h2>Comments<a href="#comments">#</a></h2>{prose}</section>'
    method = f'<section class="detail" id="sharedInstance(int)"><h3>sharedInstance</h3>{prose}</section>'
    talk = f'<section id="comments"><h2>2 comments</h2>{prose}</section>'
    page = f"<body><main><h1>Syntax</h1>{manual}{comments}{method}{talk}</main>"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert "## Comments" in text and "### sharedInstance" in text and "2 comments" not in text


def test_a_list_of_chapters_stays_and_one_of_the_headings_of_the_page_is_a_menu() -> None:
    prose = "<p>This chapter tells how the server is set up, started and stopped on each of the systems.</p>"
    page = "<body><div><h1>Server</h1>{}<div class=toc><ul>{}</ul></div></div><div class=foot><a href=/>Home</a></div>"
    for href, number in (("runtime-{}.html", 9), ("#runtime-{}", 0)):
        rows = "".join(f"<li><a href={href.format(at)}>Section {at}</a></li>" for at in range(9))
        assert (
            as_markdown(page.format(2 * prose, rows).encode(), "https://example.org/").text.count("[Section") == number
        )


def test_a_menu_with_more_words_than_the_text_of_a_short_page_is_still_a_menu() -> None:
    menu = "".join(f"<td><a href=/m{at}>Library of part {at}</a> since eleven</td>" for at in range(60))
    prose = (
        "<p>Returns the number of dimensions of an array type, and zero for any other type, whatever it is made of.</p>"
    )
    page = f"<body><div id=content><div class=t-navbar><table><tr>{menu}</table></div>{2 * prose}<h3>Example</h3>{prose}</div>"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert "Library" not in text and text.count("Returns") == 3


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ("add(<em>node</em>, <em>*others</em>, **<em>named</em>)", "add(*node*, *\\*others*, \\*\\**named*)"),
        ("<code>f(<em><code>T</code></em> *<em>x</em>)</code> is x * y", "`f(T *x)` is x * y"),
        ("<b>Note</b>*", "**Note**\\*"),
    ],
)
def test_an_asterisk_beside_emphasis_is_none_of_its_marks(markup: str, written: str) -> None:
    assert (
        as_markdown(f"<main><h1>A</h1><p>The call {markup}</p></main>".encode(), "").text
        == f"# A\n\nThe call {written}\n"
    )


def test_code_of_several_lines_in_a_table_keeps_its_lines() -> None:
    rows = "".join(
        f"<tr><td>{name}</td></tr><tr><td><pre>int {name}()\n{{\n  return 1;\n}}</pre></td></tr>" for name in "fg"
    )
    signs = (
        "<table><tr><th>Sign</th><th>Use</th></tr><tr><td><pre>+</pre></td><td>It adds two numbers</td></tr></table>"
    )
    text = as_markdown(f"<main><h1>Code</h1><table>{rows}</table>{signs}</main>".encode(), "").text
    assert "```\nint g()\n{\n  return 1;\n}\n```" in text and "| Sign | Use |" in text


def test_a_reference_page_has_its_title_from_above_a_path_of_links() -> None:
    prose = "<p>Computes the sum of the given value and the elements in the range, in the order in which they stand there.</p>"
    path = (
        "<div id=siteSub>From it</div><div id=contentSub>&lt; <a href=/cpp>cpp</a> | <a href=/cpp/a>algorithm</a></div>"
    )
    body = f"<div id=mw-content-text>{4 * prose}<h3>Notes</h3>{prose}</div>"
    page = f"<title>std::sum - reference</title><div id=content><h1><span>std::</span>sum</h1><div>{path}{body}</div></div>"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert text.startswith("# std::sum\n\nComputes") and "algorithm" not in text


def test_footnotes_right_behind_the_main_part_belong_to_it() -> None:
    prose = "<p>The interpreter calls functions that call themselves, unless a limit is reached, which is an error: it says so,"
    prose += " with the name of the function and the depth that it reached.</p>"
    notes = "<div class=footnotes><h4>Footnotes</h4><p>Some functions must not be called so at all.</p></div>"
    foot = "<div class=footer><p>This page was made by a program that makes pages of manuals, and by nobody else.</p></div>"
    page = f"<div class=subsection id=Recursion><h3>Recursion</h3>{12 * prose}</div>"
    page += f"<hr><div><p>Next: <a rel=next href=/n>Access</a></p></div>{notes}{foot}"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert "#### Footnotes" in text and "Some functions" in text and "made by" not in text


def test_short_paragraphs_and_lines_of_items_stay_on_a_page_that_is_one_column_of_prose() -> None:
    prose = "<p>The library transforms documents by style sheets, and each program that has the headers can call it from its own"
    prose += " code, or from a shell.</p>"
    links = "<a href=/o>Objects</a>, <a href=/c>Constants</a>"
    lines = "<ul><li>Tests:<br>Remove it<br>" + 12 * "Add the new files of the build to the list<br>" + "</li></ul>"
    page = f"<body>{12 * prose}<h2>Help</h2><p>See also {links}</p>{prose}{lines}{prose}<div><a href=/>Home</a></div>"
    text = as_markdown(page.encode(), "https://example.org/").text
    assert "## Help" in text and "[Constants]" in text and "Remove it" in text and "Home" not in text


def test_a_cell_of_links_in_front_of_a_heading_is_no_menu() -> None:
    rows = "".join(
        f"<tr><td><div><a href=/f{number}>function {number}</a></div></td><td>opens</td></tr>" for number in range(9)
    )
    functions = "".join(f"<h2>f{number}()</h2><p>It opens the file that the caller names.</p>" for number in range(20))
    page = f"<body><div id=content><p>These functions open files, read them, and close them.</p><table>{rows}</table>{functions}"
    assert as_markdown(page.encode(), "https://example.org/").text.count("[function ") == 9
