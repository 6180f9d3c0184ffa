#!/usr/bin/env python3
"""Draws the icons of the desktop: the mark of the window, four tiles, one of them open.

    packaging/linux/icons.py        # writes packaging/linux/icons/tilescope-SIZE.png and tilescope.svg
"""

import struct
import zlib
from pathlib import Path

# As `icon()` of the window draws it, on a square of 64.
SIDE = 64
TILES = [(6, 6, 28, 28), (36, 6, 58, 28), (6, 36, 28, 58), (36, 36, 58, 58)]
HOLE = (40, 40, 54, 54)
COLOUR = (0xF6, 0x62, 0x71)
SIZES = [16, 24, 32, 48, 64, 128, 256, 512]
ICONS = Path(__file__).with_name("icons")


def covered(rectangle, x, y, unit):
    """The share of a pixel that a rectangle covers."""
    left, top, right, bottom = rectangle
    width = max(0, min(right, (x + 1) * unit) - max(left, x * unit))
    height = max(0, min(bottom, (y + 1) * unit) - max(top, y * unit))
    return width * height / unit**2


def png(size):
    unit = SIDE / size
    rows = bytearray()
    for y in range(size):
        rows.append(0)
        for x in range(size):
            share = sum(covered(tile, x, y, unit) for tile in TILES) - covered(HOLE, x, y, unit)
            rows += bytes([*COLOUR, round(255 * share)])

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    body = zlib.compress(bytes(rows), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def svg():
    colour = "#%02x%02x%02x" % COLOUR
    path = "".join(f"M{x0} {y0}H{x1}V{y1}H{x0}z" for x0, y0, x1, y1 in [*TILES, HOLE])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}">'
    return f'{head}\n  <path fill="{colour}" fill-rule="evenodd" d="{path}"/>\n</svg>\n'


ICONS.mkdir(exist_ok=True)
for size in SIZES:
    (ICONS / f"tilescope-{size}.png").write_bytes(png(size))
(ICONS / "tilescope.svg").write_text(svg())
