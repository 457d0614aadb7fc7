"""Cookies as the IETF's http-state working group has them: its public cases, transcribed as what comes and what goes back."""

import pytest

from gossamer.fetcher.cookies import CookieJar
from gossamer.values.url import canonical

#: An instant between the dates that the cases have as past and as future.
NOW = 1_483_228_800.0

SETTER = "http://home.example.org:8888/cookie-parser?case"
RESULT = "http://home.example.org:8888/cookie-parser-result"
HOME, SIBLING = RESULT, "http://sibling.example.org:8888/cookie-parser-result"
BELOW = "http://subdomain.home.example.org:8888/cookie-parser-result"

#: The Set-Cookie fields of an answer, parted by line ends, and the Cookie field of a request for the result.
CASES = {
    "foo=bar": "foo=bar",
    "foo=bar; Expires=Fri, 07 Aug 2019 08:04:19 GMT": "foo=bar",
    "foo=bar; Expires=Fri, 07 Aug 2007 08:04:19 GMT\nfoo2=bar2; Expires=Fri, 07 Aug 2017 08:04:19 GMT": "foo2=bar2",
    "foo": "",
    "foo=bar; max-age=10000;": "foo=bar",
    "foo=bar; max-age=00000000000010000": "foo=bar",
    "foo=bar; max-age=99999999999999999999999": "foo=bar",
    "foo=bar; max-age=0;": "",
    "foo=bar; version=1;": "foo=bar",
    "foo=bar; customvalue=1000;": "foo=bar",
    "foo=bar; secure;": "",
    'foo=bar; customvalue="1000 or more";': "foo=bar",
    'foo=bar; customvalue="no trailing semicolon"': "foo=bar",
    "foo=bar\nfoo=qux": "foo=qux",
    "foo1=bar\nfoo2=qux": "foo1=bar; foo2=qux",
    "z=y\na=b": "z=y; a=b",
    "z=y, a=b": "z=y, a=b",
    "z=y; foo=bar, a=b": "z=y",
    "foo=b;max-age=3600, c=d;path=/": "foo=b",
    "a=b\n=\nc=d": "a=b; c=d",
    "a=b\n=x\nc=d": "a=b; c=d",
    "a=b\nx=\nc=d": "a=b; x=; c=d",
    "foo\n": "",
    "foo\n; bar": "",
    "foo\n   ": "",
    "foo\nbar": "",
    "foo=bar; Secure": "",
    "foo=bar; seCURe": "",
    'foo=bar; "Secure"': "foo=bar",
    "foo=bar; Secure=": "",
    "foo=bar; Secure=aaaa": "",
    "foo=bar; Secure qux": "foo=bar",
    "foo=bar; Secure =aaaaa": "",
    "foo=bar; Secure;qux": "",
    "foo=bar;       Secure     ;": "",
    "foo=bar; Path": "foo=bar",
    "foo=bar; Path=": "foo=bar",
    "foo=bar; Path=/": "foo=bar",
    "foo=bar; Path=/qux": "",
    "foo=bar; Path    =/qux": "",
    "foo=bar; Path=    /qux": "",
    "foo=bar; Path=/qux      ; taz": "",
    "foo=bar; Path=/qux; Path=/": "foo=bar",
    "foo=bar; Path=/; Path=/qux": "",
    "foo=bar; Path=/qux; Path=/cookie-parser-result": "foo=bar",
    "foo=bar; qux; Secure": "",
    'foo=bar; qux="aaa;bbb"; Secure': "",
    "foo=\u6625\u8282\u56de": "foo=\u6625\u8282\u56de",
    "\u6625\u8282=\u5bb6\u8def; \u5b8c": "\u6625\u8282=\u5bb6\u8def",
    'foo="\u6625\u8282"': 'foo="\u6625\u8282"',
    'aBc="zzz "   ;': 'aBc="zzz "',
    'aBc="zz;pp" ; ;': 'aBc="zz',
    'aBc="zzz "   "ppp"  ;': 'aBc="zzz "   "ppp"',
    'aBc=A"B ;': 'aBc=A"B',
    "BLAHHH; path=/;": "",
    '"BLA\\"HHH"; path=/;': "",
    'a="B': 'a="B',
    "=ABC": "",
    "ABC=;  path = /": "ABC=",
    "  A  = BC  ;foo;;;   bar": "A=BC",
    "  A=== BC  ;foo;;;   bar": "A=== BC",
    'foo="zoh"  ; expires=Sun, 18-Apr-2027 21:06:29 GMT ; path=/  ;  ': 'foo="zoh"',
    "    ": "",
    "a" * 5000: "",
    "foo=bar; b,az=qux": "foo=bar",
    "foo=bar; Max-Age=50,399": "foo=bar",
    "foo=bar; Expires=Fri 07 Aug 2019 08:04:19 GMT, baz=qux": "foo=bar",
    "foo=bar; max-age=-1": "",
    "foo=bar; expires=Thu, 10 Apr 1980 16:33:12 GMT": "",
    "foo=bar; max-age=60\nfoo1=bar; max-age=60\nfoo=different; max-age=0\nfoo2=more; max-age=0": "foo1=bar",
    "test=parser; domain=.parser.test; ;; ;=; ,,, ===,abc,=; abracadabra! max-age=20;=;;": "",
    'test="fubar! = foo;bar\\";" parser; max-age=6\nfive; max-age=2.63,': 'test="fubar! = foo',
    "test=kill; max-age=0\nfive; max-age=0": "",
    "six\nseven\n =eight\ntest=six": "test=six",
    "1=bar": "1=bar",
    "$=bar": "$=bar",
    "!a=bar\n@a=1\n#a=2\n%a=3": "!a=bar; @a=1; #a=2; %a=3",
    "^a=bar\n&a=1\n*a=2\n(a=3\n)a=4\n-a=5\n_a=6\n+=7": "^a=bar; &a=1; *a=2; (a=3; )a=4; -a=5; _a=6; +=7",
    "=a=bar": "",
    "a =bar": "a=bar",
    '"a=bar': '"a=bar',
    '"a=b"=bar\n"a=qux': '"a=qux',
    "   foo=bar": "foo=bar",
    "foo;bar=baz": "",
    "$Version=1; foo=bar": "$Version=1",
    "===a=bar": "",
    "foo=bar    ;": "foo=bar",
    "foo bar=baz": "foo bar=baz",
    '"foo;bar"=baz': "",
    '"foo\\"bar\n"foo\\"bar;baz"=qux': "",
    "a=b; path=/\nx=y; path=/cookie-parser-result": "x=y; a=b",
    "a=b; path=/cookie-parser-result\nx=y; path=/": "a=b; x=y",
    "foo=bar; path=/cookie-parser-result/foo": "",
    "foo=bar\nfoo=qux; path=/cookie-parser-result/foo": "foo=bar",
    "foo=bar; path": "foo=bar",
    "foo=bar; path= /": "foo=bar",
    "foo=bar; Path=/cookie-PARSER-result": "",
    "a=b;       path    =       /cookie-parser-result   \nx=y;       path    =       /book   ": "a=b",
    "foo=bar; path=/dog; path=": "foo=bar",
    "foo=bar; path=; path=/dog": "",
    "foo=  bar": "foo=bar",
    'foo="  bar "': 'foo="  bar "',
    'foo="bar=baz"': 'foo="bar=baz"',
    "   foo     =       bar             ;       ttt": "foo=bar",
}

