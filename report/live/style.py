"""How the panel looks."""

LIVE = """
.live{display:grid;grid-template-columns:minmax(220px,320px) minmax(0,1fr);gap:24px;align-items:start}
.live[hidden]{display:none}
.live .sensor{display:block;width:100%;border:1px solid var(--line);border-radius:8px;background:var(--sunk);
 touch-action:none;cursor:crosshair;image-rendering:pixelated}
.live .sensor.paint{image-rendering:auto}
.buttons{display:flex;flex-wrap:wrap;align-items:center;gap:6px 8px;margin-top:10px;font-size:13.5px}
.buttons label{display:flex;gap:5px;align-items:center}
.buttons .button{border:1px solid var(--line);border-radius:8px;padding:4px 12px;cursor:pointer;background:var(--card)}
.buttons .button:hover{border-color:var(--accent)}
.buttons .button:focus-within{outline:2px solid var(--accent);outline-offset:2px}
.live .band{margin-right:0;overflow:hidden}
.live .band canvas{display:block;width:100%;height:128px}
.live .band canvas.bars{height:44px}.live .band canvas.lines{height:120px}
.live.ran .band::after{content:"";position:absolute;top:0;bottom:0;width:1.4px;background:var(--c6);opacity:.8;
 left:calc((var(--t) + .5)/var(--steps)*100%)}
.live .odds i{background:var(--c)}
@media(max-width:860px){.live{grid-template-columns:minmax(0,1fr);gap:16px}.live .sensor{max-width:320px}}
@media print{.live,#live{display:none}}
"""
