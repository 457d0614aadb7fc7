"""The form of a new crawl: made of the table of options, without what names files, code or secrets."""

from gossamer.assembly.options import CrawlOptions
from gossamer.dashboard.starting import NOT_OF_A_FORM, offered_options
from gossamer.flow.sheet import properties

#: Options whose values are texts of the person's own, and name nothing of this machine. A new one is judged before it comes here.
TEXTS = {
    "include", "exclude", "normalise", "filter", "only", "never", "until", "topic", "recrawl", "recrawl_rate", "interval",
    "user_agent", "contact", "header", "resolve", "allow_network", "language", "place", "agent_place",
}  # fmt: skip


def test_every_option_is_in_the_form_or_has_a_reason_not_to_be() -> None:
    offered = {one.name for one in offered_options()}
    named = {one.name for one in properties(CrawlOptions) if one.names}
    assert offered | named | NOT_OF_A_FORM == {one.name for one in properties(CrawlOptions)}
    assert offered & (named | NOT_OF_A_FORM) == set()


def test_an_option_that_takes_a_text_is_offered_only_where_the_text_names_no_file_and_no_code() -> None:
    assert {one.name for one in offered_options() if "str" in one.type} == TEXTS
    assert {"output", "auth", "proxy", "items", "sinks", "relevance"} <= {
        one.name for one in properties(CrawlOptions) if one.names
    }