#: Cookies of one name for six places.
ORDER = """key=val0;
key=val1; path=/cookie-parser-result
key=val2; path=/
key=val3; path=/bar
key=val4; domain=.example.org
key=val5; domain=.example.org; path=/cookie-parser-result/foo"""

#: The same for requests elsewhere: to a path below the result, or to a whole URL.
ELSEWHERE = [
    ("foo=bar; path=/cookie-parser-result/foo", "/foo?x", "foo=bar"),
    ("foo=bar; path=/cookie-parser-result/foo", "/bar", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux", "/foo", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux", "/foo/qux", "foo=bar"),
    ("foo=bar; path=/cookie-parser-result/foo/qux", "/bar/qux", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux/", "/foo/qux", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux/", "/foo/qux/?x", "foo=bar"),
    ("foo=bar; path=/cookie-parser-result/foo/", "/foo//qux", "foo=bar"),
    ("foo=bar; path=/cookie-parser-result/foo/", "/fooqux", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux?", "/foo/qux?x", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux#", "/foo/qux", ""),
    ("foo=bar; path=/cookie-parser-result/foo/qux;", "/foo/qux", "foo=bar"),
    ('foo=bar; path="/cookie-parser-result/foo/qux;"', "/foo/qux", "foo=bar"),
    ("foo=bar; path=/cookie-parser-result/f%6Fo/bar", "/foo/bar", ""),
    ("foo=bar; path=/cookie-parser-result\nfoo=qux; path=/cookie-parser-result/", "/dog", "foo=qux; foo=bar"),
    (
        ORDER,
        "/foo/baz",
        "key=val5; key=val1; key=val2; key=val4",
    ),
    ("foo=bar; domain=home.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=home.example.org", SIBLING, ""),
    ("foo=bar; domain=.home.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=home.example.org", BELOW, "foo=bar"),
    ("foo=bar; domain=.home.example.org", BELOW, "foo=bar"),
    ("foo=bar; domain=sibling.example.org", SIBLING, ""),
    ("foo=bar; domain=.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=..home.example.org", HOME, ""),
    ("foo=bar; domain=home..example.org", HOME, ""),
    ("foo=bar; domain=  .home.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=  .  home.example.org", HOME, ""),
    ("foo=bar; domain=home.example.org.", HOME, ""),
    ("foo=bar; domain=home.example.org..", HOME, ""),
    ("foo=bar; domain=home.example.org .", HOME, ""),
    ("foo=bar; domain=.org", HOME, ""),
    ("foo=bar; domain=.org.", HOME, ""),
    ("foo=bar; domain=home.example.org\nfoo2=bar2; domain=.home.example.org", HOME, "foo=bar; foo2=bar2"),
    ("foo2=bar2; domain=.home.example.org\nfoo=bar; domain=home.example.org", HOME, "foo2=bar2; foo=bar"),
    ('foo=bar; domain="home.example.org"', HOME, ""),
    ("foo=bar; domain=home.example.org\nfoo2=bar2; domain=.example.org", HOME, "foo=bar; foo2=bar2"),
    ("foo2=bar2; domain=.example.org\nfoo=bar; domain=home.example.org", HOME, "foo2=bar2; foo=bar"),
    ("foo=bar; domain=.example.org; domain=home.example.org", SIBLING, ""),
    ("foo=bar; domain=home.example.org; domain=.example.org", SIBLING, "foo=bar"),
    ("foo=bar; domain=home.eXaMpLe.org", HOME, "foo=bar"),
    ("foo=bar; domain=home.example.org:8888", HOME, ""),
    ("foo=bar; domain=subdomain.home.example.org", BELOW, ""),
    ("foo=bar", BELOW, ""),
    ("foo=bar; domain=home.example.org", "http://hoMe.eXaMplE.org:8888/cookie-parser-result", "foo=bar"),
    ("foo=bar; domain=home.example.org; domain=home.example.com", HOME, ""),
    ("foo=bar; domain=home.example.com; domain=home.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=home.example.org; domain=home.example.com; domain=home.example.org", HOME, "foo=bar"),
    ("foo=bar; domain=.sibling.home.example.org", "http://sibling.home.example.org:8888/cookie-parser-result", ""),
    ("foo=bar; domain=", HOME, "foo=bar"),
    ("foo=bar; domain=example.org; domain=", HOME, "foo=bar"),
    ("foo=bar; domain=foo.example.org; domain=", HOME, ""),
    ("foo=bar; domain=foo.example.org; domain=", BELOW, ""),
]


def goes_back(fields: str, asked: str) -> str:
    """What a request has as its Cookie field; as text, where fields have an octet of UTF-8 a character."""
    jar = CookieJar()
    jar.receive(SETTER, tuple(("set-cookie", field.encode().decode("latin-1")) for field in fields.split("\n")), NOW)
    return jar.field(canonical(asked), NOW).encode("latin-1").decode()


@pytest.mark.parametrize(("fields", "sent"), CASES.items())
def test_a_cookie_is_read_as_the_standard_says(fields: str, sent: str) -> None:
    assert goes_back(fields, RESULT) == sent


@pytest.mark.parametrize(("fields", "asked", "sent"), ELSEWHERE)
def test_a_cookie_goes_where_the_standard_says(fields: str, asked: str, sent: str) -> None:
    assert goes_back(fields, asked if asked.startswith("http") else RESULT + asked) == sent
