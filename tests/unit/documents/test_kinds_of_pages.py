"""The main part of pages of many kinds: each page marks its own content, and its text has that and little else.

Templates are written as the common systems write them. `«...»` is content; `§3` stands for three sentences, `¤4` for four words.
"""

import itertools
import re
from collections import Counter

import pytest

from gossamer.documents.markdown import as_markdown
from gossamer.documents.text import main_text

THINGS = [
    "bridge",
    "team",
    "neighbour",
    "museum",
    "river",
    "council",
    "grandmother",
    "engine",
    "reader",
    "line",
    "camera",
    "harbour",
    "window",
    "workshop",
]
DEEDS = [
    "has been repaired by",
    "was painted with",
    "reminds people of",
    "moved slowly towards",
    "replaced nearly all of",
]
PLACES = [
    "the stone tower",
    "a field of barley",
    "the evening train",
    "an unknown painter",
    "the lake",
    "the winter market",
]
TIMES = [
    "in the late autumn",
    "without any hurry",
    "for almost nine years",
    "as the records show",
    "despite the heavy rain",
]

NAV = "<header><a href=/>Logo</a><nav><a href=/n>Menu of the site</a></nav></header>"
MENU = "<div id=header><ul class=menu>" + "<li><a href=/n>Section of the site</a></li>" * 8 + "</ul></div>"
FOOT = "<footer><h4>About us</h4><p>We have served customers since 1998, and answer each letter that you send.</p></footer>"
DIVFOOT = "<div id=footer><p>Copyright 2026 Example Ltd. All rights reserved worldwide.</p></div>"
LATEST = (
    "<aside class=sidebar><h3>Recent posts</h3><ul>"
    + "<li><a href=/r>A recent entry about things</a></li>" * 6
    + "</ul></aside>"
)


def many(number: int, text: str) -> str:
    return "".join(text.replace("#", str(at)) for at in range(number))


def of(name: str, inner: str) -> str:
    return f'<div class="{name}">{inner}</div>'


REPLY = "<div class='comment-body'><p>«§2»</p></div>"
PROFILE = (
    "<dl class=postprofile><dt><a href=m>user#</a></dt><dd>Posts: 31</dd><dd>Joined: Sat May 03, 2019 1:10 pm</dd></dl>"
)
CARD = "<li class=product><a href=/p#><h2>«¤3 #»</h2><span class=price>«$#9.50»</span></a><p>«§1»</p></li>"
ARABIC = "تم إصلاح الجسر القديم في أواخر الخريف رغم المطر الغزير وقال المجلس إن القرية # سعيدة جدا بذلك."
CHINESE = "旧桥在第#个秋天终于修好了，这是居民们期待已久的事情，费用由城市承担，志愿者们也提供了很多帮助。"
JAPANESE = "古い橋は#年前の秋にゆっくりと直され、村の人々は長い間それを待っていました。"

