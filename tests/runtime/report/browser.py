"""A page in headless Chromium: the document after its scripts ran, what the console said, what it asked for."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--enable-logging=stderr",
)

BROWSER = "not an origin"  # the initiator of a browser's own requests


@dataclass(frozen=True)
class Visit:
    """What happened on a page."""

    dom: str
    console: list[str]
    requests: list[str]
    picture: bytes


def chromium() -> str | None:
    """Where a browser is."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def visit(page: Path, folder: Path, *flags: str, size: str = "1280,900") -> Visit:
    """Open a page with a profile of its own, let two seconds pass for its scripts, and look."""
    browser, log, picture = chromium(), folder / "net.json", folder / "page.png"
    assert browser is not None
    words = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", f"--screenshot={picture}"]
    words += [f"--window-size={size}", "--virtual-time-budget=2000", "--dump-dom", *flags]
    done = subprocess.run(
        [browser, *QUIET, *words, page.as_uri()], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Visit(done.stdout, console, requested(log.read_text("utf-8")), picture.read_bytes())


def requested(log: str) -> list[str]:
    """All addresses beyond page and disk that a page asked for; what a browser asks for itself has no initiator."""
    text = log if log.rstrip().endswith("}") else log.rstrip().rstrip(",") + "]}"
    events = [event.get("params", {}) for event in json.loads(text)["events"]]
    urls = {str(params.get("url")) for params in events if params.get("initiator", BROWSER) != BROWSER}
    return sorted(url for url in urls if re.match(r"(https?|wss?|ftp):", url))
