"""Words of other crawlers, and what does the same here.

Place in the flow: a command, option or setting that does not exist is looked up here before the nearest of ours is
(:mod:`gossamer.cli.main`, :mod:`gossamer.cli.options`): options of wget, curl, Browsertrix and Katana, options and settings of
Scrapy, properties of Heritrix. Letters stand for options of one letter, and count as they are written; all else is compared
without regard to capitals, hyphens and underscores.
"""

import re
from collections.abc import Container

#: Our word for it, or a sentence that says how it stands -> words of others.
_OPTIONS = {
    "--delay TIME": "w wait random-wait download_delay randomize_download_delay min-delay-ms",
    "--delay auto": "autothrottle_enabled autothrottle_start_delay autothrottle_max_delay delay-factor max-delay-ms",
    "--depth N": "l level max-depth depth_limit max-hops",
    "every crawl follows links, and --depth bounds it": "r recursive",
    "--strategy": "depth_priority",
    "--scope prefix": "np no-parent",
    "--scope any": "H span-hosts offsite_enabled",
    "--scope": "scope-type field-scope",
    "--only PATTERN": "D domains allowed_domains",
    "--never PATTERN": "exclude-domains",
    "--include RE2": "A accept accept-regex include-directories crawl-scope allow",
    "--exclude RE2": "R reject reject-regex exclude-directories crawl-out-scope deny",
    "--bandwidth SIZE": "limit-rate max-per-host-bandwidth-usage-kb-sec max-fetch-kb-sec",
    "--max-bytes SIZE": "Q quota size-limit max-bytes-download",
    "--max-pages N": "limit page-limit max-page-limit closespider_pagecount max-documents-download",
    "--max-time TIME": "m time-limit crawl-duration closespider_timeout max-time-seconds",
    "--max-pages-per-host N": "queue-total-budget",
    "--max-page-size SIZE": "max-filesize max-response-size download_maxsize max-length-bytes",
    "--min-free-disk SIZE": "disk-utilization pause-threshold-mib",
    "--retries N": "t tries retry retry_times max-retries max-page-retries",
    "--rate N": "rate-limit",
    "--agents N": "workers parallelism threads",
    "--concurrency N": "parallel-max concurrent_requests toe-threads max-toe-threads",
    "--per-host N": "concurrent_requests_per_domain parallel-queues",
    "--seeds FILE": "i input-file seed-file url-file list start_urls",
    "--output DIR": "P directory-prefix collection warc-file jobdir",
    "--resume": "c continue",
    "--recrawl adaptive": "N timestamping",
    "--robots ignore": "e execute no-robots",
    "--robots": "robotstxt_obey robots-policy-name",
    "--header FIELD": "H referer default_request_headers",
    "--user-agent TEXT": "U A user_agent bot_name robotstxt_user_agent user-agent-template user-agent-suffix",
    "--contact URL": "operator-contact-url operator-from",
    "--auth USER:PASSWORD": "u user http-user http-password http-auth",
    "--cookies host": "cookies_enabled",
    "--cookie-file FILE": "b load-cookies cookie-jar cookie",
    "--proxy URL": "x http-proxy https-proxy httpproxy_enabled http-proxy-host proxy-server",
    "--ca-file FILE": "ca-certificate cacert",
    "--set http.verify=false": "k no-check-certificate insecure",
    "--set http.deadline=TIME": "T timeout read-timeout download_timeout timeout-seconds",
    "--resolve PATTERN=ADDRESS": "connect-to",
    "--page-requisites": "p",
    "--mirror DIR": "k m convert-links adjust-extension html-extension",
    "--render always": "headless playwright",
    "--sitemaps": "sitemap",
    "--ads drop": "block-ads",
    "--items FILE": "O feeds feed_uri overwrite-output",
    "--sinks FILE": "item_pipelines",
    "--quiet": "silent no-verbose nolog log_enabled",
    "--verbose": "debug log_level loglevel logging",
    "--json": "jsonl",
    "--dashboard": "screencast-port telnetconsole_enabled",
    "every page is archived, and `gossamer cat` shows it": "httpcache_enabled httpcache_dir",
    "gossamer export DIR --to wacz": "generate-wacz wacz",
    "gossamer export DIR --to cdxj": "generate-cdx warc-cdx",
    "gossamer fetch URL": "I head spider server-response",
    "gossamer run FILE SEED": "a",
}

#: The same of commands.
_COMMANDS = {
    "gossamer crawl": "launch build mirror get download spider",
    "gossamer run": "runspider",
    "gossamer new spider": "startproject genspider init create",
    "gossamer fetch": "view curl wget head",
    "gossamer inspect": "parse extract",
    "gossamer continue": "unpause unhold",
    "gossamer stop": "terminate teardown kill quit cancel",
    "gossamer report": "stats",
    "gossamer topology": "settings beans",
    "gossamer search": "find grep",
    "gossamer dashboard": "ui web gui serve",
    "gossamer cat": "show",
}


def _folded(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "") if len(word) > 1 else word


def same_option(name: str, present: Container[str] | None = None) -> str:
    """The advice on an option or setting of others, as `; --delay TIME does the same here`; empty where we have none.

    Args:
        name: with its hyphens or without; of a property of a bean, as `disposition.minDelayMs`, the last part counts.
        present: options that a command has; another one is no advice there. None for all of a crawl.
    """
    wanted = _folded(name.lstrip("-").rpartition(".")[2])
    found = [ours for ours, theirs in _OPTIONS.items() if wanted in map(_folded, theirs.split())]
    if present is not None:
        found = [ours for ours in found if ours.split()[0] in present or ("--resume" in present and ours[0] != "-")]
    if found and not found[0].startswith(("--", "gossamer ")):
        return f"; {found[0]}"
    return f"; {' or '.join(found)} does the same here" if found else ""


def same_setting(key: str) -> str:
    """The advice of :func:`same_option` as `gossamer set` takes it: `; depth=N does the same here`. Empty for options of ours,
    and for settings of units, which are written in small letters."""
    if ("." in key and key == key.lower()) or not (told := same_option(key)):
        return ""
    from gossamer.crawls.options import all_options  # only where a word of others may be one of ours
    from gossamer.engine.sheet import properties

    if key.replace("-", "_") in {prop.name for prop in properties(all_options())}:
        return ""
    told = told.replace("--set ", "")
    return re.sub(
        r"--([a-z-]+)(?: ([\w:=]+))?(?= does| or )", lambda one: f"{one[1]}={one[2]}" if one[2] else one[1], told
    )


def same_command(name: str) -> str:
    """The advice on a command of others, as that of :func:`same_option`."""
    found = next((ours for ours, theirs in _COMMANDS.items() if name.lower() in theirs.split()), "")
    return f"; `{found}` does the same here" if found else ""
