"""The status page in a real Chromium: it lives, obeys, and can be used by keyboard, by ear and on a telephone."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, make_picture
from living import Life
from playwright.sync_api import Browser, Page, expect, sync_playwright
from serving import served
from waiting import until

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
SHOTS = os.environ.get("DEPTH_WATCHER_SHOTS")
EVIL = "<img src=x onerror=document.title='owned'>.jpg"
WAIT_MS = 20_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian's package of that name)")

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    one = Life(home, tmp_path)
    yield one
    one.bury()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """``opened(port, **how)``: the status page in a context of its own. Whatever a page complains of fails the test."""
    contexts, complaints = [], []

    def open_page(port: int, **how: Any) -> Page:
        contexts.append(browser.new_context(**how))
        contexts[-1].set_default_timeout(WAIT_MS)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
        answer = page.goto(f"http://127.0.0.1:{port}/")
        assert answer is not None
        assert answer.ok
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def shot(page: Page, name: str) -> None:
    """A picture of the page for people, where ``DEPTH_WATCHER_SHOTS`` names a folder for it."""
    if SHOTS:
        Path(SHOTS, f"{name}.png").write_bytes(page.screenshot(full_page=True))


def broken(life: Life, *names: str) -> None:
    for name in names:
        (life.inbox / name).write_bytes(b"no picture")


expect.set_options(timeout=WAIT_MS)


def mend(life: Life, *names: str) -> None:
    """Put a good picture in the place of each that lies in quarantine, once it lies there whole."""
    for name in names:
        until((life.failed / f"{name}.error.json").exists)
        make_picture(life.failed / name)


def test_a_dropped_picture_appears_by_itself(life: Life, opened: Open) -> None:
    """A picture that is dropped appears with both thumbnails, the counts and the graph follow, and nothing reloads."""
    with served(life) as port:
        page = opened(port)
        expect(page.get_by_text("Reload the page")).to_have_count(0)
        expect(page.locator("#state")).to_have_text("running")
        expect(page.locator("#facts")).to_contain_text("nodes on cpu")
        expect(page.locator("#maps")).to_have_text("No maps yet.")
        assert page.locator("#graph rect").count() == 0
        page.evaluate("window.same = true")
        make_picture(life.inbox / "first.jpg", (300, 200))
        expect(page.locator("#maps li")).to_contain_text("first.jpg")
        until(lambda: page.evaluate("[...document.images].map(image => image.naturalWidth > 0)") == [True, True])
        expect(page.locator("#graph rect")).to_have_count(1)
        page.evaluate("document.images[0].same = true")
        make_picture(life.inbox / "second.jpg", (300, 200))
        expect(page.locator("#maps li")).to_have_count(2)
        expect(page.get_by_role("row", name="Done 2", exact=True)).to_be_visible()
        shot(page, "live")
        assert page.evaluate("window.same") is True
        assert page.evaluate("document.images[2].same") is True, "a picture that stays is not fetched again"


def test_it_polls_where_no_events_come(life: Life, opened: Open, browser: Browser) -> None:
    """Where the stream is refused, as by servers of other processes, the page asks every few seconds instead."""
    with served(life) as port:
        context = browser.new_context()
        page = context.new_page()
        page.route("**/api/events", lambda route: route.fulfill(status=204))
        page.goto(f"http://127.0.0.1:{port}/")
        make_picture(life.inbox / "a.jpg")
        expect(page.locator("#maps li")).to_contain_text("a.jpg")
        context.close()


def test_a_daemon_that_goes_and_comes_back(life: Life, opened: Open) -> None:
    """The page says that nobody answers, and recovers by itself when the daemon is back."""
    with served(life) as port:
        page = opened(port)
        expect(page.locator("#state")).to_contain_text("running")
    expect(page.locator("#state")).to_contain_text("no answer")
    with served(life, port=port):
        expect(page.locator("#state")).to_contain_text("running")


def test_a_broken_picture_and_its_retry(life: Life, opened: Open) -> None:
    """A failure shows its reason; the button brings it back, says so, and the mended picture becomes a map."""
    with served(life) as port:
        page = opened(port)
        broken(life, "bad.jpg")
        row = page.locator("#failures tr", has_text="bad.jpg")
        expect(row).to_contain_text("the file is no picture")
        mend(life, "bad.jpg")
        row.get_by_role("button").click()
        expect(page.locator("#said")).to_have_text("bad.jpg is tried again.")
        expect(page.locator("#failures")).to_have_text("Nothing has failed.")
        expect(page.locator("#maps li")).to_contain_text("bad.jpg")


def test_a_retry_that_cannot_be(life: Life, opened: Open) -> None:
    """A picture that somebody took out of quarantine meanwhile: the page says why it cannot be tried again."""
    with served(life) as port:
        page = opened(port)
        broken(life, "bad.jpg")
        button = page.get_by_role("button", name="Try bad.jpg again")
        expect(button).to_be_visible()
        page.route("**/api/retry", lambda route: route.continue_(post_data='{"name": "other.jpg"}'))
        button.click()
        expect(page.locator("#said")).to_contain_text("no failed picture has this name")


def test_pause_and_resume(life: Life, opened: Open) -> None:
    """The button pauses, the state says so, a dropped picture waits; resume makes its map."""
    with served(life) as port:
        page = opened(port)
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#state")).to_have_text("paused")
        make_picture(life.inbox / "a.jpg")
        expect(page.get_by_role("row", name="Waiting 1", exact=True)).to_be_visible()
        shot(page, "paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#state")).to_have_text("running")
        expect(page.locator("#maps li")).to_contain_text("a.jpg")


@pytest.mark.parametrize("script", [True, False])
def test_a_name_that_is_html(life: Life, opened: Open, script: bool) -> None:
    """A file called <img src=x onerror=…> is a name: shown as it is, in list and button, and nothing runs."""
    with served(life) as port:
        live = opened(port)
        broken(life, EVIL)
        expect(live.locator("#failures td").first).to_have_text(EVIL)
        page = live if script else opened(port, java_script_enabled=False)
        expect(page.locator("#failures td").first).to_have_text(EVIL)
        expect(page.get_by_role("button", name=f"Try {EVIL} again")).to_be_visible()
        assert page.locator("#failures img").count() == 0
        assert page.title() == "depth-watcher"


HISTORY = """
INSERT INTO frames (inbox, key, rel, size, mtime_ns, state, attempts, attempt_at, ended_at, outbox, base, base_key,
                    maps, reason, filed, place)
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
SELECT :inbox, CAST('f' || i AS BLOB), CAST('shot/frame_' || i || '.jpg' AS BLOB), 1, 1,
       CASE WHEN i % 2 THEN 'failed' ELSE 'done' END, 1, i, i, :outbox, CAST('b' || i AS BLOB), CAST('b' || i AS BLOB),
       '["/gone/' || i || '.png"]', '{"what": "it is broken", "what_to_do": "Save it again."}', 1,
       CAST('/gone/' || i || '.jpg' AS BLOB) FROM n
