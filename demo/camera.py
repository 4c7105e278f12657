"""`python -m demo.camera`: plays the demo in a home of its own and pictures the console page by page.

With `--running HOME` it visits a demo that is up already, and starts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from console.embedded import processes
from demo.album import ALBUM, Picture

BASE = Path(__file__).resolve().parent.parent
FOLDER = BASE / "docs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]
READY_SECONDS, PLAYED_SECONDS, STOP_SECONDS = 120, 120, 60
PLAYED = "late: completed"
"""What the agent says when the slowest of the opening cases is over."""
OURS = ("STEADYHAND_", "DATABASE_", "CELERY_", "TRUSTED_", "DJANGO_")
VISITOR = "omar@steadyhand.example"
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
WIDE, NARROW = (1440, 900), (390, 844)
LONGEST = 1200
"""A page that is longer is cut here (pixels)."""

# The model pictures were drawn with these two; where they are installed they stand in for a desktop's own fonts.
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
{}</fontconfig>"""
ALIAS = '<match target="pattern"><test name="family"><string>{}</string></test>'
ALIAS += '<edit name="family" mode="prepend" binding="strong"><string>{}</string></edit></match>\n'
STAND_INS = {"system-ui": "Inter", "sans-serif": "Inter", "sans": "Inter", "ui-monospace": "JetBrains Mono"}


@dataclass(frozen=True)
class Demo:
    """A demo that is up: where it answers and what its people sign in with."""

    address: str
    password: str


@contextmanager
def playing(home: Path) -> Iterator[Demo]:
    """The whole product and its agent, until the opening cases are played; ended when the block ends."""
    web, sandbox = _free_ports(2)
    command = [sys.executable, "manage.py", "up", "--demo", "--port", str(web), "--sandbox-port", str(sandbox)]
    log = home / "said"
    with log.open("w") as said:
        up = subprocess.Popen(
            processes.tied(command, stop=signal.SIGINT), cwd=BASE, env=_environment(home), stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            _until_said(up, log, "Steadyhand is ready at", READY_SECONDS)
            _until_said(up, log, PLAYED, PLAYED_SECONDS)
            yield Demo(f"http://127.0.0.1:{web}", _password(home))
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(STOP_SECONDS)


def _free_ports(count: int) -> list[int]:
    lines = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [line.getsockname()[1] for line in lines]
    for line in lines:
        line.close()
    return ports


def _environment(home: Path) -> dict[str, str]:
    """A shell that names no database, broker or home but this one."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**plain, "STEADYHAND_HOME": str(home)}


def _until_said(up: subprocess.Popen[bytes], log: Path, text: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while text not in log.read_text():
        if up.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The demo did not say “{text}” within {seconds} s:\n{log.read_text()[-3000:]}")
        time.sleep(0.5)


def _password(home: Path) -> str:
    return str(json.loads((home / "demo" / "people.json").read_text())["password"])


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Debian's browser with the stand-in fonts; `folder` holds the file that names them."""
    (folder / "fonts.conf").write_text(FONTS.format("".join(ALIAS.format(*pair) for pair in STAND_INS.items())))
    environment = {**os.environ, "FONTCONFIG_FILE": str(folder / "fonts.conf")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, env=environment)
        try:
            yield browser
        finally:
            browser.close()


def take(browser: Browser, demo: Demo, folder: Path, pictures: list[Picture], *, phones: bool) -> None:
    """Every picture in both schemes at a desk's width; light at a phone's too where wanted. `phones`: all in both."""
    page, stranger = _window(browser, demo), _window(browser, demo)
    _sign_in(page, demo)
    for picture in pictures:
        seen = _reach(picture, page, stranger)
        for scheme in SCHEMES:
            _shoot(seen, scheme, WIDE, folder / f"{picture.name}-{scheme}.png")
        for scheme in SCHEMES if phones else SCHEMES[:1] if picture.narrow else ():
            _shoot(seen, scheme, NARROW, folder / f"{picture.name}-{scheme}-narrow.png")


def _window(browser: Browser, demo: Demo) -> Page:
    width, height = WIDE
    page = browser.new_context(base_url=demo.address, viewport={"width": width, "height": height}).new_page()
    page.set_default_timeout(10_000)
    return page


def _sign_in(page: Page, demo: Demo) -> None:
    page.goto("/")
    page.get_by_label("E-mail").fill(VISITOR)
    page.get_by_label("Password", exact=True).fill(demo.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_selector("#heading")
    page.get_by_role("button", name="End the tour").first.click()
    page.wait_for_selector("#heading")


def _reach(picture: Picture, page: Page, stranger: Page) -> Page:
    """The window in which this picture's page is open now."""
    window = stranger if picture.stranger and not picture.link else page
    window.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    window.goto(picture.start)
    for step in picture.steps:
        if isinstance(step, tuple):
            window.locator(step[0]).fill(step[1])
        else:
            window.locator(step).first.click()
    if picture.link:
        stranger.goto(window.locator(picture.link).input_value())
        return stranger
    return window


def _shoot(page: Page, scheme: Literal["light", "dark"], size: tuple[int, int], file: Path) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.wait_for_load_state("networkidle")
    page.mouse.move(size[0] - 1, size[1] - 1)
    open_sheet = page.locator("dialog[open]").count() > 0
    longest = size[1] if open_sheet else LONGEST
    height = min(int(page.evaluate("document.documentElement.scrollHeight")), longest)
    page.set_viewport_size({"width": size[0], "height": height})
    page.screenshot(path=file, animations="disabled", caret="hide")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Pictures of the console, taken from the running demo.")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder of the PNG files")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in ALBUM], help="these pictures alone")
    parser.add_argument("--phones", action="store_true", help="a phone's width for every picture, dark too")
    parser.add_argument("--running", type=Path, metavar="HOME", help="visit the demo that is up from this home")
    parser.add_argument("--at", default="http://127.0.0.1:8000", help="where that one answers")
    return parser.parse_args()


def main() -> None:
    asked = _asked()
    asked.to.mkdir(parents=True, exist_ok=True)
    pictures = [one for one in ALBUM if not asked.only or one.name in asked.only]
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        demo = _running(asked) if asked.running else stack.enter_context(playing(Path(home)))
        take(stack.enter_context(chromium(Path(home))), demo, asked.to, pictures, phones=asked.phones)
    print(f"{len(pictures)} pages pictured in {asked.to}")


def _running(asked: argparse.Namespace) -> Demo:
    return Demo(asked.at, _password(asked.running))


if __name__ == "__main__":
    main()
