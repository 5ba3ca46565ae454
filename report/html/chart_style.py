"""How drawings look."""

CHARTS = """
figure{margin:0}
figcaption{display:flex;flex-wrap:wrap;gap:0 10px;align-items:baseline;margin-bottom:8px}
figcaption small{color:var(--muted);font-size:12.5px}
svg{display:block;width:100%;height:100%;overflow:visible}
svg *{vector-effect:non-scaling-stroke}
.plot{display:grid;grid-template-columns:calc(var(--w) + 8px) 1fr;font-size:12px;color:var(--muted);
 font-variant-numeric:tabular-nums;padding-top:6px;padding-right:18px}
.plot .field{grid-column:2;grid-row:1;height:var(--h)}
.plot .y{grid-column:1;grid-row:1;position:relative}
.plot .y span{position:absolute;right:8px;transform:translateY(50%);line-height:1;white-space:nowrap}
.plot .x{grid-column:2;position:relative;height:20px}
.plot .x span{position:absolute;top:6px;transform:translateX(-50%);line-height:1;white-space:nowrap}
.plot .x-name{grid-column:2;text-align:center;line-height:1.3}
.grid{stroke:var(--line);stroke-width:1px}
.mark{stroke:var(--muted);stroke-width:1px;stroke-dasharray:3 3}
.line{fill:none;stroke:var(--c);stroke-width:1.8px;stroke-linejoin:round}
.line.thin{stroke-width:1px;opacity:.6}
.line.dash{stroke-dasharray:5 3}
.dot{fill:none;stroke:var(--c);stroke-width:5px;stroke-linecap:round}
.fill{fill:var(--c)}
.dot.small{stroke-width:3.5px}
.pale{opacity:.35}
.diagonal,.threshold{fill:none;stroke:var(--muted);stroke-width:1.2px;stroke-dasharray:4 3}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin:8px 0 0;padding:0;list-style:none;font-size:13px}
.legend li{display:flex;align-items:center;gap:6px}
.key{flex:none;width:14px;height:4px;border-radius:2px;background:var(--c)}
.key.dash{background:repeating-linear-gradient(90deg,var(--c) 0 4px,transparent 4px 7px)}
.bars{list-style:none;margin:0;padding:0;display:grid;gap:10px}
.bars li{display:grid;grid-template-columns:1fr auto;gap:2px 12px;font-size:13.5px}
.bars .name{overflow-wrap:anywhere}.bars .text{font-variant-numeric:tabular-nums;text-align:right}
.bars .track{grid-column:1/-1}
.bars .strong{font-weight:650}
.track{height:12px;border-radius:4px;overflow:hidden}.track.tall{height:26px;border-radius:6px}
.rail{fill:var(--sunk)}
.whisker{fill:none;stroke:var(--text);stroke-width:1.4px}
.stack{margin-bottom:18px}
.confusion table{min-width:min(100%,480px);width:auto;border-collapse:separate;border-spacing:2px;
 font-size:13px;line-height:1}
.confusion th,.confusion td{border:0;padding:0;height:32px;min-width:26px;text-align:center;vertical-align:middle}
.confusion tbody th{padding-right:6px;text-align:right;white-space:nowrap;color:var(--muted);min-width:0}
.confusion tbody td{background:var(--sunk);border-radius:4px}
.confusion thead th{height:22px}
.confusion .hit{background:color-mix(in srgb,var(--c1) calc(var(--s)*62%),var(--sunk))}
.confusion .miss{background:color-mix(in srgb,var(--c6) calc(20% + var(--s)*60%),var(--sunk));font-weight:600}
.confusion.many th,.confusion.many td{height:22px;min-width:22px;font-size:11px}
.confusion.many thead th{height:auto;padding:4px 0}
.confusion.many thead span{writing-mode:vertical-rl;transform:rotate(180deg)}
.network{max-width:760px;margin:0 auto}
.network text{font-size:13px;fill:var(--text)}
.network .strong{font-weight:650}.network .end{text-anchor:end}.network .soft{font-size:12px;fill:var(--muted)}
.box{fill:var(--card);stroke:var(--line);stroke-width:1.4px}
.wire{fill:none;stroke:var(--muted);stroke-width:1.4px}
.wire.stream{stroke-dasharray:5 4}.wire.recurrent{stroke:var(--c1)}
.tip{fill:var(--muted)}
.calibration figure+figure{margin-top:14px}
.picker{display:flex;flex-wrap:wrap;gap:8px;margin-bottom:12px}
.picker button{display:flex;align-items:center;gap:9px}
.picker button:has(.thumb){padding:4px 12px 4px 5px}
.thumb{width:40px;max-height:40px;border-radius:5px;background-color:var(--sunk);background-repeat:no-repeat;
 image-rendering:pixelated}
.picker button[aria-pressed=true]{background:var(--accent);border-color:var(--accent);color:var(--card)}
.picker .wrong{border-color:var(--bad)}
.js .sample:not(.on){display:none}
.sample{display:grid;grid-template-columns:minmax(220px,300px) minmax(0,1fr);gap:24px;align-items:start}
.sample .left{position:sticky;top:70px}
.told{margin:0 0 12px;font-size:15.5px}
.badge{padding:1px 9px;border-radius:99px;font-size:13px;white-space:nowrap}
.badge.good{background:var(--good-bg)}.badge.bad{background:var(--bad-bg)}
.picture{width:100%;max-height:300px;border-radius:8px;background-color:var(--sunk);background-repeat:no-repeat;
 image-rendering:pixelated}
.player{display:flex;align-items:center;gap:10px;margin:10px 0;font-size:13px;font-variant-numeric:tabular-nums}
html:not(.js) .player,html:not(.js) .cursor{display:none}
.player input{flex:1;min-width:60px;accent-color:var(--accent)}
.player output{min-width:4.5em;text-align:right}
.play{width:40px;padding:4px 0}
.odds{list-style:none;margin:12px 0 0;padding:0;display:grid;gap:4px;font-size:13.5px}
.odds li{display:grid;grid-template-columns:var(--n) 1fr 6ch;gap:8px;align-items:center}
.odds li>span:first-child{white-space:nowrap}
.odds .bar{height:10px;border-radius:3px;background:var(--sunk);overflow:hidden}
.odds i{display:block;height:100%;background:var(--c0);border-radius:3px}
.odds.long li{grid-template-columns:1fr auto;gap:1px 8px}
.odds.long .bar{grid-row:2;grid-column:1/-1;height:7px}
.odds .won i{background:var(--accent)}
.odds .won{font-weight:650}
.odds .true>span:first-child::after{content:" ●";color:var(--good);font-size:10px}
.odds .share{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.strip{margin-bottom:10px}
.strip p{margin:0 0 2px;font-size:13px;color:var(--muted)}
.band{position:relative;margin-right:46px;background:var(--sunk);border-radius:6px;cursor:crosshair}
.band.still{cursor:auto}
.band>span{position:absolute;left:calc(100% + 6px);font-size:11.5px;line-height:1.25;color:var(--muted);
 white-space:nowrap}
.band>.at{transform:translateY(-50%)}
.spikes{fill:none;stroke:var(--text)}
.cursor{stroke:var(--c6);stroke-width:1.4px;opacity:.85;transform:translateX(calc(var(--t)*1px))}
.ticks{position:relative;margin-right:46px;height:18px;font-size:12px;color:var(--muted)}
.ticks span{position:absolute}
@media(max-width:860px){.sample{grid-template-columns:minmax(0,1fr);gap:16px}.sample .left{position:static}
 .picture{max-width:240px}}
"""
