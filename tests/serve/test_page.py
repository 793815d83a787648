"""The page, in a real browser: Debian's Chromium, driven by playwright."""

import os
import shutil
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Response, Route, ViewportSize, expect, sync_playwright

from tests.serve.conftest import Running

pytestmark = pytest.mark.slow

TEX = (
    "\\section{Start}\n"
    "Recurrent networks with gated memory learn across long sequences \\cite{?}. 𝔸𝔹\n\n"
    "The pages of the web are ranked by their links \\citep{vaswani, ?}.\n"
)
BIB = "@misc{vaswani,\n  title = {Attention Is All You Need},\n  year = {2017}\n}\n"
UNMARKED = (
    "We describe our own system in this paper. "
    "Recurrent networks with gated memory cells learn dependencies across long sequences.\n"
)
HTML = "<img src=x onerror='window.ran=1'><script>window.ran=1</script>"
SECONDS = 20_000
WATCH = "addEventListener('securitypolicyviolation', (event) => (window.violations ??= []).push(event.blockedURI))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; without one the tests are skipped, but never in the gate."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        reason = "there is no Chromium: apt-get install chromium"
        if os.environ.get("CITEREC_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    """The page, opened anew. At the end: no error, nothing forbidden was tried, and nobody else was asked."""
    context = browser.new_context(viewport=ViewportSize(width=1280, height=800), accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    context.add_init_script(WATCH)
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    expect.set_options(timeout=SECONDS)
    errors: list[str] = []
    asked: set[str] = set()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname or ""))
    page.goto(server.url)
    yield page
    assert page.evaluate("[window.violations ?? [], window.ran ?? 0]") == [[], 0]
    context.close()
    assert errors == []
    assert asked <= {"127.0.0.1", ""}  # a download has no host


def paste(page: Page, tex: str = TEX, bib: str = BIB) -> None:
    """Replaces both texts, and waits until they are read."""

    def is_read(response: Response) -> bool:
        sent = response.request.post_data_json if response.url.endswith("/drafts") else {}
        return bool(sent) and (sent["text"], sent["bibliography"]) == (tex, bib)

    with page.expect_response(is_read):
        page.fill("#text", tex)
        page.click("#tab-bib")
        page.fill("#text", bib)
        page.click("#tab-draft")


def place(page: Page, number: int) -> Locator:
    return page.locator("#places button").nth(number)


def text_of(page: Page, tab: str) -> str:
    page.click(f"#tab-{tab}")
    return page.input_value("#text")


def test_a_newcomer_gets_papers_with_one_click(page: Page) -> None:
    expect(page.locator("#places button")).to_have_count(3)
    page.click("#first")
    expect(page.locator("#papers h3").first).to_have_text("Long Short-Term Memory")
    expect(page.locator("#papers li").first).to_contain_text("In your bibliography: hochreiter1997long")
    expect(page.locator("#papers .group")).to_have_text(["From your bibliography", "All others"])
    expect(page.locator("#papers li").first).to_contain_text("words in common")
    expect(page.locator("#index option")).to_have_count(2)


def test_two_places_by_keyboard_then_undo_and_save(page: Page) -> None:
    paste(page)
    expect(page.locator("#places button")).to_have_count(2)
    place(page, 0).focus()
    for key in ("j", "k", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#pick-0")).to_be_focused()
    expect(page.locator("#papers h3").first).to_have_text("Attention Is All You Need")  # from the bibliography
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#places button")).to_have_count(1)
    expect(page.locator("#papers h3").first).to_contain_text("Hypertextual Web Search Engine")
    expect(page.locator("#pick-0")).to_be_focused()
    for key in ("Space", "j", "Space"):
        page.keyboard.press(key)
    expect(page.locator("#insert")).to_have_text("Insert 2 papers")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("No place is left")
    both = page.input_value("#text")
    assert "sequences \\cite{hochreiter1997long}. 𝔸𝔹" in both and "\\citep{vaswani,brin1998anatomy," in both
    bib = text_of(page, "bib")
    assert bib.startswith(BIB) and bib.count("@") == 4
    page.keyboard.press("Escape")
    page.click("#tab-draft")
    page.locator("#text").press("Control+Home")
    page.keyboard.type("New 𝔸 words. ")  # an edit after an insertion is kept
    page.locator("#undo").focus()
    for places in (1, 2):
        page.keyboard.press("u")
        expect(page.locator("#places button")).to_have_count(places)
    assert (text_of(page, "bib"), text_of(page, "draft")) == (BIB, f"New 𝔸 words. {TEX}")


def test_filters_and_other_words(page: Page) -> None:
    paste(page)
    place(page, 0).click()
    expect(page.locator("#papers li").first).to_be_visible()
    place(page, 0).focus()
    page.keyboard.press("/")
    page.keyboard.type("anatomy of a large-scale hypertextual search engine")
    page.keyboard.press("Enter")
    expect(page.locator("#papers h3").first).to_contain_text("Hypertextual Web Search Engine")
    page.click("#filters summary")
    page.fill("#year_from", "2010")
    page.keyboard.press("Tab")
    expect(page.locator("#papers h3").first).not_to_contain_text("Hypertextual")
    page.fill("#fields", "Alchemy")
    page.keyboard.press("Tab")
    expect(page.locator("#papers-problem")).to_contain_text("Alchemy")


def test_a_paragraph_without_a_place(page: Page) -> None:
    paste(page, UNMARKED, "")
    expect(page.locator("#places-heading")).to_have_text("0 places")
    page.click("#first")
    expect(page.locator("#suggestions button")).to_contain_text("Long Short-Term Memory")
    page.click("#suggestions button")
    expect(page.locator("#papers h3").first).to_have_text("Long Short-Term Memory")
    assert "sequences \\cite{?}." in page.input_value("#text")
    page.locator("#papers li button", has_text="Insert").first.click()
    expect(page.locator("#done")).to_be_visible()
    page.click("#check-now")
    expect(page.locator("#check-summary")).to_have_text("Nothing to mend.")


def test_words_alone_and_the_library(page: Page) -> None:
    paste(page, "", "")
    page.fill("#words", "attention for translation")
    page.keyboard.press("Enter")
    expect(page.locator("#papers h3").first).to_have_text("Attention Is All You Need")
    page.click("#tab-library")
    expect(page.locator("#library h3")).to_have_count(20)
    page.fill("#library-words", "vaswani")
    page.keyboard.press("Enter")
    expect(page.locator("#library h3").first).to_have_text("Attention Is All You Need")
    page.locator("#library summary").first.click()
    page.click("#library button:has-text('Copy key')")
    expect(page.locator("#status")).to_have_text("vaswani2017attention copied.")
    page.click("#library button:has-text('Copy BibTeX')")
    expect(page.locator("#status")).to_have_text("The entry copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("@inproceedings{vaswani2017attention,")


def test_a_draft_is_checked(page: Page) -> None:
    bib = BIB.replace("2017", "2019")
    paste(page, "Attention suffices to translate \\cite{vaswani,nobody}.\n", bib)
    page.click("#tab-check")
    expect(page.locator("#findings")).to_contain_text("nobody has no entry in the bibliography")
    expect(page.locator("#online")).to_be_hidden()  # this server asks no services
    page.click("#findings button:has-text('Change year to 2017')")
    expect(page.locator("#findings")).not_to_contain_text("year")
    assert text_of(page, "bib") == bib.replace("2019", "2017")


def test_html_is_text(page: Page) -> None:

    def hostile(route: Route) -> None:
        answer = route.fetch().json()
        hit = answer["hits"][0] | dict.fromkeys(["title", "venue", "tldr", "abstract", "support", "key"], HTML)
        hit |= {"authors": [HTML], "citance": None, "why": [HTML]}
        hit |= {"also": [{"title": HTML}], "fields_of_study": [HTML]}
        hit |= {"external_ids": {"DOI": "javascript:window.ran=1"}}
        route.fulfill(json={**answer, "hits": [hit], "text": HTML})

    page.route("**/drafts/recommend", hostile)
    paste(page, f"\\section{{{HTML}}}\n{HTML} Trees {HTML} vote <REF>.", f"@misc{{a, title={{{HTML}}}}}\n@misc{{{HTML}")
    expect(place(page, 0)).to_contain_text("<script>")
    place(page, 0).click()
    expect(page.locator("#papers li")).to_contain_text(HTML)
    assert page.locator("main img, main script").count() == 0
    page.click("#papers summary")
    assert page.get_attribute("#papers a", "href") == "https://doi.org/javascript:window.ran=1"


def test_errors_with_their_remedies(page: Page) -> None:
    paste(page, "One.\nTwo \\cite{?} {", "@misc{a, title={x}\n")
    expect(page.locator("#draft-problem")).to_contain_text("Close its braces")
    page.click("#draft-problem button")
    assert page.evaluate("document.getElementById('text').selectionStart") == 5
    paste(page, TEX, "@misc{a, title={x}\n")
    expect(page.locator("#draft-problem")).to_be_hidden()
    expect(page.locator("#remarks summary")).to_have_text("2 remarks on the bibliography")
    page.route("**/drafts/recommend", lambda route: route.abort())
    place(page, 1).click()
    expect(page.locator("#papers-problem")).to_contain_text("Check that `citerec serve` runs")
    page.unroute_all(behavior="ignoreErrors")
    page.click("#papers-problem button")
    expect(page.locator("#papers h3").first).to_contain_text("Hypertextual")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 820, 1440])
def test_everybody_can_use_it_at_every_width(page: Page, width: int, colours: Literal["light", "dark"]) -> None:
    page.set_viewport_size(ViewportSize(width=width, height=800))
    page.emulate_media(color_scheme=colours)
    expect(page.locator("#places button")).to_have_count(3)
    page.click("#first")
    expect(page.locator("#papers h3").first).to_be_visible()
    for tab in ("draft", "check", "library"):
        page.click(f"#tab-{tab}")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab  # nothing is cut off
