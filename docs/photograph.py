"""Pictures of a report's parts for the page that explains them, taken by chromium.

axonnx report digits.onnx --run digits --verify verify.json --profile profile.json -o report.html
python docs/photograph.py report.html docs/how-to/report
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

WIDTH, HEIGHT, COLOURS = 1100, 2600, 128
ALONE = "<style>header,footer,main>section:not(#{0}){{display:none!important}}</style></head>"


def photograph(report: Path, section: str, picture: Path) -> None:
    """One section of a report, alone, as a PNG of few colours without its margins."""
    page = report.read_text("utf-8").replace("</head>", ALONE.format(section), 1)
    with tempfile.TemporaryDirectory() as folder:
        alone, shot = Path(folder, "alone.html"), Path(folder, "shot.png")
        alone.write_text(page, "utf-8")
        words = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
        subprocess.run(["chromium", *words, f"--screenshot={shot}", alone.as_uri()], check=True, capture_output=True)
        _without_margins(Image.open(shot).convert("RGB")).quantize(COLOURS).save(picture, optimize=True)


def _without_margins(image: Image.Image) -> Image.Image:
    ground = Image.new("RGB", image.size, image.getpixel((0, 0)))
    left, top, right, bottom = ImageChops.difference(image, ground).getbbox() or (0, 0, *image.size)
    return image.crop((left - 8, max(0, top - 8), right + 8, bottom + 8))


def main() -> None:
    """Photograph every section that the report has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for section in re.findall(r'<section[^>]* id="(\w+)"', options.report.read_text("utf-8")):
        photograph(options.report, section, options.folder / f"{section}.png")


if __name__ == "__main__":
    main()
