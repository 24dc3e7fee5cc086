// The styles and the fixed markup of a report, for light and dark, from 320 pixels of width on. Constants.
#pragma once

namespace dtrun::report {

inline constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c1c1a;--soft:#62625c;--line:#e3e2dd;--good:#1a7f4b;--bad:#c4302b;
--stop:#a3a29b;--runs:#2a78d6;--c0:#2a78d6;--c1:#d1521c;--c2:#178a60;--c3:#a87400;--c4:#4a3aa7;--c5:#c93b6e;--c6:#00747a;--c7:#6d6d66}
@media(prefers-color-scheme:dark){:root{--bg:#161615;--card:#1f1f1d;--ink:#ececea;--soft:#a3a29b;--line:#373734;--good:#45b47d;
--bad:#f0716b;--stop:#77766f;--runs:#5598e7;--c0:#5598e7;--c1:#e8783f;--c2:#3bb58a;--c3:#d29f22;--c4:#9c90ee;--c5:#ea6f9a;
--c6:#36b0b6;--c7:#a3a29b}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,header{max-width:1320px;margin:0 auto;padding:0 16px}header{padding-top:24px}h1{font-size:24px;margin:0;overflow-wrap:anywhere}
h2{font-size:17px;margin:32px 0 8px}p{margin:4px 0}.state{font-weight:600}.state.good{color:var(--good)}.state.bad{color:var(--bad)}
.state.runs{color:var(--runs)}dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 16px;margin:12px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}pre{margin:0;padding:12px;background:var(--card);border:1px solid var(--line);
border-radius:6px;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin-top:8px}table{border-collapse:collapse;font-size:14px}.bars svg{max-width:640px}th,td{padding:4px 16px 4px 0;text-align:left;
vertical-align:top;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}td.w{overflow-wrap:anywhere;min-width:120px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:12px}
figure{margin:0;padding:10px 12px;background:var(--card);border:1px solid var(--line);border-radius:6px;min-width:0}
figcaption{font-weight:600;font-size:14px;overflow-wrap:anywhere}svg{display:block;width:100%;height:auto}
svg .t{font:11px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--line)}.axis{stroke:var(--soft)}
.mark{stroke:var(--soft);stroke-dasharray:3 3}.l{fill:none;stroke-width:1.6;stroke-linejoin:round}
.band{fill:var(--c0);opacity:.22}rect.good{fill:var(--good)}rect.bad{fill:var(--bad)}rect.stopped{fill:var(--stop)}rect.runs{fill:var(--runs)}
.legend{font-size:12px;color:var(--soft)}.legend span{margin-right:10px;white-space:nowrap;display:inline-block}.legend b{color:var(--ink);font-weight:500}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:4px}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}.l6{stroke:var(--c6)}.l7{stroke:var(--c7)}
.d0,.s0{fill:var(--c0);background:var(--c0)}.d1,.s1{fill:var(--c1);background:var(--c1)}.d2,.s2{fill:var(--c2);background:var(--c2)}
.d3,.s3{fill:var(--c3);background:var(--c3)}.d4,.s4{fill:var(--c4);background:var(--c4)}.d5,.s5{fill:var(--c5);background:var(--c5)}
.d6,.s6{fill:var(--c6);background:var(--c6)}.d7,.s7{fill:var(--c7);background:var(--c7)}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 10px}.key{font-size:12px;color:var(--soft)}
.choose{display:inline-block;margin:0 0 8px}.choose label{margin-right:12px}
#by-time:checked~.steps,#by-step:checked~.times{display:none}
summary{cursor:pointer;color:var(--soft);margin:8px 0}footer{max-width:1320px;margin:32px auto;padding:0 16px;color:var(--soft);font-size:13px}
@media(max-width:600px){dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:6px}th,td{padding-right:8px}}
)css";

// {0}: the job, {1}: the styles, {2}: a class, {3}: the state.
inline constexpr char kHeadMarkup[] = R"html(<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{0} - dtrun report</title><style>{1}</style></head><body><header><h1>{0}</h1>
<p class="state {2}">{3}</p><dl>)html";

inline constexpr char kChoiceMarkup[] =
    R"html(<section><input type="radio" name="by" id="by-time" checked><label for="by-time">over time</label>
<input type="radio" name="by" id="by-step"><label for="by-step">over steps</label><div class="charts times">)html";

inline constexpr char kKeyMarkup[] =
    R"html(<p class="key"><i style="background:var(--good)"></i>succeeded<i style="background:var(--bad)"></i>failed
<i style="background:var(--stop)"></i>stopped by dtrun<i style="background:var(--runs)"></i>runs</p></figure>)html";

// {}: what opens a fold, if there is one.
inline constexpr char kRankTableMarkup[] =
    R"html({}<div class="wide"><table><tr><th class="n">rank</th><th>host</th><th class="n">pid</th>
<th class="n">time</th><th class="n">processor</th><th class="n">most memory</th><th>end</th></tr>)html";

inline constexpr char kRestartsMarkup[] =
    R"html(<h2>Restarts</h2><div class="wide"><table><tr><th class="n">generation</th><th>result</th><th>class</th>
<th class="n">exit code</th><th class="n">failed first</th><th class="n">seconds</th></tr>)html";

}  // namespace dtrun::report
