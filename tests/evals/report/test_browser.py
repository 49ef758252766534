"""Pages in a real browser: they open at once, filter, sort, go by keys and address, and let nothing out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from askance.chat import ChatRequest
from askance.cli import main
from askance.errors import ModelError
from askance.evals import compare
from askance.evals.report import Thumbnails, build_comparison, build_report, comparison_page, report_page
from askance.evals.report.html import write_page
from askance.evals.report.run_report import PageFollowing
from askance.images import Image
from tests.evals.pittads import worlds
from tests.evals.report.browser import compared, opened, reported, showing, written
from tests.evals.report.runs import HOSTILE, chain_run, copied, hostile_run, plain_run, three_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow(group="pages")

SVG = "{http://www.w3.org/2000/svg}"
ROWS = ".row .id"
FAR_TOO_MANY = 100_000


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Twelve samples of known answers."""
    return reported(tmp_path, plain_run(tmp_path / "plain"))


def test_a_page_opens_alone_and_in_silence(browser: Browser, plain: Path) -> None:
    with opened(browser, plain) as seen:
        assert "50.00 %" in seen.text(".big")
        seen.page.click("#to-samples")
        seen.page.keyboard.press("j")

        assert seen.requests == [plain.as_uri()]
        assert seen.complaints == []