PAGES = {
    "a question for consent": "<div id=CybotCookiebotDialog role=dialog><h2>This website uses cookies</h2><div>§5 §5</div></div>"
    + NAV
    + "<div class=content-wrapper><h1>«Our services»</h1><p>«§2»</p><ul><li>«¤5»<li>«¤6»</ul></div>"
    + FOOT,
    "forum that signs its posts": "<div id=page-body role=main><h2><a href=t>«Repairing a bridge»</a></h2>"
    + many(6, of("post bg2", PROFILE + of("postbody", "<p class=author><a href=p>Post</a> by <b><a href=u>user#</a></b> » Sat 03,"
    " 2019 1:10 pm</p><div class=content>«§2»</div>")))
    + "</div>"
    + DIVFOOT,
    "messages with their dates": NAV
    + many(5, "<article class=message><header class=message-attribution><ul><li><time>May 4, 2024</time></ul></header>"
    "<article class=message-body><div class=bbWrapper>«§2»</div></article><div class=message-lastEdit>Last edited: May 5</div>"
    "</article>")
    + FOOT,
    "product of widgets": NAV
    + "<div id=dp role=main>"
    + of("celwidget", "<h1>«¤7»</h1>")
    + of("celwidget", f"<h2>«About this item»</h2><ul>{many(5, '<li><span>«§1»</span></li>')}</ul>")
    + "<div id=similarities_div><h2>Others also looked at</h2><ol>"
    + many(6, "<li><a href=/p#>Other lamp of glass for rooms</a></li>")
    + "</ol></div>"
    + of("celwidget", "<h2>«Description»</h2><div><p>«§3»</p></div>")
    + f"</div>{FOOT}",
    "list of events": NAV
    + "<div class=view-events><h1>«Events»</h1>"
    + many(9, of("views-row", "<div><span>«May #, 2024»</span></div><h3><a href=/e#>«¤5»</a></h3><div>«¤2»</div>"))
    + f"</div>{FOOT}",
    "list of links": "<table>"
    + many(30, "<tr><td>«#.»</td><td><a href=x#>«¤7»</a></td></tr>")
    + "</table>",
    "index of a manual": MENU
    + "<h2>«Keyword index»</h2><var>Other indexes:<ul><li><a href=i>Books</a></ul></var><ul>"
    + many(150, "<li><a href=k#>«¤3»</a></li>")
    + "</ul>",
    "short answers": MENU
    + "<div id=question><h1>«¤5»</h1><div class=post-text><p>«§1»</p></div></div><div id=answers><h2>«Answers to it»</h2>"
    + many(3, "<div class=answer><div class=post-text><p>«§1»</p></div></div>")
    + "</div>"
    + LATEST
    + DIVFOOT,
    "forum": MENU
    + "<div id=page-body role=main><h2><a href=t>«Repairing a bridge»</a></h2>"
    + many(8, f"<div class='post bg1'>{PROFILE}<div class=postbody><div class=content>«§3»</div></div></div>")
    + "</div>"
    + DIVFOOT,
    "forum of articles": NAV
    + many(
        7,
        "<article class='message message--post'><section class=message-user><h4><a href=m>user#</a></h4><dl><dt>Joined</dt>"
        "<dd>Jan 2, 2015</dd></dl></section><div class=message-userContent><article class=message-body><div>«§3»</div>"
    "</article>"
        "</div></article>",
    )
    + FOOT,
    "questions and answers": NAV
    + "<div itemscope itemtype='https://schema.org/QAPage' id=mainbar role=main><h1>«How to repair a bridge»</h1>"
    + many(3, f"<div class=answer><div>«§3»</div><div class=comments><ul class=comments-list>{REPLY}</ul></div></div>")
    + "</div>"
    + FOOT,
    "thread of comments": "<table><tr><td><a href=/>News</a> <a href=/new>new</a></td></tr><tr><td>"
    "<a href=x>«A library is open to all»</a>"
    "</td></tr><tr><td><table class=comment-tree>"
    + many(12, "<tr class='athing comtr'><td><div><a href=u>user#</a></div><div class=comment><div class=commtext>«§2»"
    "</div></div></td></tr>")
    + "</table></td></tr></table>",
    "thread in itself": "<div class=content role=main><p class=title><a href=t>«What did you see»</a></p>"
    "<div class=commentarea>"
    + many(4, of("thing comment", of("entry", "<p>«§2»") + of("child", many(2, of("thing comment", of("entry", "<p>«§2»"))))))
    + "</div></div>",
    "product": NAV
    + "<main class=site-main><div class='product type-product'><div class='summary entry-summary'><h1>«Workshop lamp»</h1>"
    + "<p class=price>«$49.90»</p><div><p>«§2»</p></div></div><div class=woocommerce-tabs><ul class=tabs><li>"
    "<a href=#d>Description"
    + "</a></li></ul><div class='panel entry-content' id=d><h2>«Description»</h2><p>«§4»</p></div><div class=panel>"
    "<table><tr><th>«Weight»"
    + "</th><td>«2 kg»</td></tr><tr><th>«Colour»</th><td>«Copper»</td></tr></table></div></div>"
    "<section class='related products'>"
    + "<h2>Related products</h2><ul>"
    + many(4, "<li><a href=/p#><h2>Other lamp of glass</h2><span>$1#.00</span></a></li>")
    + "</ul></section></div></main>"
    + FOOT,
    "product with tabs": NAV
    + of("product-detail", "<h1>«Copper lamp»</h1>" + of("tab-content", of("tab-pane", "<p>«§2»")
    + "<div class=tab-pane style='display:none'>"
    + "<table><tr><td>«Weight»<td>«2 kg»<tr><td>«Power»<td>«12 Watt»</table></div>"))
    + of("customers-also-bought", many(6, "<a href=/p#>Lamp number #</a>"))
    + FOOT,
    "technical data": NAV
    + of("pdp", "<h1>«Traveller notebook»</h1><div class=pdp-price>«1,199.00 EUR»</div><div id=description>«§4»</div>"
    + of("specs", "<h2>«Technical data»</h2>" + many(8, "<div class=row><div>«Memory of kind #»</div><div>«16 GB»</div>"
    "</div>")))
    + FOOT,
    "listing": NAV + f"<main><h1>«Lamps»</h1><p>«§2»</p><ul class=products>{many(12, CARD)}</ul></main>" + FOOT,
    "teasers": MENU + of("teasers", many(12, of("teaser", "<h3><a href=/t#>«¤6»</a></h3><p>«§1»</p>"))) + DIVFOOT,
    "several articles": NAV
    + "<main>"
    + many(8, "<article class=post><header><h2><a href=/p#>«¤5»</a></h2></header><div class=entry-summary><p>«§2»</p>"
    "</div></article>")
    + f"</main>{LATEST}{FOOT}",
    "recipe": MENU
    + of("recipe", "<h1>«Barley soup»</h1>" + of("ingredients", f"<h2>«Ingredients»</h2><ul>{many(6, '<li>«# spoons of ¤1»')}</ul>")
    + of("method", f"<h2>«Method»</h2><ol>{many(5, '<li>«§1»')}</ol>"))
    + DIVFOOT,
    "menu of a restaurant": NAV
    + of("menu-list", many(4, of("menu-section", "<h2>«Dishes #»</h2>" + many(5, of("menu-item", "<h4>«¤3»</h4><p>«¤7»"
    "</p><b>«5.50»</b>")))))
    + FOOT,
    "table": NAV
    + "<h1>«Departures»</h1><table class=timetable>"
    + many(20, "<tr><td>«#:15»</td><td>«¤2»</td><td>«Platform #»</td><td>«late»</td></tr>")
    + f"</table>{FOOT}",
    "start page of a product": NAV
    + "<section class='hero-banner overflow-hidden'><h1>«Repair your bridge»</h1><p>«§1»</p></section>"
    "<section class=features>"
    + many(6, of("feature overflow-hidden", "<h3>«¤3»</h3><p>«§1»</p>"))
    + "</section><section class=prices>"
    + many(3, of("plan", "<h3>«Plan #»</h3><div>«$# a month»</div><ul><li>«¤3»<li>«¤4»</ul>"))
    + f"</section>{FOOT}",
    "questions that open": NAV
    + "<h1>«Questions»</h1>"
    + many(8, "<h2><button aria-expanded=false>«¤6?»</button></h2><div class='accordion-collapse' aria-hidden=true>"
    "<p>«§2»</p></div>")
    + FOOT,
    "page builder": NAV
    + many(4, "<section><div class='elementor-element elementor-widget elementor-widget-heading'><h2>«¤3»</h2></div>"
    "<div class='elementor-widget elementor-widget-text-editor'><p>«§2»</p></div></section>")
    + FOOT,
    "short": NAV + "<main><h1>«Contact»</h1><p>«§1»</p><address>«12 Harbour Road»<br>«Oldtown»</address><ul>"
    "<li>«Daily from 9 to 17»</ul></main>" + FOOT,
    "article with comments": NAV
    + "<div class=article><h1>«The harbour»</h1><p>«§3»</p><p>«§3»</p><p>«§3»</p></div><div id=comments>"
    + many(15, of("comment", "<p>§2</p>"))
    + f"</div>{FOOT}",
    "article of several systems": MENU + of("article-wrap", "<h1>«Seven towers»</h1>" + many(7, "<h2>«# ¤3»</h2><p>«§2»"
    "</p><ul><li>«¤5»<li>«¤6»</ul>")) + DIVFOOT,
    "code": NAV + "<article class=markdown-body><h1>«Tools»</h1><p>«§2»</p><pre>pip install x</pre><h2>«Use»</h2><p>«§1»"
    "</p><ul><li>«¤5»</ul></article>" + FOOT,
    "right to left": f"<div dir=rtl>{MENU}<div class=text><h1>«الجسر»</h1>{many(8, f'<p>«{ARABIC}»</p>')}</div>{DIVFOOT}</div>",
    "Chinese": MENU + of("left-box", "<h1>«旧桥重新开放»</h1>" + of("txt", many(8, f"<p>«{CHINESE}»</p>"))) + DIVFOOT,
    "Chinese in lines": MENU + of("book", f"<h1>«第一章»</h1><div id=content>{many(12, f'　　«{CHINESE}»<br>')}</div>") + DIVFOOT,
    "Japanese": NAV + of("entry", "<h1>«新しい橋»</h1>" + of("entry-body", many(8, f"<p>«{JAPANESE}»</p>"))) + FOOT,
}  # fmt: skip


