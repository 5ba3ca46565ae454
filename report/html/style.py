"""The page's looks: colours for light and dark, and a layout from a phone's width to a desk's."""

from __future__ import annotations

from axonnx.report.html.chart_style import CHARTS

COLOURS = {  # name: (light, dark)
    "bg": ("#f5f6f8", "#0f141b"),
    "card": ("#ffffff", "#171e28"),
    "sunk": ("#f0f2f5", "#111820"),
    "text": ("#1a2230", "#e5eaf1"),
    "muted": ("#586373", "#9ba8b9"),
    "line": ("#dfe3e9", "#2b3543"),
    "accent": ("#1f57c9", "#82aaff"),
    "good": ("#0d7a55", "#4fd1a1"),
    "good-bg": ("#e4f5ee", "#12322a"),
    "bad": ("#b3261e", "#ff8f84"),
    "bad-bg": ("#fdeceb", "#3a1a1b"),
    "warn": ("#7d5200", "#f0c063"),
    "warn-bg": ("#fff4dc", "#332813"),
    "c0": ("#a9b3c1", "#5c6a7d"),
    "c1": ("#2f6fde", "#6ea0ff"),
    "c2": ("#d96c00", "#ffa24d"),
    "c3": ("#10876a", "#3ccda4"),
    "c4": ("#a83e95", "#e68ad4"),
    "c5": ("#6d51cc", "#a892ff"),
    "c6": ("#bb3a31", "#ff8379"),
    "c7": ("#6a7d00", "#bccf4e"),
    "c8": ("#0b829b", "#4cc4de"),
}

LAYOUT = """
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:64px;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--text);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main,footer{max-width:1180px;margin:0 auto;padding:0 20px}
header{position:sticky;top:0;z-index:5;display:flex;align-items:center;gap:18px;
 padding:8px max(20px,calc(50vw - 570px));
 background:var(--card);border-bottom:1px solid var(--line)}
.brand{display:flex;gap:8px;align-items:baseline;white-space:nowrap}
.brand span{color:var(--accent);font-weight:700;letter-spacing:.02em}
nav{display:flex;gap:2px;overflow-x:auto;margin-left:auto;scrollbar-width:none}
nav a{padding:4px 9px;border-radius:6px;color:var(--muted);text-decoration:none;font-size:14px;white-space:nowrap}
nav a:hover{background:var(--sunk);color:var(--text)}
h1{margin:28px 0 0;font-size:26px;line-height:1.2;overflow-wrap:anywhere}
h2{margin:44px 0 4px;font-size:20px}
h3{margin:0 0 10px;font-size:15px}
.lead{margin:0 0 14px;color:var(--muted)}
button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:8px;
 padding:4px 12px;cursor:pointer}
button:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{margin:0;padding:12px;max-height:420px;overflow:auto;background:var(--sunk);border-radius:8px}
.hash{overflow-wrap:anywhere}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
footer{padding-top:32px;padding-bottom:32px;color:var(--muted);font-size:13px}
.good{color:var(--good)}.bad{color:var(--bad)}
.missing,.warning{margin:10px 0;padding:10px 14px;border:1px dashed var(--c0);border-radius:10px;color:var(--muted)}
.missing code{color:var(--text);overflow-wrap:anywhere}
.warning{border:1px solid var(--warn);background:var(--warn-bg);color:var(--warn)}
.verdict{display:flex;gap:18px;align-items:center;padding:20px 24px;border-radius:14px;border:1px solid}
.verdict p{margin:0}.verdict ul{margin:8px 0 0;padding-left:18px}
.verdict .big{font-size:clamp(20px,4.2vw,30px);font-weight:700;line-height:1.2}
.verdict .sign{flex:none;display:grid;place-items:center;width:54px;height:54px;border-radius:50%;
 font-size:28px;font-weight:700;color:var(--card);background:currentColor}
.verdict .sign{background:var(--tone);color:var(--card)}
.verdict.good{--tone:var(--good);background:var(--good-bg);border-color:var(--good);color:var(--good)}
.verdict.bad{--tone:var(--bad);background:var(--bad-bg);border-color:var(--bad);color:var(--bad)}
.verdict.open{--tone:var(--c0);background:var(--card);border-color:var(--line)}
.verdict.open .missing{border:0;padding:0;margin:4px 0 0}
.verdict>div>p:not(.big){font-size:16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:16px 0}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{padding:12px 16px;display:flex;flex-direction:column;justify-content:space-between}
.tile dt{color:var(--muted);font-size:13px}
.tile dd{margin:0}
.tile .value{font-size:24px;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums;white-space:nowrap}
.tile .detail{color:var(--muted);font-size:12.5px}
.tiles.small .value{font-size:18px}
.tiles.small{grid-template-columns:repeat(auto-fit,minmax(128px,1fr))}
.pipeline{display:grid;grid-template-columns:repeat(6,1fr);margin:18px 0;padding:0;list-style:none}
.pipeline li{position:relative;padding:22px 10px 0 0;display:flex;flex-direction:column;min-width:0}
.pipeline li::before{content:"";position:absolute;top:8px;left:0;right:0;height:2px;background:var(--line)}
.pipeline li::after{content:"";position:absolute;top:2px;left:0;width:14px;height:14px;border-radius:50%;
 background:var(--good);border:3px solid var(--bg)}
.pipeline li:last-child::before{right:auto;width:10px}
.pipeline .open::after{background:var(--c0)}.pipeline .bad::after{background:var(--bad)}
.pipeline b{font-size:13px;color:var(--muted);font-weight:600}
.pipeline li.bad{color:inherit}
.pipeline span{font-weight:600;overflow-wrap:anywhere}
.pipeline small{color:var(--muted)}
.card{padding:16px 18px;margin:12px 0;min-width:0}
.cards{columns:2 400px;column-gap:14px;margin:12px 0 0}
.cards .card{margin:0 0 14px;break-inside:avoid}
details{margin:10px 0}
details.card{padding:8px 18px}
summary{cursor:pointer;color:var(--accent);padding:4px 0}
.stages{list-style:none;padding:0;margin:6px 0 12px}.stages ul{color:var(--muted);font-size:13.5px}
.scroll{overflow-x:auto;
 background:linear-gradient(270deg,var(--card) 40%,transparent) right/48px 100% no-repeat local,
 linear-gradient(270deg,var(--line),transparent) right/14px 100% no-repeat scroll}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding-bottom:6px}
th,td{padding:6px 12px 6px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--muted);font-size:13px;font-weight:600;white-space:nowrap}
tbody th{font-weight:500}
.n{text-align:right;white-space:nowrap}
.note{margin:8px 0 0;color:var(--muted);font-size:13px}
"""