"""


def test_a_long_history(life: Life, opened: Open) -> None:
    """With 5 000 maps and 5 000 failures behind it the page shows the newest, says how many there are, and is live."""
    with served(life):
        pass
    with sqlite3.connect(life.state / "journal.db") as journal:
        journal.execute(HISTORY, {"inbox": os.fsencode(life.inbox), "outbox": os.fsencode(life.outbox)})
    journal.close()
    with served(life) as port:
        page = opened(port)
        assert page.locator("#failures tr").count() == 50
        expect(page.locator("#more")).to_contain_text("The newest 50 of 5,000")
        assert page.locator("#maps li").count() == 12
        expect(page.locator("#maps img.gone")).not_to_have_count(0)  # the files of that history are not there
        make_picture(life.inbox / "new.jpg")
        expect(page.locator("#maps li").first).to_contain_text("new.jpg")
        assert page.evaluate("document.getElementsByTagName('*').length") < 1500
        shot(page, "history")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_every_screen(life: Life, opened: Open, scheme: Any, width: int) -> None:
    """At any width nothing has to be pushed sideways; light and dark have a contrast that WCAG calls enough (4.5:1)."""
    long = "a-name-without-any-space-" * 8 + ".jpg"
    with served(life) as port:
        page = opened(port, color_scheme=scheme, viewport={"width": width, "height": 800})
        broken(life, long)
        make_picture(life.inbox / ("good-" + long), (300, 200))
        expect(page.locator("#failures")).to_contain_text("a-name")
        expect(page.locator("#maps")).to_contain_text("good-")
        expect(page.locator("#graph rect")).to_have_count(1)
        shot(page, f"{scheme}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert [text for text, ratio in page.evaluate(CONTRASTS) if ratio < 4.5] == []
        luminance = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert luminance == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")


# Contrast of every element with text of its own against what is painted behind it, by the formula of WCAG 2.
CONTRASTS = """() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parts(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); }
    return [255, 255, 255]; };
  return [...document.body.querySelectorAll("*")]
    .filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(e => !["SCRIPT", "NOSCRIPT"].includes(e.tagName))
    .map(e => { const [a, b] = [light(parts(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
      return [e.textContent, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)]; });
}"""


def test_without_javascript(life: Life, opened: Open) -> None:
    """Plain tables, graph included; the buttons are forms that work, and come back to the page."""
    with served(life) as port:
        broken(life, "bad.jpg")
        make_picture(life.inbox / "good.jpg", (300, 200))
        live = opened(port)
        expect(live.locator("#graph rect")).to_have_count(1)
        expect(live.get_by_role("button", name="Try bad.jpg again")).to_be_visible()
        page = opened(port, java_script_enabled=False)
        expect(page.locator("#facts")).to_contain_text("starter")
        expect(page.locator("#graph rect")).to_have_count(1)
        expect(page.locator("#maps li")).to_contain_text("good.jpg")
        expect(page.get_by_text("Reload the page")).to_be_visible()
        shot(page, "no-javascript")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        mend(life, "bad.jpg")
        page.get_by_role("button", name="Try bad.jpg again").click()
        life.await_done(2)
        page.reload()
        expect(page.locator("#failures")).to_have_text("Nothing has failed.")


def test_by_keyboard(life: Life, opened: Open) -> None:
    """Tab goes through the buttons in reading order, focus is visible and outlives updates, Enter and Space press."""
    with served(life) as port:
        page = opened(port)
        broken(life, "a.jpg", "b.jpg")
        expect(page.locator("#failures button")).to_have_count(2)
        names = []
        for _ in range(3):
            page.keyboard.press("Tab")
            held = page.locator("*:focus")
            names.append(held.get_attribute("aria-label") or held.inner_text())
            outline = held.evaluate(
                "e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
            )
            assert outline[0] == "solid"
            assert outline[1] >= 2
        assert names[0] == "Pause"
        assert set(names[1:]) == {"Try a.jpg again", "Try b.jpg again"}
        shot(page, "focus")
        broken(life, "c.jpg")  # above the others: the row that has the focus moves down, and keeps it
        expect(page.locator("#failures button")).to_have_count(3)
        expect(page.locator("*:focus")).to_have_attribute("aria-label", names[2])
        mend(life, "a.jpg", "b.jpg", "c.jpg")
        for left in (2, 1, 0):
            page.keyboard.press("Enter" if left else "Space")
            expect(page.locator("#failures button")).to_have_count(left)
            expect(page.locator("*:focus")).to_have_count(1)
        expect(page.locator("*:focus")).to_have_text("Failed")  # nothing is left to press: its heading has the focus


def test_by_ear(life: Life, opened: Open) -> None:
    """The accessibility tree has names and roles for everything, tables at any width, a live region for the state."""
    with served(life) as port:
        page = opened(port, viewport={"width": 400, "height": 800})
        broken(life, "bad.jpg")
        make_picture(life.inbox / "good.jpg", (300, 200))
        expect(page.locator("#failures")).to_contain_text("bad.jpg")
        expect(page.get_by_role("img", name="Depth map of good.jpg")).to_be_visible()
        expect(page.get_by_role("img", name="At most")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("depth-watcher")
        found = page.get_by_role("heading", level=2).all_inner_texts()
        expect(page.get_by_role("status").first).to_contain_text("running")
        for name in found:
            expect(page.get_by_role("region", name=name)).to_be_visible()
        assert found == [
            "Now",
            "The last frame, by stage",
            "Maps a second, the last two minutes",
            "Last maps",
            "Failed",
        ]
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("row", name="Provider cpu")).to_be_visible()
        table = page.get_by_role("table", name="Failed")
        assert table.get_by_role("columnheader").all_inner_texts() == ["Picture", "Why", "When", "Action"]
        expect(table.get_by_role("row").nth(1).get_by_role("cell")).to_have_count(4)
        expect(page.get_by_role("list").get_by_role("listitem")).to_have_count(1)
        assert page.evaluate("document.documentElement.lang") == "en"
        for button in page.get_by_role("button").all():
            assert button.bounding_box()["height"] >= 24  # type: ignore[index]  # the least of WCAG 2.2 for a target


def test_degraded_says_why(life: Life, opened: Open) -> None:
    """Whatever stands in the way is on the page, beside the word degraded."""
    with served(life) as port:
        page = opened(port)
        expect(page.locator("#state")).to_have_text("running")
        life.outbox.rmdir()
        life.outbox.write_text("in the way")
        make_picture(life.inbox / "a.jpg")
        expect(page.locator("#state")).to_contain_text("degraded")
        expect(page.locator("#state span")).to_contain_text("cannot be written: Not a directory")
        shot(page, "degraded")
        life.outbox.unlink()
        expect(page.locator("#state")).to_have_text("running", timeout=60_000)