def written(template: str) -> tuple[bytes, str]:
    """A page, and its content."""
    turns = itertools.count()

    def sentences(match: "re.Match[str]") -> str:
        lists = (THINGS, DEEDS, PLACES, TIMES)
        at = [next(turns) for _ in range(int(match[1]))]
        return " ".join(
            "The " + " ".join(part[n * (3 + k) % len(part)] for k, part in enumerate(lists)) + "." for n in at
        )

    def names(match: "re.Match[str]") -> str:
        return " ".join(THINGS[next(turns) % len(THINGS)] for _ in range(int(match[1])))

    page = re.sub("¤(\\d)", names, re.sub("§(\\d)", sentences, template))
    content = "\n".join(re.sub("<[^>]+>", " ", part) for part in re.findall("«(.*?)»", page))
    return f"<!doctype html><title>t</title><body>{page}".translate({ord("«"): None, ord("»"): None}).encode(), content


def words(text: str) -> "Counter[str]":
    return Counter(re.findall(r"[\u3041-\u9fff]|[^\W\u3041-\u9fff]+", text.lower()))


@pytest.mark.parametrize("kind", PAGES)
def test_the_text_of_a_page_is_its_content_whatever_kind_it_is_of(kind: str) -> None:
    page, content = written(PAGES[kind])
    for text in (main_text(page), re.sub(r"\]\([^)]*\)", "", as_markdown(page, "http://a.test/").text)):
        found, right = words(text), words(content)
        common = (found & right).total()
        assert common >= 0.95 * right.total(), text
        assert common >= 0.85 * found.total() - 5, text


def test_headings_that_open_answers_are_headings_of_markdown() -> None:
    page, _ = written(PAGES["questions that open"])
    assert as_markdown(page, "").text.count("## ") == 8


def test_links_under_a_heading_of_references_belong_to_the_text() -> None:
    prose = (
        "<p>" + "The committee has decided that the old bridge will be replaced by a new one in the coming year. " * 16
    )
    links = "".join(f"<li><a href=/r{at}>A work about bridges {at}</a>" for at in range(5))
    page = f"<main><h1>Bridges</h1>{prose}<h2><span>See also</span></h2><ul>{links}</ul><h2>More of us</h2><ul>{links}</ul></main>"
    assert as_markdown(page.encode(), "http://a.test/").text.count("](http://a.test/r") == 5