SMALL = """
@media(max-width:720px){
 main,footer{padding-left:14px;padding-right:14px}
 header{flex-wrap:wrap;gap:4px 10px;padding:6px 14px}
 nav{order:3;width:100%;margin:0 -6px}
 #theme{margin-left:auto}
 .brand b{overflow:hidden;text-overflow:ellipsis;max-width:56vw}
 .verdict{padding:16px;gap:14px}.verdict .sign{width:42px;height:42px;font-size:22px}
 .tiles{grid-template-columns:1fr 1fr;gap:10px}.tile{padding:10px 12px}.tile .value{font-size:20px}
 .pipeline{grid-template-columns:1fr 1fr 1fr;gap:12px 0}
 .card{padding:14px}
}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{
 *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
 header,.picker,.player,#theme,.cursor{display:none}
 body{font-size:11px;background:#fff}main{padding:0}
 .card,.tile,figure,.strip{break-inside:avoid}.sample,.card:has(table){break-inside:auto}
 .cards{columns:2 240px}.sample{grid-template-columns:180px minmax(0,1fr)}.sample .left{position:static}
 .scroll{overflow:visible;background:none}thead th,.note,.strip p,.legend{font-size:10.5px}
 th,td{padding:3px 8px 3px 0}h2{margin-top:22px;break-after:avoid}pre{max-height:none;white-space:pre-wrap}
}
"""


def style_sheet() -> str:
    """The whole sheet: colours first, for both modes, then everything that uses them."""
    light = "".join(f"--{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in COLOURS.items())
    series = "".join(f".c{number}{{--c:var(--c{number})}}" for number in range(9))
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
        f"{series}{LAYOUT}{CHARTS}{SMALL}"
    )