def test_filters_count_what_they_leave(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#samples") as seen:
        seen.page.select_option('select[title="Result"]', "wrong")
        assert seen.texts(ROWS) == ["s0002", "s0003", "s0007", "s0008"]
        seen.page.select_option('select[title="Label or tag"]', "half: last")
        assert (seen.texts(ROWS), seen.texts("output")) == (["s0007", "s0008"], ["2 of 12"])
        seen.page.fill("input[type=search]", "S0008")
        seen.until("document.querySelectorAll('.row').length === 1")

        assert seen.do("location.hash") == "#q=S0008&result=wrong&mark=half%3A%20last"


def test_numbers_are_filtered_from_one_to_another(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#samples") as seen:
        seen.page.click(".ranges summary")
        assert seen.texts(".ranges > div > div") == ["Score, %", "Seconds", "Dollars"]
        seen.page.fill("[aria-label='Score, highest']", "50")
        assert seen.texts(ROWS) == ["s0002", "s0003", "s0007", "s0008"]
        seen.page.fill("[aria-label='Seconds, lowest']", "0.6")
        assert (seen.texts(ROWS), seen.texts(".detail h1")) == ([], [])
        seen.page.fill("[aria-label='Seconds, lowest']", "0.5")
        assert seen.do("location.hash") == "#score=..50&seconds=0.5.."
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")

        assert (seen.texts("output"), seen.page.input_value("[aria-label='Score, highest']")) == (["4 of 12"], "50")
        seen.page.click(".ranges summary")
        seen.page.keyboard.press("Escape")
        assert seen.do("[document.querySelector('.ranges').open, document.documentElement.dataset.view]") == [
            False,
            "samples",
        ]
    with opened(browser, plain, "#score=abc") as seen:
        assert seen.texts("output") == ["12 samples"]


def test_the_first_sample_that_fits_is_open_where_there_is_room(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#samples") as seen:
        assert seen.texts(".detail h1") == ["s0000"]
        seen.page.select_option('select[title="Result"]', "wrong")
        assert (seen.texts(".detail h1"), seen.do("location.hash")) == (["s0002"], "#result=wrong")
        seen.page.select_option('select[title="Result"]', "")
        seen.page.select_option('select[title="Order"]', "worst")
        assert (seen.texts(".detail h1"), seen.do("location.hash")) == (["s0004"], "#sort=worst")
    with opened(browser, plain, "#samples", viewport={"width": 390, "height": 844}) as seen:
        assert (seen.texts(".detail h1"), len(seen.texts(ROWS))) == ([], 12)


def test_a_search_finds_what_a_call_said(browser: Browser, tmp_path: Path) -> None:
    data = worlds.world(tmp_path / "data")
    whale = Image.from_path(next(data.glob("train_images/*/*"))).sha256

    def unusual(request: ChatRequest) -> dict[str, str]:
        return {"unusual": "A WHALE." if worlds.picture_of(request) == whale else "ODD."}

    run = chain_run(tmp_path / "run", data, unusual=unusual)
    with opened(browser, reported(tmp_path, run), "#q=a%20whale") as seen:
        seen.until("document.querySelectorAll('.row').length === 1")
        (found,) = seen.texts(ROWS)
        seen.page.fill("input[type=search]", "odd")
        seen.until("document.querySelectorAll('.row').length === 2")

        assert found not in seen.texts(ROWS)


def test_samples_sort_by_what_they_are_worth(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#samples") as seen:
        seen.page.select_option('select[title="Order"]', "worst")
        assert seen.texts(ROWS)[:3] == ["s0004", "s0009", "s0002"]
        seen.page.select_option('select[title="Order"]', "best")
        assert seen.texts(ROWS)[:3] == ["s0000", "s0001", "s0005"]


def test_an_address_leads_to_a_sample_and_survives_a_reload(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#sample=s0003") as seen:
        assert seen.texts(".detail h1") == ["s0003"]
        seen.page.keyboard.press("j")
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")

        assert (seen.texts(".detail h1"), seen.do("location.hash")) == (["s0004"], "#sample=s0004")


def test_an_anchor_of_the_overview_is_no_filter(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#blame") as seen:
        assert seen.page.is_visible("#overview")


def test_keys_go_through_the_samples(browser: Browser, plain: Path) -> None:
    with opened(browser, plain) as seen:
        press = seen.page.keyboard.press
        for key in "jjk":
            press(key)
        assert seen.texts(".detail h1") == ["s0000"]
        press("/")
        assert seen.do("document.activeElement.type") == "search"
        press("Escape")
        press("?")
        assert seen.page.is_visible("#help")
        press("Escape")
        assert not seen.page.is_visible("#help")
        press("Escape")
        assert seen.do("location.hash") == "#samples"
        press("Escape")
        seen.until(showing("overview"))
        assert seen.page.is_visible("#overview")


def test_tables_sort_by_their_numbers(browser: Browser, tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", worlds.world(tmp_path / "data", true=(1, 2, 3)))
    with opened(browser, reported(tmp_path, run)) as seen:
        seen.page.click("#figures th:nth-child(2) button >> nth=0")
        values = [float(text) for text in seen.texts("#figures table:first-child tbody td:nth-child(2)")[:8]]

        assert values == sorted(values, reverse=True)
        assert seen.page.get_attribute("#figures th:nth-child(2) >> nth=0", "aria-sort") == "descending"


def test_numbers_are_copied_for_a_spreadsheet(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, permissions=["clipboard-read", "clipboard-write"]) as seen:
        seen.page.hover("figure:has-text('accuracy by half')")
        seen.page.click("figure:has-text('accuracy by half') .copy")
        plot = seen.do("navigator.clipboard.readText()")
        seen.page.hover("#figures .wide")
        seen.page.click("#figures .copy")
        table = seen.do("navigator.clipboard.readText()")

    assert [line.split("\t")[:2] for line in plot.splitlines()] == [
        ["half", "%"],
        ["first", "50.00"],
        ["last", "50.00"],
    ]
    assert table.splitlines()[1].split("\t")[:2] == ["accuracy", "50.00"]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_is_saved_as_a_picture_of_its_own(browser: Browser, tmp_path: Path, width: int) -> None:
    run = plain_run(tmp_path / "run", 60, tags=lambda n: {"fold": f"fold {n % 14}", "url": f"u{n}"})
    figure = "figure:has-text('accuracy by fold')"
    size = {"width": width, "height": 844}
    with opened(browser, reported(tmp_path, run), color_scheme="dark", viewport=size) as seen:
        seen.page.hover(figure)
        with seen.page.expect_download() as saving:
            seen.page.click(f"{figure} >> text=Save")
        saving.value.save_as(tmp_path / saving.value.suggested_filename)
        assert not seen.complaints
    drawn = ElementTree.parse(tmp_path / "accuracy-by-fold.svg").getroot()
    words = {"".join(each.itertext()): each for each in drawn.iter(f"{SVG}text")}
    x, _, wide, _ = (float(number) for number in drawn.attrib["viewBox"].split())

    # What stands on the page, and no more: ten lines, the name of the rest, no button.
    assert {"accuracy by fold", "fold 0", "fold 9", "4 more"} <= words.keys()
    assert not {"fold 10", "Save", "Copy"} & words.keys()
    assert all(x <= float(each.get("x", "nan")) <= x + wide for each in words.values() if "font-weight" in each.attrib)
    assert len(list(drawn.iter(f"{SVG}circle"))) == 10
    # Dark ink on white, though the page is dark.
    assert words["fold 0"].get("fill") == "rgb(29, 29, 27)"
    assert [each.get("fill") for each in drawn.iter(f"{SVG}rect")][:1] == ["#fff"]


def test_a_call_shows_prompt_and_reply_in_full(browser: Browser, tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", worlds.world(tmp_path / "data"))
    with opened(browser, reported(tmp_path, run), f"#sample={run.answers[0].sample.id}") as seen:
        seen.page.keyboard.press("o")
        text = seen.text(".detail")

        key = run.answers[0].prediction.links["narration"]["calls"][0]
        record = run.records.get(key)
        assert record is not None
        assert key in text
        assert record.response["text"] in text
        assert record.request["messages"][0]["parts"][0]["text"].splitlines()[0] in text
        assert "✓ chosen 1." in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_the_button(browser: Browser, plain: Path, scheme: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, plain, color_scheme=scheme) as seen:
        first = seen.do(paper)
        seen.page.click("#theme")
        light = seen.do(paper)
        seen.page.click("#theme")

        assert (first == light) == (scheme == "light")
        assert seen.do(paper) != light


def test_a_phone_shows_the_list_and_then_the_sample(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#samples", viewport={"width": 400, "height": 800}) as seen:
        assert seen.do("document.documentElement.scrollWidth") <= 400
        seen.page.click(".row >> nth=2")
        assert seen.texts(".detail h1") == ["s0002"]
        seen.page.click(".back")
        assert not seen.page.is_visible(".detail")
        seen.page.click("#to-overview")
        seen.until(showing("overview"))
        assert seen.do("document.documentElement.scrollWidth") <= 400


def test_print_shows_the_sample_with_every_call_and_no_tools(browser: Browser, tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", worlds.world(tmp_path / "data"))
    with opened(browser, reported(tmp_path, run), f"#sample={run.answers[0].sample.id}") as seen:
        seen.do("window.dispatchEvent(new Event('beforeprint'))")
        seen.page.emulate_media(media="print")

        assert "NARRATED." in seen.text(".message.reply >> nth=2")
        assert not seen.page.is_visible(".filters")
        assert not seen.page.is_visible(".rows")
        controls = "[...document.querySelectorAll('select, input, textarea, button:not(.mark, .enlarge, th button)')]"
        assert seen.do(f"{controls}.filter((each) => each.checkVisibility()).length") == 0


def test_a_call_that_failed_shows_its_tries(browser: Browser, tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", worlds.world(tmp_path / "data"), narration=ModelError("It would not."))
    with opened(browser, reported(tmp_path, run), f"#sample={run.answers[0].sample.id}") as seen:
        seen.page.keyboard.press("o")
        (text,) = [each for each in seen.texts(".detail .call") if "narration" in each.partition("\n")[0]]

        assert run.answers[0].prediction.meta["failed"]["narration"] in text
        assert "Try 1: ModelError: It would not. (0.0 s)" in text
        assert "Nothing was answered, so nothing is on record." in text


@pytest.mark.parametrize("beside", [False, True], ids=["within", "beside"])
def test_pictures_are_seen(browser: Browser, tmp_path: Path, beside: bool) -> None:
    data = worlds.world(tmp_path / "data")
    report = build_report([chain_run(tmp_path / "run", data)])
    pictures = Thumbnails.of(report.runs, [data])
    out = tmp_path / "page.html"
    files = pictures.jpegs if beside else None
    write_page(out, lambda files: report_page(report, pictures=pictures, files=files), beside=files)
    with opened(browser, out, "#samples") as seen:
        seen.page.keyboard.press("j")
        seen.until("[...document.images].every((image) => image.naturalWidth > 0)")

        assert seen.do("document.images.length") == 4
        assert all(url.startswith(("file:", "data:")) for url in seen.requests)
        small = seen.do("document.querySelector('.detail img').width")
        seen.page.click(".detail .enlarge")
        assert seen.do("document.querySelector('#picture img').width") > small
        seen.page.keyboard.press("Escape")
        assert not seen.page.is_visible("#picture")
        assert seen.do("document.querySelectorAll('.detail img').length") == 1  # Escape closed the picture alone


def test_what_means_harm_does_nothing(browser: Browser, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", tmp_path / "pictures")
    out = reported(tmp_path, run)
    with opened(browser, out, "#samples") as seen:
        for _ in HOSTILE:
            seen.page.keyboard.press("j")
            seen.page.keyboard.press("o")
            assert (
                seen.do("document.querySelectorAll('.detail script, .detail svg, .detail img, .detail style').length")
                == 0
            )
        seen.page.fill("input[type=search]", "onerror")
        seen.until("location.hash.includes('q=onerror')")

        assert seen.page.title() == run.task
        assert (seen.requests, seen.complaints) == ([out.as_uri()], [])
        assert seen.do("[...document.querySelectorAll('a')].every((a) => a.getAttribute('href').startsWith('#'))")
        assert seen.do("window.getComputedStyle(document.querySelector('.detail')).display") == "block"


def test_what_would_hide_is_seen(browser: Browser, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", tmp_path / "pictures")
    with opened(browser, reported(tmp_path, run), "#samples") as seen:
        marks = seen.texts(".rows .unseen")

        assert {"U+202E", "U+2066", "U+0000", "U+001B", "U+D800"} <= {*marks}
        assert "\u202e" not in seen.text("body")


def test_a_page_could_not_run_anything_else_if_it_wanted_to(browser: Browser, plain: Path) -> None:
    plain.write_text(
        plain.read_text(encoding="utf-8").replace(
            "</main>", "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"></main>"
        ),
        encoding="utf-8",
    )
    with opened(browser, plain) as seen:
        assert seen.page.title() == "tests/plain"
        assert len([each for each in seen.complaints if "Content Security Policy" in each]) >= 2


def test_a_pair_shows_where_the_two_first_differ(browser: Browser, tmp_path: Path) -> None:
    data = worlds.world(tmp_path / "data")
    a = chain_run(tmp_path / "a", data)
    b = chain_run(tmp_path / "b", data, narration={"description": "NARRATED, but otherwise."})
    with opened(browser, compared(tmp_path, a, b), "#samples") as seen:
        seen.page.keyboard.press("j")
        (first,) = seen.texts(".link-diff:has(.mark) > summary")

        assert first.startswith("IN · narration · differs: answer")
        assert seen.texts(".link-diff[open] ins") == [", but otherwise"]
        assert seen.texts(".link-diff[open] del") == []
        assert seen.complaints == []


def test_a_hundred_thousand_samples_are_warned_of_and_only_those_in_sight_are_drawn(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = copied(plain_run(tmp_path / "run", 10), FAR_TOO_MANY), tmp_path / "page.html"
    with pytest.raises(SystemExit) as ended:
        main(["report", str(run.path), "-o", str(out)])
    with opened(browser, out, "#samples") as seen:
        assert seen.do(MOST_DRAWN) < 60
        seen.page.fill("input[type=search]", "s0007-4321")
        seen.until("document.querySelectorAll('.row').length === 1")

        assert (ended.value.code, seen.complaints) == (0, [])
        assert (seen.texts(ROWS), seen.texts("output")) == (["s0007-4321"], ["1 of 100,000"])
    assert capsys.readouterr().err == "100,000 samples make a large page, which takes a while to make and to open.\n"


def test_of_three_runs_any_two_are_shown_beside_each_other(browser: Browser, tmp_path: Path) -> None:
    runs = three_runs(tmp_path, worlds.world(tmp_path / "data"))
    with opened(browser, compared(tmp_path, *runs), "#samples") as seen:
        assert seen.texts('select[title="Which two"] option') == ["A · B: a · b", "A · C: a · c", "B · C: b · c"]
        seen.page.select_option('select[title="Which two"]', "2")
        seen.page.keyboard.press("Escape")
        seen.page.keyboard.press("j")

        assert seen.texts(".row .mark") == ["B better"] * 3
        assert seen.texts(".in-all .shown .letter") == ["B", "C"]
        assert seen.texts(".link-diff[open] del") == [", but otherwise"]
        assert seen.do("location.hash").endswith("run=2")
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        assert seen.texts(".in-all .shown .letter") == ["B", "C"]
        assert seen.complaints == []


MOST_DRAWN = """async () => {
  const list = document.querySelector(".rows");
  let most = 0;
  for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 40) {
    list.scrollTop = top;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    most = Math.max(most, document.querySelectorAll(".row").length);
  }
  return most;
}"""
"""Rows that are drawn at the same time, from the first sample to the last."""


def test_unlike_answers_stand_below_each_other_as_a_whole(browser: Browser, tmp_path: Path) -> None:
    data = worlds.world(tmp_path / "data")
    old, new = "A cat sleeps on a chair.", "Nobody knows what stands behind those trees."
    runs = [chain_run(tmp_path / said[0], data, narration={"description": said}) for said in (old, new)]
    with opened(browser, compared(tmp_path, *runs), "#samples") as seen:
        seen.page.keyboard.press("j")

        assert (seen.texts(".link-diff[open] del"), seen.texts(".link-diff[open] ins")) == ([old], [new])


def test_the_better_run_is_not_red(browser: Browser, tmp_path: Path) -> None:
    data = worlds.world(tmp_path / "data")
    worse = worlds.choosing(lambda text: not worlds.is_wrong(text))
    runs = [chain_run(tmp_path / "a", data), chain_run(tmp_path / "b", data, choose_action_reasons=worse)]
    with opened(browser, compared(tmp_path, *runs), "#samples") as seen:
        badge = "getComputedStyle(document.querySelector('.row .mark')).color"

        assert seen.texts(".row .mark")[0] == "A better"
        red, green, blue = (float(each) for each in seen.do(badge).partition("(")[2].rstrip(")").split(",")[:3])
        assert blue > max(red, green)


def test_notes_of_the_reader_stay_in_the_address_and_are_saved(browser: Browser, plain: Path) -> None:
    with opened(browser, plain, "#sample=s0003") as seen:
        seen.page.click("[data-rating=bad]")
        seen.page.fill("textarea", "=SUM(1) no, it is “yes” & more")
        seen.until("location.hash.includes('notes=') && location.hash.includes('more')")
        seen.page.keyboard.press("Escape")
        seen.page.keyboard.press("j")
        seen.page.keyboard.press("1")
        seen.until("document.getElementById('save-notes').textContent === 'Save notes (2)'")
        seen.page.click("#to-overview")
        seen.until(showing("overview"))
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        seen.page.click("#to-samples")
        seen.page.select_option('select[title="Your note"]', "bad")
        assert seen.texts(ROWS) == ["s0003 · ✎ bad"]
        seen.page.click(".row")
        assert seen.do("document.querySelector('textarea').value") == "=SUM(1) no, it is “yes” & more"
        with seen.page.expect_download() as saved:
            seen.page.click("#save-notes")
        lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()

        assert lines == [
            '"run","id","epoch","rating","note"',
            '"plain","s0003","0","bad","\'=SUM(1) no, it is “yes” & more"',
            '"plain","s0004","0","good",""',
        ]
        assert saved.value.suggested_filename == "tests-plain-notes.csv"
        assert seen.complaints == []


BROKEN = [
    "notes=%7B",
    "notes=%5B1,%5B%22x%22%5D%5D",
    "notes=%5B%5B0,%22s0000%22,0,%22evil%22,7%5D%5D",
    "samples&notes=%ZZ",
]


@pytest.mark.parametrize("anchor", BROKEN)
def test_notes_that_are_none_are_passed_over(browser: Browser, plain: Path, anchor: str) -> None:
    with opened(browser, plain, f"#{anchor}") as seen:
        seen.page.click("#to-samples")

        assert (len(seen.texts(ROWS)), seen.page.is_visible("#save-notes"), seen.complaints) == (12, False, [])


def test_a_grid_shows_every_sample_in_every_run(browser: Browser, tmp_path: Path) -> None:
    runs = three_runs(tmp_path, worlds.world(tmp_path / "data"))
    report = build_comparison(compare(*runs))
    pictures = Thumbnails.of(report.parts, [tmp_path / "data"])
    with opened(browser, written(tmp_path, comparison_page(report, pictures=pictures))) as seen:
        seen.page.click("#to-samples")  # where the first sample opens by itself
        seen.page.click("#to-grid")
        seen.until("document.querySelectorAll('.cells tbody tr').length === 3")
        assert [text.split()[1] for text in seen.texts(".cells thead th")[1:]] == ["a", "b", "c"]
        assert seen.texts(".cells tbody tr:first-child .mark") == ["100 %", "100 %", "0 %"]
        assert seen.do("document.querySelectorAll('.cells td.other').length") == 3
        seen.until("[...document.querySelectorAll('.cells img')].every((image) => image.naturalWidth > 0)")
        assert "skip" in seen.texts(".cells td.other ins")  # a word that the first run does not say
        seen.page.fill("#grid input", "otherwise.")  # what was said on the way, in one of the runs
        seen.until("!document.querySelector('[aria-busy]')")
        assert seen.do("document.querySelectorAll('.cells tbody tr').length") == 3
        seen.page.fill("#grid input", runs[0].answers[1].sample.id)
        seen.until("document.querySelectorAll('.cells tbody tr').length === 1")
        assert seen.do("location.hash").startswith("#grid&q=")
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        seen.until("document.querySelectorAll('.cells tbody tr').length === 1")
        seen.page.click(".cells td:last-child .mark")
        seen.until(showing("samples"))

        assert seen.texts(".detail h1") == [runs[0].answers[1].sample.id]
        assert seen.texts(".in-all .shown .letter") == ["A", "C"]
        assert seen.complaints == []


def test_a_page_that_follows_a_run_is_read_again_but_not_while_its_reader_types(
    browser: Browser, tmp_path: Path
) -> None:
    out, report = tmp_path / "page.html", build_report([plain_run(tmp_path / "plain")])

    def write(words: str) -> None:
        following = PageFollowing(lines=[words], seconds=0.3)
        write_page(out, lambda _: report_page(report, following=following))

    write("5 of 12 samples")
    with opened(browser, out, "#sample=s0003") as seen:
        seen.page.focus("textarea")
        write("9 of 12 samples")
        seen.page.wait_for_timeout(1500)
        assert "5 of 12" in (seen.page.text_content(".follows") or "")
        seen.page.evaluate("document.activeElement.blur()")
        for _ in range(200):
            if "9 of 12" in (seen.page.text_content(".follows") or ""):
                break
            seen.page.wait_for_timeout(50)

        assert "9 of 12" in (seen.page.text_content(".follows") or "")
        seen.page.wait_for_selector("html[data-ready]", state="attached")
        assert seen.page.inner_text(".detail h1") == "s0003"
