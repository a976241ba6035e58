"""The style of the picture of a timeline, for light and for dark."""

from __future__ import annotations

#: Of the picture alone: a page that has a style of its own can take it in.
PICTURE = """\
.timeline {
  --ink: #1c2430; --soft: #5d6878; --line: #d8dde5; --row: #f3f5f8;
  --ok: #2f9e6e; --failed: #cf3f3a; --late: #d9771a; --again: #c9a20a;
  --cancelled: #8a94a3; --attention: #8e4ec6; --running: #2f74d0; --unknown: #a3927a;
  --w1: #9db7d9; --w2: #e0a458; --w3: #7fb8ad; --w4: #b7a1d6; --w5: #c8cdd6;
  --w6: #df8f8f; --w7: #e3cf6a; --w8: #c58ae0; --w9: #8b95a5;
  color: var(--ink);
  font: 14px/1.4 system-ui, -apple-system, "Segoe UI", sans-serif;
}
@media (prefers-color-scheme: dark) {
  .timeline {
    --ink: #e4e8ee; --soft: #98a3b3; --line: #333b47; --row: #1b2129;
    --ok: #3fae7d; --failed: #e0605a; --late: #e6913f; --again: #d6b52f;
    --cancelled: #77818f; --attention: #a974dd; --running: #5192ea;
    --unknown: #a08f76;
    --w1: #4f6d96; --w2: #a4713a; --w3: #437d73; --w4: #6d5793; --w5: #5a6371;
    --w6: #9b4f4f; --w7: #8f8032; --w8: #8650a0; --w9: #515b69;
  }
}
.timeline h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
.timeline p { margin: .4rem 0; color: var(--soft); }
.timeline .legend {
  display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .6rem 0; padding: 0;
  list-style: none; color: var(--soft);
}
.timeline .legend svg { width: 14px; height: 12px; margin-right: .35em; }
.timeline .part {
  display: grid; grid-template-columns: 11rem minmax(0, 1fr);
  border-top: 1px solid var(--line); padding: 6px 0;
}
.timeline .part > div:first-child { padding-right: .8rem; overflow: hidden; }
.timeline .name { font-weight: 600; overflow-wrap: anywhere; }
.timeline .note { color: var(--soft); font-size: 12px; }
.timeline .plot svg { display: block; width: 100%; overflow: hidden; }
.timeline .axis {
  border-top: 0; padding: 2px 0; position: sticky; top: 0; z-index: 1;
  background: Canvas;
}
.timeline text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.timeline .row { fill: var(--row); }
.timeline .grid { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.timeline .run rect { stroke-width: 1; }
.timeline .run text { fill: #fff; }
.timeline .run.again text { fill: #1c2430; }
.timeline .run:hover rect { opacity: .8; }
.timeline .ok rect { fill: var(--ok); stroke: var(--ok); }
.timeline .failed rect { fill: var(--failed); stroke: var(--failed); }
.timeline .late rect { fill: var(--late); stroke: var(--late); }
.timeline .again rect { fill: var(--again); stroke: var(--again); }
.timeline .cancelled rect { fill: var(--cancelled); stroke: var(--cancelled); }
.timeline .attention rect { fill: var(--attention); stroke: var(--attention); }
.timeline .running rect { fill: var(--running); stroke: var(--running); }
.timeline .unknown rect { fill: var(--unknown); stroke: var(--unknown); }
.timeline .run rect.still { fill: Canvas; stroke: none; opacity: .55; }
.timeline .band { fill: var(--soft); opacity: .16; }
.timeline .band.down { opacity: .34; }
.timeline .band.closed, .timeline .band.pause { fill: var(--late); }
.timeline .hidden { fill: var(--line); opacity: .6; }
.timeline .w1 { fill: var(--w1); } .timeline .w2 { fill: var(--w2); }
.timeline .w3 { fill: var(--w3); } .timeline .w4 { fill: var(--w4); }
.timeline .w5 { fill: var(--w5); } .timeline .w6 { fill: var(--w6); }
.timeline .w7 { fill: var(--w7); } .timeline .w8 { fill: var(--w8); }
.timeline .w9 { fill: var(--w9); }
.timeline details { margin: 1.6rem 0; }
.timeline summary { cursor: pointer; }
.timeline .scroll { overflow-x: auto; }
.timeline table { border-collapse: collapse; margin-top: .6rem; font-size: 13px; }
.timeline th, .timeline td {
  text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap;
}
.timeline td:nth-child(3) { white-space: normal; overflow-wrap: anywhere; }
@media (max-width: 700px) {
  .timeline .part { display: block; }
  .timeline .part > div:first-child { padding-bottom: 4px; }
}
@media print { .timeline .axis { position: static; } }
"""

#: Of a file that holds the picture and nothing else.
WHOLE = """\
:root { color-scheme: light dark; }
body { margin: 1.2rem auto; max-width: 1500px; padding: 0 1rem; }
h1 { font: 600 1.3rem/1.3 system-ui, sans-serif; margin: 0 0 .2rem; }
"""
